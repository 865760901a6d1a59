package egress

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Policy is what an operator grants to one plugin. A zero limit means the
// default, never no limit.
type Policy struct {
	// Hosts are the hosts that may be asked: "api.example.com",
	// "*.example.com" (every name below, not example.com itself),
	// "api.example.com:8443", "198.51.100.7", "[2001:db8::1]:8443", and "*" for
	// any public host. Without a port, the scheme's own port is meant; ":*" means
	// any port. Case and a dot at the end do not matter. Empty grants nothing.
	Hosts []string
	// Private are addresses that are refused by default and may be reached all the
	// same, through a host that Hosts names otherwise than by "*". Refused by default is
	// everything that is not a public unicast address. The addresses at which clouds serve
	// credentials of the machine are granted only by a prefix of that single address.
	Private []netip.Prefix
	// Plain grants http as well as https.
	Plain bool
	// Methods default to GET, HEAD, POST, PUT, PATCH and DELETE. CONNECT and
	// TRACE cannot be granted.
	Methods []string
	// RequestBytes bounds a request body. Default 1 MiB.
	RequestBytes int
	// ResponseBytes bounds a response body. Default 4 MiB.
	ResponseBytes int
	// HeaderBytes bounds the headers of a request with its secrets, and the
	// headers of a response with those of the interim responses before it. Default 64 KiB.
	HeaderBytes int
	// Timeout bounds a whole call of Do: waiting for its turn, redirects and the
	// body. Default 10 s.
	Timeout time.Duration
	// Redirects is how many redirects are followed. Default 3. A negative number
	// means none: the redirect itself is the response.
	Redirects int
	// PerMinute is how many requests may be made, redirects included. It is the
	// size of a token bucket that fills within a minute. Default 60.
	PerMinute int
	// Concurrent is how many requests run at once; others wait. Default 4.
	Concurrent int
	// BytesPerMinute bounds what is sent and received, headers included, above
	// TLS. It is the size of a token bucket that fills within a minute. Default 64 MiB.
	BytesPerMinute int64
}

// withDefaults returns a copy with the defaults filled in, or names the first field that is wrong.
func (p Policy) withDefaults() (Policy, error) {
	if err := p.negative(); err != nil {
		return p, err
	}
	p.Hosts = slices.Clone(p.Hosts)
	p.Private = slices.Clone(p.Private)
	p.RequestBytes = cmp.Or(p.RequestBytes, 1<<20)
	p.ResponseBytes = cmp.Or(p.ResponseBytes, 4<<20)
	p.HeaderBytes = cmp.Or(p.HeaderBytes, 64<<10)
	p.Timeout = cmp.Or(p.Timeout, 10*time.Second)
	p.Redirects = cmp.Or(p.Redirects, 3)
	p.PerMinute = cmp.Or(p.PerMinute, 60)
	p.Concurrent = cmp.Or(p.Concurrent, 4)
	p.BytesPerMinute = cmp.Or(p.BytesPerMinute, 64<<20)
	methods, err := p.methods()
	p.Methods = methods
	return p, err
}

func (p Policy) negative() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"RequestBytes", int64(p.RequestBytes)},
		{"ResponseBytes", int64(p.ResponseBytes)},
		{"HeaderBytes", int64(p.HeaderBytes)},
		{"Timeout", int64(p.Timeout)},
		{"PerMinute", int64(p.PerMinute)},
		{"Concurrent", int64(p.Concurrent)},
		{"BytesPerMinute", p.BytesPerMinute},
	} {
		if f.value < 0 {
			return fmt.Errorf("%s %d is negative; use 0 for the default", "Policy."+f.name, f.value)
		}
	}
	// A buffer must be possible, and a slot costs memory at once.
	const mostBytes, mostConcurrent = 1 << 30, 1 << 16
	for _, f := range []struct {
		name        string
		value, most int
	}{
		{"RequestBytes", p.RequestBytes, mostBytes},
		{"ResponseBytes", p.ResponseBytes, mostBytes},
		{"HeaderBytes", p.HeaderBytes, mostBytes},
		{"Concurrent", p.Concurrent, mostConcurrent},
	} {
		if f.value > f.most {
			return fmt.Errorf("%s %d is too large; use at most %d", "Policy."+f.name, f.value, f.most)
		}
	}
	return nil
}

func (p Policy) methods() ([]string, error) {
	if len(p.Methods) == 0 {
		return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, nil
	}
	var out []string
	for i, m := range p.Methods {
		m = strings.ToUpper(m)
		switch {
		case !isToken(m):
			return nil, fmt.Errorf("Policy.Methods[%d] %s is not a method; write for example GET", i, quote(m))
		case m == "CONNECT" || m == "TRACE" || m == "TRACK":
			return nil, fmt.Errorf("Policy.Methods[%d] %s cannot be granted, because it undoes other checks; leave it out", i, m)
		}
		out = append(out, m)
	}
	return out, nil
}

// reach checks that the patterns can match anything at all.
func (p Policy) reach(hosts hostSet, addresses addresses) error {
	for i, h := range hosts {
		if h.addr.IsValid() && !addresses.allowed(h.addr, true) {
			return fmt.Errorf("Policy.Hosts[%d] %q is refused by default; add %s to Policy.Private as well",
				i, p.Hosts[i], netip.PrefixFrom(h.addr, h.addr.BitLen()))
		}
	}
	return nil
}

// isToken reports whether s is a token of RFC 9110: what methods and names of
// headers are made of.
func isToken(s string) bool {
	if s == "" {
		return false
	}
	for _, c := range []byte(s) {
		if !isAlphanumeric(c) && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
