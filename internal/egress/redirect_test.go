package egress_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/egress"
)

// forward redirects with the status in the path to the URL in the query.
func forward(w http.ResponseWriter, r *http.Request) {
	status, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
	w.Header()["Location"] = []string{r.URL.Query().Get("to")}
	w.WriteHeader(status)
}

func TestRedirectsAreFollowed(t *testing.T) {
	t.Parallel()
	end := serve(t, "https", "b.example.com", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+string(body)+" "+r.Header.Get("Content-Type")+" "+r.Referer())
	})
	start := serve(t, "https", "a.example.com", forward)
	b := broker(t, nil)
	for _, c := range []struct{ method, status, want string }{
		{"GET", "301", "GET   "},
		{"POST", "301", "GET   "},
		{"POST", "302", "GET   "},
		{"PUT", "302", "PUT body text/plain "},
		{"POST", "303", "GET   "},
		{"DELETE", "303", "GET   "},
		{"POST", "307", "POST body text/plain "},
		{"PUT", "308", "PUT body text/plain "},
	} {
		req := egress.Request{Method: c.method, URL: start + "/" + c.status + "?to=" + end + "/x"}
		if c.method != "GET" {
			req.Body, req.Header = []byte("body"), http.Header{"Content-Type": {"text/plain"}}
		}
		resp := get(t, b, req)
		if string(resp.Body) != c.want || resp.URL != end+"/x" {
			t.Errorf("%s %s: %q from %s, want %q", c.method, c.status, resp.Body, resp.URL, c.want)
		}
	}
	if n := b.Stats().Redirects; n != 8 {
		t.Errorf("%d redirects counted", n)
	}
}

func TestRedirectsThatAreRefused(t *testing.T) {
	t.Parallel()
	start := serve(t, "https", "a.example.com", forward)
	_, port, _ := strings.Cut(strings.TrimPrefix(start, "https://"), ":")
	for name, c := range map[string]struct {
		to     string
		reason egress.Reason
	}{
		"host":        {"https://evil.test/", egress.ReasonHost},
		"relative":    {"//evil.test/", egress.ReasonHost},
		"address":     {"https://127.0.0.1:" + port + "/", egress.ReasonHost},
		"metadata":    {"https://169.254.169.254/latest/meta-data/", egress.ReasonHost},
		"decimal":     {"https://2130706433/", egress.ReasonAddress},
		"inside":      {"https://c.example.com/", egress.ReasonAddress},
		"downgrade":   {"http://a.example.com/", egress.ReasonScheme},
		"file":        {"file:///etc/passwd", egress.ReasonScheme},
		"javascript":  {"javascript:alert(1)", egress.ReasonScheme},
		"credentials": {"https://u:hush@b.example.com/", egress.ReasonCredentials},
		"unreadable":  {"https://b.example.com:x/", egress.ReasonMalformed},
		"long":        {"/" + strings.Repeat("a", 9000), egress.ReasonMalformed},
		"non-ASCII":   {"https://bücher.example.com/", egress.ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := broker(t, func(cfg *egress.Config) {
				cfg.Policy.Plain = false
				n := loopback()
				n["c.example.com"] = []string{"10.0.0.1"}
				cfg.Resolver = n
			})
			url := start + "/302?to=" + c.to
			if name == "long" {
				url = serve(t, "https", "a.example.com", func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Location", c.to)
					w.WriteHeader(http.StatusFound)
				})
			}
			r := refused(t, b, egress.Request{URL: url}, c.reason)
			if !strings.Contains(r.Detail, "redirect") {
				t.Errorf("it does not tell of the redirect: %v", r)
			}
			hidden(t, r.Error(), "hush", "?to", "10.0.0.1")
		})
	}
}

