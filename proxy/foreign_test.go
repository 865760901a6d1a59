package proxy_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/proxy"
)

// Requests of web pages, also under a name that leads to this machine, and of other machines are refused, unless they have the token.
func TestForeign(t *testing.T) {
	t.Parallel()
	up := sends(t, "application/json", "{}")
	for name, c := range map[string]struct {
		host, peer string
		header     []string
		served     bool
	}{
		"this machine":     {"127.0.0.1:8430", "127.0.0.1:9", nil, true},
		"by name":          {"LocalHost", "127.0.0.1:9", nil, true},
		"IPv6":             {"[::1]:8430", "[::1]:9", nil, true},
		"typed in":         {"localhost", "127.0.0.1:9", []string{"Sec-Fetch-Site", "none"}, true},
		"a rebound name":   {"evil.example:8430", "127.0.0.1:9", []string{"Sec-Fetch-Site", "same-origin"}, false},
		"a name like one":  {"127.0.0.1.evil.example", "127.0.0.1:9", nil, false},
		"another page":     {"127.0.0.1:8430", "127.0.0.1:9", []string{"Sec-Fetch-Site", "cross-site"}, false},
		"a page's sibling": {"localhost:8430", "127.0.0.1:9", []string{"Sec-Fetch-Site", "same-site"}, false},
		"an origin":        {"127.0.0.1:8430", "127.0.0.1:9", []string{"Origin", "null"}, false},
		"another machine":  {"127.0.0.1:8430", "192.0.2.7:9", nil, false},
		"through a tunnel": {"localhost", "127.0.0.1:9", []string{"X-Forwarded-For", "192.0.2.7"}, false},
	} {
		for token, served := range map[string]bool{"": c.served, "right": true, "wrong": false, "none": false} {
			cfg := proxy.Config{Anthropic: proxy.Upstream{URL: up.URL}}
			if token != "" {
				cfg.Token = "right"
			}
			s, err := proxy.New(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(hello))
			r.Host, r.RemoteAddr = c.host, c.peer
			for i := 0; i+1 < len(c.header); i += 2 {
				r.Header.Set(c.header[i], c.header[i+1])
			}
			if token != "" && token != "none" {
				r.Header.Set("X-Mortise-Token", token)
			}
			r.Header.Set("Anthropic-Version", "2023-06-01")
			r.Header.Set("Connection", "X-Smuggled")
			r.Header.Set("X-Smuggled", "1")
			n := len(up.paths)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if got := w.Code == http.StatusOK && len(up.paths) == n+1; got != served || !served && len(up.paths) != n {
				t.Errorf("%s, token %q: %d %s", name, token, w.Code, w.Body)
			}
			if _, h := up.last(); h.Get("X-Mortise-Token")+h.Get("X-Smuggled") != "" {
				t.Errorf("%s: sent %v", name, h)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// trips notes where requests go.
type trips struct{ hosts []string }

func (t *trips) RoundTrip(r *http.Request) (*http.Response, error) {
	t.hosts = append(t.hosts, r.URL.Host)
	return nil, errors.New("not reached")
}

// No path of a client leads a request, with the operator's key, to another host than that of the upstream.
func TestForeign_path(t *testing.T) {
	t.Parallel()
	to := &trips{}
	up := proxy.Upstream{URL: "https://gateway.example", Key: "operators-key"}
	s, err := proxy.New(t.Context(), proxy.Config{Anthropic: up, OpenAI: up, ChatGPT: up, Transport: to})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	for _, path := range []string{"/v1@evil.example/x", "/v1.evil.example/x", "/v1:443@evil.example/x", "/v1", "/v1/x", "//evil.example/x", "*", "/to/x/@evil.example"} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.RemoteAddr, r.Host, r.URL = "127.0.0.1:9", "localhost", &url.URL{Path: path}
		r.Header.Set("Chatgpt-Account-Id", "a")
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	if len(to.hosts) < 6 || slices.ContainsFunc(to.hosts, func(host string) bool { return host != "gateway.example" }) {
		t.Errorf("requests went to %q", to.hosts)
	}
}
