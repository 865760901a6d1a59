package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// hostPattern is one entry of a list of hosts.
type hostPattern struct {
	// any is "*".
	any bool
	// below means that name is a suffix: the labels before it are free.
	below bool
	// name is a canonical name, empty for an address.
	name string
	// addr is set for a literal address.
	addr netip.Addr
	// port is zero for the port of the scheme.
	port uint16
	// anyPort is ":*".
	anyPort bool
}

// hostSet is a list of hosts.
type hostSet []hostPattern

// parseHosts reads the patterns of the list that field names.
func parseHosts(field string, patterns []string) (hostSet, error) {
	set := make(hostSet, 0, len(patterns))
	for i, p := range patterns {
		h, err := parsePattern(p)
		if err != nil {
			return nil, fmt.Errorf("%s[%d] %s %w", field, i, quote(p), err)
		}
		set = append(set, h)
	}
	return set, nil
}

func parsePattern(text string) (hostPattern, error) {
	var h hostPattern
	if strings.Contains(text, "/") {
		return h, errors.New("is not a host; write only the host, without a scheme or a path")
	}
	host, port, err := splitPort(text)
	if err != nil {
		return h, err
	}
	switch port {
	case "":
	case "*":
		h.anyPort = true
	default:
		if h.port, err = parsePort(port); err != nil {
			return h, err
		}
	}
	if host == "*" {
		h.any = true
		return h, nil
	}
	if rest, ok := strings.CutPrefix(host, "*."); ok {
		h.below, host = true, rest
	}
	if strings.Contains(host, "*") {
		return h, errors.New(`has a star inside; write "*" or "*.example.com"`)
	}
	name, addr, err := canonicalHost(host)
	if err != nil {
		return h, err
	}
	if h.below && addr.IsValid() {
		return h, errors.New("has a star before an address; name the address")
	}
	h.name, h.addr = name, addr
	return h, nil
}

// splitPort cuts the port off a host. A bare IPv6 address has none.
func splitPort(text string) (host, port string, err error) {
	if rest, ok := strings.CutPrefix(text, "["); ok {
		host, port, ok = strings.Cut(rest, "]")
		if !ok || !strings.Contains(host, ":") || port != "" && !strings.HasPrefix(port, ":") {
			return "", "", errors.New(`has brackets in the wrong place; write "[2001:db8::1]:8443"`)
		}
		return host, strings.TrimPrefix(port, ":"), nil
	}
	host, port, found := strings.Cut(text, ":")
	if strings.Contains(port, ":") {
		return text, "", nil
	}
	if found && port == "" {
		return "", "", errors.New("has a colon without a port; leave it out or add the port")
	}
	return host, port, nil
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '+' {
		return 0, errors.New("has a port that is not a number from 1 to 65535")
	}
	return uint16(n), nil
}

// errSpelling marks an address that is not written in the usual way, which is
// how checks are deceived.
var errSpelling = errors.New("is an address in an unusual spelling; write four decimal numbers, or IPv6 without a zone")

// canonicalHost returns either a name in lower case without a dot at its end, or
// an address. IPv4 inside of IPv6 becomes IPv4. Names beyond ASCII are
// refused, so that no two spellings mean one host.
func canonicalHost(host string) (string, netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", netip.Addr{}, errSpelling
		}
		return "", addr.Unmap(), nil
	}
	if strings.ContainsAny(host, ":%") {
		return "", netip.Addr{}, errSpelling
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if err := checkName(name); err != nil {
		return "", netip.Addr{}, err
	}
	if last := name[strings.LastIndexByte(name, '.')+1:]; isNumber(last) {
		return "", netip.Addr{}, errSpelling
	}
	return name, netip.Addr{}, nil
}

func checkName(name string) error {
	const mostName, mostLabel = 253, 63
	if name == "" {
		return errors.New("is empty; name a host")
	}
	if len(name) > mostName {
		return fmt.Errorf("is longer than the %d bytes of a host name", mostName)
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > mostLabel {
			return errors.New("has an empty or too long label between its dots")
		}
		for _, c := range []byte(label) {
			switch {
			case c >= 0x80:
				return errors.New("has letters beyond ASCII; write it in punycode (xn--...)")
			case !isAlphanumeric(c) && c != '-' && c != '_':
				return errors.New("has a character that no host name has")
			}
		}
	}
	return nil
}

// isNumber reports whether some resolvers read the last label of a host as a
// number, and the host as an address.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// match reports whether a target is in the set, and whether by a pattern
// that names it, which is any but "*".
func (s hostSet) match(t target) (ok, named bool) {
	for _, h := range s {
		if h.match(t) {
			ok = true
			named = named || !h.any
		}
	}
	return ok, named
}

func (h hostPattern) match(t target) bool {
	switch {
	case h.anyPort:
	case h.port == 0 && t.port != defaultPort(t.scheme), h.port != 0 && h.port != t.port:
		return false
	}
	switch {
	case h.any:
		return true
	case h.addr.IsValid() || t.addr.IsValid():
		return h.addr == t.addr
	case h.below:
		return strings.HasSuffix(t.name, "."+h.name)
	}
	return h.name == t.name
}