func TestRedirectMethodIsChecked(t *testing.T) {
	t.Parallel()
	start := serve(t, "https", "a.example.com", forward)
	b := broker(t, func(c *egress.Config) { c.Policy.Methods = []string{"POST"} })
	_ = refused(t, b, egress.Request{Method: "POST", URL: start + "/303?to=/"}, egress.ReasonMethod)
}

func TestRedirectLoopEnds(t *testing.T) {
	t.Parallel()
	start := serve(t, "https", "a.example.com", forward)
	b := broker(t, nil)
	loop := start + "/302?to=" // an empty Location is none
	if resp := get(t, b, egress.Request{URL: loop}); resp.Status != http.StatusFound {
		t.Errorf("status %d", resp.Status)
	}
	circle := serve(t, "https", "b.example.com", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	_ = refused(t, b, egress.Request{URL: circle}, egress.ReasonRedirect)
	if s := b.Stats(); s.Redirects != 3 {
		t.Errorf("%d redirects were followed", s.Redirects)
	}
}

func TestRedirectsCanBeLeftAlone(t *testing.T) {
	t.Parallel()
	start := serve(t, "https", "a.example.com", forward)
	b := broker(t, func(c *egress.Config) { c.Policy.Redirects = -1 })
	resp := get(t, b, egress.Request{URL: start + "/302?to=https://evil.test/"})
	if resp.Status != http.StatusFound || resp.Header.Get("Location") != "https://evil.test/" {
		t.Errorf("got %+v", resp)
	}
}

func TestRedirectsCostTheBudget(t *testing.T) {
	t.Parallel()
	start := serve(t, "https", "a.example.com", forward)
	b := broker(t, func(c *egress.Config) { c.Policy.PerMinute = 1 })
	r := refused(t, b, egress.Request{URL: start + "/302?to=/"}, egress.ReasonRate)
	if !strings.Contains(r.Detail, "redirect") {
		t.Errorf("got %v", r)
	}
}

func TestCredentialsStayWithTheirOrigin(t *testing.T) {
	t.Parallel()
	other := serve(t, "https", "b.example.com", mirror)
	start := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			mirror(w, r)
			return
		}
		forward(w, r)
	})
	b := broker(t, nil)
	given := http.Header{"authorization": {"Bearer guest"}, "COOKIE": {"a=b"}, "X-Other": {"stays"}, "Referer": {"https://a.example.com/private"}}
	h := seen(t, get(t, b, egress.Request{URL: start + "/302?to=/end", Header: given}))
	if h.Get("Authorization") != "Bearer guest" || h.Get("Cookie") != "a=b" {
		t.Errorf("the same origin got %v", h)
	}
	h = seen(t, get(t, b, egress.Request{URL: start + "/302?to=" + other, Header: given}))
	if h.Get("Authorization") != "" || h.Get("Cookie") != "" || h.Get("Referer") != "" || h.Get("X-Other") != "stays" {
		t.Errorf("the other origin got %v", h)
	}
	if given.Get("X-Other") != "stays" || len(given) != 4 {
		t.Errorf("the caller's headers were changed: %v", given)
	}
}

// What was taken out for one origin does not come back with the next redirect.
func TestCredentialsDoNotComeBack(t *testing.T) {
	t.Parallel()
	middle := serve(t, "https", "b.example.com", forward)
	start := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			mirror(w, r)
			return
		}
		forward(w, r)
	})
	b := broker(t, func(c *egress.Config) {
		c.Secrets = map[string]egress.Secret{"key": {Value: secret("correct-horse"), Hosts: []string{"a.example.com:*"}, Headers: []string{"X-Key"}}}
	})
	h := seen(t, get(t, b, egress.Request{
		URL:    start + "/302?to=" + middle + "/302?to=" + start + "/end",
		Header: http.Header{"Authorization": {"Bearer guest"}, "X-Key": {"{{secret.key}}"}},
	}))
	if h.Get("Authorization") != "" || h.Get("X-Key") != "" {
		t.Errorf("credentials came back: %v", h)
	}
}
