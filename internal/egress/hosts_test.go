package egress_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/egress"
)

func TestHostsMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, url string
		ok, named    bool
	}{
		{"api.example.com", "https://api.example.com/", true, true},
		{"api.example.com", "https://API.Example.COM./", true, true},
		{"API.example.com.", "https://api.example.com/", true, true},
		{"api.example.com", "https://evilapi.example.com/", false, false},
		{"api.example.com", "https://api.example.com.evil.net/", false, false},
		{"api.example.com", "https://api.example.com:8443/", false, false},
		{"api.example.com", "http://api.example.com:443/", false, false},
		{"api.example.com", "http://api.example.com/", true, true},
		{"api.example.com:8443", "https://api.example.com:8443/", true, true},
		{"api.example.com:8443", "https://api.example.com/", false, false},
		{"api.example.com:*", "https://api.example.com:1/", true, true},
		{"*.example.com", "https://a.example.com/", true, true},
		{"*.example.com", "https://a.b.example.com/", true, true},
		{"*.example.com", "https://example.com/", false, false},
		{"*.example.com", "https://notexample.com/", false, false},
		{"*", "https://anything.net/", true, false},
		{"*", "https://anything.net:22/", false, false},
		{"*", "https://8.8.8.8/", true, false},
		{"8.8.8.8", "https://8.8.8.8/", true, true},
		{"8.8.8.8", "https://[::ffff:8.8.8.8]/", true, true},
		{"*.8", "https://8.8.8.8/", false, false},
		{"[2606:4700::1]:8443", "https://[2606:4700:0:0::1]:8443/", true, true},
		{"2606:4700::1", "https://[2606:4700::1]/", true, true},
		{"xn--bcher-kva.example", "https://XN--BCHER-KVA.example/", true, true},
	} {
		ok, named, err := egress.Matches([]string{c.pattern}, c.url)
		if c.pattern == "*.8" {
			if err == nil {
				t.Errorf("pattern %q is taken", c.pattern)
			}
			continue
		}
		if err != nil || ok != c.ok || named != c.named {
			t.Errorf("%q against %q = %v, %v, %v; want %v, %v", c.pattern, c.url, ok, named, err, c.ok, c.named)
		}
	}
	if ok, _, err := egress.Matches(nil, "https://example.com/"); ok || err != nil {
		t.Errorf("no hosts grant one: %v, %v", ok, err)
	}
}

