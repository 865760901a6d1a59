package egress_test

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/egress"
)

// turns is a resolver that answers differently each time.
type turns struct {
	mu      sync.Mutex
	answers [][]string
	asked   int
}

func (r *turns) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return parse(r.answers[min(r.asked, len(r.answers))-1]), nil
}

func TestNamesThatLeadInside(t *testing.T) {
	t.Parallel()
	for name, addrs := range map[string][]string{
		"loopback":      {"127.0.0.1"},
		"loopback6":     {"::1"},
		"mapped":        {"::ffff:127.0.0.1"},
		"private":       {"10.0.0.1"},
		"metadata":      {"169.254.169.254"},
		"mixed first":   {"127.0.0.1", "8.8.8.8"},
		"mixed last":    {"8.8.8.8", "8.8.4.4", "10.0.0.1"},
		"mixed 4 and 6": {"2606:4700::1", "fd00::1"},
		"nat64":         {"64:ff9b::127.0.0.1"},
		"zone":          {"fe80::1%lo"},
		"unspecified":   {"0.0.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, hosts := range [][]string{{"*"}, {"x.test"}, {"*.test"}} {
				b := broker(t, func(c *egress.Config) {
					c.Policy.Hosts, c.Policy.Private, c.Resolver = hosts, nil, names{"x.test": addrs}
				})
				r := refused(t, b, egress.Request{URL: "http://x.test/"}, egress.ReasonAddress)
				hidden(t, r.Error(), addrs...)
				if n := b.Stats().Connections; n != 0 {
					t.Errorf("%d connections were made", n)
				}
			}
		})
	}
}

func TestNoAddresses(t *testing.T) {
	t.Parallel()
	b := broker(t, func(c *egress.Config) { c.Resolver = names{"a.example.com": nil} })
	if _, err := b.Do(t.Context(), egress.Request{URL: "http://a.example.com/"}); err == nil || !strings.Contains(err.Error(), "no addresses") {
		t.Errorf("got %v", err)
	}
}

// The answer that was checked is the one that is dialled: a second question
// would get another answer.
func TestRebindingBetweenCheckAndDial(t *testing.T) {
	t.Parallel()
	url := serve(t, "http", "a.example.com", mirror)
	r := &turns{answers: [][]string{{"127.0.0.1"}, {"10.255.255.1"}}}
	b := broker(t, func(c *egress.Config) { c.Resolver = r })
	get(t, b, egress.Request{URL: url})
	if r.asked != 1 {
		t.Errorf("the resolver was asked %d times for one connection", r.asked)
	}
}

func TestRebindingForALaterConnection(t *testing.T) {
	t.Parallel()
	url := serve(t, "http", "a.example.com", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
	})
	r := &turns{answers: [][]string{{"127.0.0.1"}, {"10.255.255.1"}}}
	b := broker(t, func(c *egress.Config) { c.Resolver = r })
	get(t, b, egress.Request{URL: url})
	_ = refused(t, b, egress.Request{URL: url}, egress.ReasonAddress)
}

// "*" reaches no private address, also where another pattern may.
func TestStarReachesNoGrantedAddress(t *testing.T) {
	t.Parallel()
	url := serve(t, "http", "a.example.com", mirror)
	b := broker(t, func(c *egress.Config) {
		c.Policy.Hosts = []string{"*:*", "a.example.com:*"}
	})
	get(t, b, egress.Request{URL: url})
	_ = refused(t, b, egress.Request{URL: strings.Replace(url, "//a.", "//b.", 1)}, egress.ReasonAddress)
	_ = refused(t, b, egress.Request{URL: strings.Replace(url, "a.example.com", "127.0.0.1", 1)}, egress.ReasonAddress)
}

func TestLiteralAddress(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "127.0.0.1", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) })
	b := broker(t, func(c *egress.Config) { c.Policy.Hosts = []string{"127.0.0.1:*"} })
	if resp := get(t, b, egress.Request{URL: url}); "https://"+string(resp.Body) != url {
		t.Errorf("got %q", resp.Body)
	}
	mapped := strings.Replace(url, "127.0.0.1", "[::ffff:127.0.0.1]", 1)
	if resp := get(t, b, egress.Request{URL: mapped}); "https://"+string(resp.Body) != url {
		t.Errorf("got %q", resp.Body)
	}
}

func TestSecondAddressIsTried(t *testing.T) {
	t.Parallel()
	url := serve(t, "http", "a.example.com", mirror)
	b := broker(t, func(c *egress.Config) { c.Resolver = names{"a.example.com": {"127.9.9.9", "127.0.0.1"}} })
	get(t, b, egress.Request{URL: url})
}
