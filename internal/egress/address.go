package egress

import (
	"errors"
	"fmt"
	"net/netip"
)

// addresses decides which addresses may be dialled.
type addresses struct {
	refused, metadata, granted []netip.Prefix
	global, nat64              netip.Prefix
}

// newAddresses checks the prefixes that the operator grants.
func newAddresses(private []netip.Prefix) (addresses, error) {
	a := addresses{
		global: netip.MustParsePrefix("2000::/3"),
		nat64:  netip.MustParsePrefix("64:ff9b::/96"),
	}
	for _, text := range notPublic() {
		a.refused = append(a.refused, netip.MustParsePrefix(text))
	}
	for _, text := range metadataServices() {
		a.metadata = append(a.metadata, netip.MustParsePrefix(text))
	}
	for i, p := range private {
		var problem error
		switch {
		case !p.IsValid():
			problem = errors.New(`is not a prefix; write for example "10.0.0.0/8"`)
		case p.Addr().Is4In6():
			problem = errors.New("is IPv4 written as IPv6; write it as IPv4")
		case p.Addr().Zone() != "":
			problem = errors.New("has a zone; leave it out")
		}
		if problem != nil {
			return a, fmt.Errorf("Policy.Private[%d] %s %w", i, quote(p.String()), problem)
		}
		a.granted = append(a.granted, p.Masked())
	}
	return a, nil
}

// allowed reports whether addr may be dialled. Grants count only for a host
// that the policy names.
func (a addresses) allowed(addr netip.Addr, named bool) bool {
	if !addr.IsValid() || addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	if a.public(addr) {
		return true
	}
	return named && a.isGranted(addr)
}

func (a addresses) public(addr netip.Addr) bool {
	if addr.Is4() {
		return !contains(a.refused, addr) && !contains(a.metadata, addr)
	}
	raw := addr.As16()
	if a.nat64.Contains(addr) {
		return a.public(netip.AddrFrom4([4]byte(raw[12:])))
	}
	if !a.global.Contains(addr) || contains(a.refused, addr) {
		return false
	}
	// ISATAP carries an IPv4 address behind 0000:5efe or 0200:5efe.
	if raw[8]&^2 == 0 && raw[9] == 0 && raw[10] == 0x5e && raw[11] == 0xfe {
		return a.public(netip.AddrFrom4([4]byte(raw[12:])))
	}
	return true
}

func (a addresses) isGranted(addr netip.Addr) bool {
	metadata := contains(a.metadata, addr)
	for _, p := range a.granted {
		if p.Contains(addr) && (!metadata || p.IsSingleIP()) {
			return true
		}
	}
	return false
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// notPublic lists what the IANA registries of special-purpose addresses do not
// call global, within all of IPv4 and within 2000::/3 of IPv6.
func notPublic() []string {
	return []string{
		"0.0.0.0/8",       // this network
		"10.0.0.0/8",      // private
		"100.64.0.0/10",   // shared by carriers
		"127.0.0.0/8",     // loopback
		"169.254.0.0/16",  // link-local
		"172.16.0.0/12",   // private
		"192.0.0.0/24",    // protocol assignments
		"192.0.2.0/24",    // documentation
		"192.88.99.0/24",  // 6to4 relays
		"192.168.0.0/16",  // private
		"198.18.0.0/15",   // benchmarking
		"198.51.100.0/24", // documentation
		"203.0.113.0/24",  // documentation
		"224.0.0.0/4",     // multicast
		"240.0.0.0/4",     // reserved, broadcast
		"2001::/23",       // protocol assignments: Teredo, benchmarking, ORCHID
		"2001:db8::/32",   // documentation
		"2002::/16",       // 6to4, which carries any IPv4 address
		"3fff::/20",       // documentation
	}
}

// metadataServices lists where clouds serve credentials of the machine. Some of
// them lie in ranges that an operator may grant for other reasons, one is public.
func metadataServices() []string {
	return []string{
		"169.254.169.254/32", // most clouds
		"169.254.170.2/32",   // containers on AWS
		"169.254.170.23/32",  // EKS
		"100.100.100.200/32", // Alibaba
		"192.0.0.192/32",     // Oracle
		"168.63.129.16/32",   // Azure
		"fd00:ec2::254/128",  // AWS
		"fd00:ec2::23/128",   // EKS
		"fd20:ce::254/128",   // Google
	}
}
