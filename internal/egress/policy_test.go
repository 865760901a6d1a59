package egress_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/egress"
)

func TestNewNamesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	good := egress.Secret{Value: secret("0123456789"), Hosts: []string{"a.example.com"}}
	with := func(change func(s *egress.Secret)) egress.Config {
		s := good
		change(&s)
		return egress.Config{Secrets: map[string]egress.Secret{"key": s}}
	}
	policy := func(p egress.Policy) egress.Config { return egress.Config{Policy: p} }
	for _, c := range []struct {
		config egress.Config
		want   []string
	}{
		{policy(egress.Policy{Hosts: []string{"ok.com", "https://x.com"}}), []string{"Policy.Hosts[1]", "without a scheme"}},
		{policy(egress.Policy{Hosts: []string{""}}), []string{"Policy.Hosts[0]", "empty"}},
		{policy(egress.Policy{Hosts: []string{"a*.com"}}), []string{"star"}},
		{policy(egress.Policy{Hosts: []string{"*.10.0.0.1"}}), []string{"star before an address"}},
		{policy(egress.Policy{Hosts: []string{"x.com:"}}), []string{"colon"}},
		{policy(egress.Policy{Hosts: []string{"x.com:0"}}), []string{"port"}},
		{policy(egress.Policy{Hosts: []string{"x.com:99999"}}), []string{"port"}},
		{policy(egress.Policy{Hosts: []string{"bücher.example"}}), []string{"punycode"}},
		{policy(egress.Policy{Hosts: []string{"0x7f.1"}}), []string{"spelling"}},
		{policy(egress.Policy{Hosts: []string{"[fe80::1%eth0]"}}), []string{"zone"}},
		{policy(egress.Policy{Hosts: []string{"[::1"}}), []string{"brackets"}},
		{policy(egress.Policy{Hosts: []string{"u@x.com"}}), []string{"character"}},
		{policy(egress.Policy{Hosts: []string{"10.0.0.5"}}), []string{"Policy.Hosts[0]", "10.0.0.5/32", "Policy.Private"}},
		{policy(egress.Policy{Private: make([]netip.Prefix, 1)}), []string{"Policy.Private[0]", "10.0.0.0/8"}},
		{policy(egress.Policy{Private: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}}), []string{"Policy.Private[0]", "IPv4"}},
		{policy(egress.Policy{Methods: []string{"GET", "CONNECT"}}), []string{"Policy.Methods[1]", "CONNECT"}},
		{policy(egress.Policy{Methods: []string{"trace"}}), []string{"Policy.Methods[0]"}},
		{policy(egress.Policy{Methods: []string{"A B"}}), []string{"Policy.Methods[0]"}},
		{policy(egress.Policy{RequestBytes: -1}), []string{"Policy.RequestBytes", "use 0"}},
		{policy(egress.Policy{ResponseBytes: -1}), []string{"Policy.ResponseBytes"}},
		{policy(egress.Policy{HeaderBytes: 2 << 30}), []string{"Policy.HeaderBytes", "at most"}},
		{policy(egress.Policy{Timeout: -time.Second}), []string{"Policy.Timeout"}},
		{policy(egress.Policy{PerMinute: -1}), []string{"Policy.PerMinute"}},
		{policy(egress.Policy{Concurrent: -1}), []string{"Policy.Concurrent"}},
		{policy(egress.Policy{Concurrent: 1 << 20}), []string{"Policy.Concurrent", "at most"}},
		{policy(egress.Policy{BytesPerMinute: -1}), []string{"Policy.BytesPerMinute"}},
		{egress.Config{UserAgent: "a\r\nb"}, []string{"UserAgent"}},
		{with(func(s *egress.Secret) { s.Value = nil }), []string{`Secrets["key"]`, "Value"}},
		{with(func(s *egress.Secret) { s.Hosts = nil }), []string{`Secrets["key"]`, "Hosts"}},
		{with(func(s *egress.Secret) { s.Hosts = []string{"*"} }), []string{"Hosts[0]", "anywhere"}},
		{with(func(s *egress.Secret) { s.Hosts = []string{"a b"} }), []string{"Hosts[0]"}},
		{with(func(s *egress.Secret) { s.Headers = []string{"Proxy-Authorization"} }), []string{"Headers[0]"}},
		{with(func(s *egress.Secret) { s.Headers = []string{"host"} }), []string{"Headers[0]"}},
		{egress.Config{Secrets: map[string]egress.Secret{"a}}b": good}}, []string{"name", "letters"}},
		{egress.Config{Secrets: map[string]egress.Secret{strings.Repeat("n", 65): good}}, []string{"name"}},
	} {
		_, err := egress.New(c.config)
		if err == nil {
			t.Errorf("taken: %+v", c.config)
			continue
		}
		for _, want := range append(c.want, "egress: ") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
	}
}

func TestZeroConfigGrantsNothing(t *testing.T) {
	t.Parallel()
	b, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_ = refused(t, b, egress.Request{URL: "https://example.com/"}, egress.ReasonHost)
	_ = refused(t, b, egress.Request{URL: "http://example.com/"}, egress.ReasonScheme)
}

func TestPolicyIsCopied(t *testing.T) {
	t.Parallel()
	hosts := []string{"a.example.com"}
	secrets := map[string]egress.Secret{}
	b := broker(t, func(c *egress.Config) { c.Policy.Hosts, c.Secrets = hosts, secrets })
	hosts[0] = "b.example.com"
	secrets["late"] = egress.Secret{Value: func(context.Context) (string, error) { return "0123456789", nil }, Hosts: []string{"a.example.com"}}
	_ = refused(t, b, egress.Request{URL: "https://b.example.com/"}, egress.ReasonHost)
	_ = refused(t, b, egress.Request{
		URL: "https://a.example.com/", Header: map[string][]string{"Authorization": {"{{secret.late}}"}},
	}, egress.ReasonSecret)
}
