package egress_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/egress"
)

// FuzzHosts looks for two spellings of one host that are taken for different ones, and for
// hosts that match what they should not.
func FuzzHosts(f *testing.F) {
	for _, seed := range []string{"example.com", "*.example.com", "127.0.0.1:*", "[::1]:80", "*", "0x7f.1", "a..b", "xn--a", "EXAMPLE.com.", "[::ffff:1.2.3.4]"} {
		f.Add(seed, "https://"+seed+"/")
	}
	f.Fuzz(func(t *testing.T, pattern, raw string) {
		ok, named, err := egress.Matches([]string{pattern}, raw)
		if err != nil {
			return
		}
		if named && !ok {
			t.Fatal("named, and not matched")
		}
		sent, err := egress.Canonical(raw)
		if err != nil {
			t.Fatal(err)
		}
		again, err := egress.Canonical(sent)
		if err != nil || again != sent {
			t.Fatalf("%q becomes %q and then %q, %v", raw, sent, again, err)
		}
		if ok2, named2, err := egress.Matches([]string{pattern}, sent); ok2 != ok || named2 != named || err != nil {
			t.Fatalf("%q and %q are not the same to %q", raw, sent, pattern)
		}
		u, err := url.Parse(sent)
		if err != nil {
			t.Fatal(err)
		}
		if upper, _, err := egress.Matches([]string{strings.ToUpper(pattern)}, sent); err == nil && upper != ok {
			t.Fatalf("case counts in %q", pattern)
		}
		if !ok || strings.HasPrefix(pattern, "*") {
			return
		}
		// Whatever matched a plain pattern goes to that very host.
		want, _, _ := strings.Cut(strings.TrimPrefix(pattern, "["), "]")
		if !strings.Contains(pattern, "[") && strings.Count(pattern, ":") == 1 {
			want, _, _ = strings.Cut(pattern, ":")
		}
		name, addr, err := egress.CanonicalHost(want)
		if err != nil {
			t.Fatal(err)
		}
		if addr.IsValid() {
			name = addr.String()
		}
		if u.Hostname() != name {
			t.Fatalf("%q goes to %q by the pattern %q", raw, u.Hostname(), pattern)
		}
	})
}

// FuzzRedact looks for a value that survives, and for text that is changed without need.
func FuzzRedact(f *testing.F) {
	f.Add("before ", token, " after", uint8(0))
	f.Add(`{"a":"\`, "12345678", `%`, uint8(1))
	f.Add("\\u00", "%41%42%43", "&#", uint8(2))
	f.Add("", "aaaaaaaaaaaaa", "a", uint8(3))
	f.Add("%", "41414141", "%4", uint8(4))
	f.Add("%2", "5\\\\&amp;&amp;", "%4", uint8(5))
	f.Fuzz(func(t *testing.T, before, value, after string, form uint8) {
		if egress.Recognisable(value) < 8 || len(value) > 200 || strings.TrimSpace(value) != value || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return
		}
		shown := value
		switch form % 6 {
		case 1:
			shown = percent(value)
		case 2:
			if !utf8.ValidString(value) {
				return
			}
			shown = unicode(value)
		case 3:
			shown = quoted(value)
			if !utf8.ValidString(value) {
				return
			}
		case 4:
			shown = base64.StdEncoding.EncodeToString([]byte(value))
		case 5:
			shown = hex.EncodeToString([]byte(value))
		default:
		}
		// Fences keep an escape of the text around from reaching into the value.
		text := before + "\x00\x00" + shown + "\x00\x00" + after
		out, n, ok := egress.Redact([]byte(text), "k", value, 100*len(text)+100)
		if !ok || n == 0 {
			t.Fatalf("%q is not found in %q", value, text)
		}
		if rest := strings.ReplaceAll(out, "{{secret.k}}", ""); strings.Contains(rest, shown) {
			t.Fatalf("%q stays in %q", shown, out)
		}
		if len(before+after) < 7 && n == 1 && !strings.Contains(out, "{{secret.k}}") {
			t.Fatalf("no handle in %q", out)
		}
	})
}

// FuzzRequest gives hostile requests to a broker that grants one host, and looks
// for one that gets beyond it, or that is neither refused nor tried.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "https://a.example.com/", "Authorization", "Bearer {{secret.token}}")
	f.Add("POST", "http://a.example.com:80/?q", "X", "{{basic.token}}")
	f.Add("TRACE", "https://u:p@a.example.com/", "X\r\n", "{{secret.")
	f.Add("", "//a", "", "{{secret.{{secret.token}}}}")
	f.Fuzz(func(t *testing.T, method, raw, name, value string) {
		b := broker(t, func(c *egress.Config) {
			c.Policy.Hosts, c.Policy.Private = []string{"granted.test"}, nil
			c.Resolver = names{"granted.test": {"127.0.0.1"}}
			c.Secrets = map[string]egress.Secret{"token": {Value: secret(token), Hosts: []string{"granted.test"}, Headers: []string{"*"}}}
		})
		resp, err := b.Do(t.Context(), egress.Request{Method: method, URL: raw, Header: http.Header{name: {value}}})
		if err == nil {
			t.Fatalf("%q has a response: %+v", raw, resp)
		}
		hidden(t, err.Error(), token)
		if s := b.Stats(); s.Connections != 0 || s.Failed != 0 || len(s.Refused) != 1 {
			t.Fatalf("%q ended with %v: %+v", raw, err, s)
		}
	})
}