func TestOddHostsAreRefused(t *testing.T) {
	t.Parallel()
	b := broker(t, func(c *egress.Config) { c.Policy.Hosts = []string{"*:*"} })
	for url, reason := range map[string]egress.Reason{
		"http://2130706433/":                  egress.ReasonAddress,
		"http://0x7f000001/":                  egress.ReasonAddress,
		"http://0x7f.1/":                      egress.ReasonAddress,
		"http://0X7F.0.0.0x1/":                egress.ReasonAddress,
		"http://0177.0.0.1/":                  egress.ReasonAddress,
		"http://127.1/":                       egress.ReasonAddress,
		"http://127.0.0.1./":                  egress.ReasonAddress,
		"http://0/":                           egress.ReasonAddress,
		"http://0x/":                          egress.ReasonAddress,
		"http://127.0.0.1/":                   egress.ReasonAddress, // "*" reaches no private address
		"http://[::1]/":                       egress.ReasonAddress,
		"http://[::]/":                        egress.ReasonAddress,
		"http://[::ffff:127.0.0.1]/":          egress.ReasonAddress,
		"http://[::ffff:7f00:1]/":             egress.ReasonAddress,
		"http://[::127.0.0.1]/":               egress.ReasonAddress,
		"http://[64:ff9b::7f00:1]/":           egress.ReasonAddress,
		"http://[2002:7f00:1::]/":             egress.ReasonAddress,
		"http://[fe80::1%25lo]/":              egress.ReasonAddress,
		"http://[2606:4700::1%25lo]/":         egress.ReasonAddress,
		"http://169.254.169.254/latest":       egress.ReasonAddress,
		"http://168.63.129.16/":               egress.ReasonAddress,
		"http://localhost%00.net/":            egress.ReasonMalformed,
		"http://a%2f.example.com/":            egress.ReasonMalformed,
		"http://①②⑦.0.0.1/":                   egress.ReasonMalformed,
		"http://ａ.example.com/":               egress.ReasonMalformed,
		"http://127。0。0。1/":                   egress.ReasonMalformed,
		"http://a..example.com/":              egress.ReasonMalformed,
		"http://.example.com/":                egress.ReasonMalformed,
		"http:///path":                        egress.ReasonMalformed,
		"http:a.example.com":                  egress.ReasonMalformed,
		"http://a.example.com:0/":             egress.ReasonMalformed,
		"http://a.example.com:65536/":         egress.ReasonMalformed,
		"http://a.example.com:80:80/":         egress.ReasonMalformed,
		"http://a.example.com/\r\nX: y":       egress.ReasonMalformed,
		"http://u@a.example.com/":             egress.ReasonCredentials,
		"http://u:p@a.example.com/":           egress.ReasonCredentials,
		"http://@a.example.com/":              egress.ReasonCredentials,
		"http://a.example.com:80@b.test/":     egress.ReasonCredentials,
		"ftp://a.example.com/":                egress.ReasonScheme,
		"file:///etc/passwd":                  egress.ReasonScheme,
		"//a.example.com/":                    egress.ReasonScheme,
		"":                                    egress.ReasonScheme,
		"http://" + strings.Repeat("a", 9000): egress.ReasonMalformed,
		"http://a.example.com/" + strings.Repeat("\xf5", 4000): egress.ReasonMalformed, // longer when it is escaped
		"http://" + strings.Repeat("a", 64) + ".net/":          egress.ReasonMalformed,
		"http://" + strings.Repeat("a.", 130) + "net/":         egress.ReasonMalformed,
		"http://a.example.com/{{secret.key}}":                  egress.ReasonSecret,
		"http://a.example.com\\@evil.net/":                     egress.ReasonMalformed,
		"http://[v1.fe80]/":                                    egress.ReasonMalformed,
		"https://a.example.com/" + strings.Repeat("%", 1):      egress.ReasonMalformed,
		"http://" + strings.Repeat("[", 3) + "::1" + "]/":      egress.ReasonMalformed,
		"http://a.example.com:+80/":                            egress.ReasonMalformed,
		"http://a.example.com\t/":                              egress.ReasonMalformed,
	} {
		if r := refused(t, b, egress.Request{URL: url}, reason); strings.Contains(r.Error(), "p@") {
			t.Errorf("%q tells credentials: %v", url, r)
		}
	}
	if n := b.Stats().Connections; n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestCanonicalURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"HTTPS://A.Example.com.:443?q#f":           "https://a.example.com/?q",
		"http://a.example.com:080/p%2Fq":           "http://a.example.com/p%2Fq",
		"http://a.example.com/?a b\u00e9\"<>":      "http://a.example.com/?a%20b%C3%A9%22%3C%3E",
		"http://[2606:4700:0:0::1]:80/":            "http://[2606:4700::1]/",
		"http://[::ffff:8.8.8.8]:8080/":            "http://8.8.8.8:8080/",
		"http://a.example.com/a?x HTTP/1.1":        "http://a.example.com/a?x%20HTTP/1.1",
		"http://a.example.com//b.example.com/../x": "http://a.example.com//b.example.com/../x",
	} {
		if got, err := egress.Canonical(in); err != nil || got != want {
			t.Errorf("%q is sent as %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	prefixes := func(texts ...string) (out []netip.Prefix) {
		for _, s := range texts {
			out = append(out, netip.MustParsePrefix(s))
		}
		return out
	}
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "169.254.169.254",
		"172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255",
		"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::1", "100::1",
		"2001::1", "2001:2::1", "2001:10::1", "2001:db8::1", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254",
		"fe80::1", "fec0::1", "ff02::1", "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:a00:1", "4000::1", "fe80::1%eth0", "2606:4700::1%eth0",
	} {
		if ok, err := egress.Allowed(nil, netip.MustParseAddr(text), true); ok || err != nil {
			t.Errorf("%s is allowed: %v", text, err)
		}
	}
	for _, text := range []string{
		"8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.1", "100.128.0.1", "192.0.1.1", "223.255.255.255", "::ffff:8.8.8.8",
		"64:ff9b::8.8.8.8", "2606:4700::1", "2a00:1450::1", "2606:4700::5efe:8.8.8.8",
	} {
		if ok, err := egress.Allowed(nil, netip.MustParseAddr(text), false); !ok || err != nil {
			t.Errorf("%s is refused: %v", text, err)
		}
	}
	granted := prefixes("10.1.0.0/16", "169.254.0.0/16", "fd00::/8", "100.100.100.200/32", "168.0.0.0/8")
	for text, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "169.254.1.1": true, "169.254.169.254": false,
		"fd00:ec2::254": false, "fd00:ec2::255": true, "100.100.100.200": true, "168.63.129.16": false, "64:ff9b::10.1.2.3": false,
	} {
		if ok, err := egress.Allowed(granted, netip.MustParseAddr(text), true); ok != want || err != nil {
			t.Errorf("%s with grants = %v, %v; want %v", text, ok, err, want)
		}
	}
	if ok, _ := egress.Allowed(granted, netip.MustParseAddr("10.1.2.3"), false); ok {
		t.Error(`a grant counts for a host that only "*" matches`)
	}
}
