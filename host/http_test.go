package host_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	httpcap "github.com/mortise-dev/mortise/host/capability/http"
	logcap "github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/engine"
)

// zone resolves names from a list, the first answer first; the last one stays.
type zone struct {
	mu      sync.Mutex
	answers map[string][]string
}

func (n *zone) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.answers[name]
	if len(all) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	if len(all) > 1 {
		n.answers[name] = all[1:]
	}
	return []netip.Addr{netip.MustParseAddr(all[0])}, nil
}

// loopback grants a server of the test by its address.
func loopback(servers ...*httptest.Server) *httpcap.Grant {
	grant := &httpcap.Grant{Plain: true, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, s := range servers {
		grant.Hosts = append(grant.Hosts, s.Listener.Addr().String())
	}
	return grant
}

// serve starts a server that ends with the test.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// httpInput is the JSON of a request.
func httpInput(t *testing.T, method, address string, headers map[string]string) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"method": method, "url": address, "headers": headers})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wantCode calls and expects a code and a part of its text.
func wantCode(t *testing.T, m *host.Module, export, input string, code engine.ErrorCode, text string) {
	t.Helper()
	out, err := m.Call(t.Context(), export, []byte(input))
	if err != nil {
		t.Errorf("%s(%.200s): %v", export, input, err)
		return
	}
	if got := int64(binary.LittleEndian.Uint64(out)); got != int64(code) || !strings.Contains(string(out[8:]), text) {
		t.Errorf("%s(%.200s): %d, %q; want %d, %q", export, input, got, out[8:], code, text)
	}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Errorf("body: %v", err)
			}
			w.Header().Set("X-Test", "yes")
			w.WriteHeader(http.StatusAccepted)
			if r.URL.Path != "/empty" {
				fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL, r.Header.Get("X-Guest"), body)
			}
		})
		grant := loopback(s)
		grant.ResponseHeaders = true
		m := load(t, e, host.Spec{Path: wat("http"), Grants: host.Grants{Capabilities: []host.Capability{grant}}})
		get := httpInput(t, "", s.URL+"/a?b=c", map[string]string{"X-Guest": "hello"})
		wantAnswer(t, m, "fetch", get, 1, "GET /a?b=c hello ")
		wantAnswer(t, m, "request", get, 1, "GET /a?b=c hello ")
		wantAnswer(t, m, "post", httpInput(t, "post", s.URL, nil), 1, "POST /  the guest's body")
		wantAnswer(t, m, "fetch", httpInput(t, "", s.URL+"/empty", nil), 0, "")
		wantAnswer(t, m, "about_nothing", "", 0, "{}")
		out, err := m.Call(t.Context(), "about", []byte(get))
		var headers map[string]string
		if err == nil {
			err = json.Unmarshal(out[8:], &headers)
		}
		if err != nil || out[0] != http.StatusAccepted || headers["x-test"] != "yes" || headers["content-type"] == "" {
			t.Errorf("%q, %v", out, err)
		}
		if s := m.Stats(); s.Uses["http"] != 5 || s.Denied != 0 {
			t.Errorf("%+v", s)
		}
		// Without the grant of the headers there are none.
		grant.ResponseHeaders = false
		m = load(t, e, host.Spec{Path: wat("http"), Grants: host.Grants{Capabilities: []host.Capability{grant}}})
		wantAnswer(t, m, "about", get, http.StatusAccepted, "")
	})
}

// TestHTTP_refused holds what a guest gets for a request that is not allowed.
func TestHTTP_refused(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		var hits atomic.Int64
		private := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/away":
				http.Redirect(w, r, private.URL+"/taken?secret=1", http.StatusFound)
			case "/large":
				_, _ = w.Write(make([]byte, 5001)) // the client goes away
			}
		})
		grant := loopback(s)
		grant.ResponseBytes, grant.RequestBytes, grant.Methods = 5000, 10, []string{"GET", "POST"}
		m := load(t, e, host.Spec{Path: wat("http"), Limits: host.Limits{Timeout: time.Minute}, Grants: host.Grants{Capabilities: []host.Capability{grant}}})
		denied := int64(0)
		for _, tt := range []struct {
			method, url string
			code        engine.ErrorCode
			text        string
		}{
			{"", private.URL + "/x?secret=1", engine.CodeDenied, "denied: http_fetch: " + private.URL + "/x: refused (host): "},
			{"", s.URL + "/away", engine.CodeDenied, "/taken: refused (host): after a redirect from"},
			{"", s.URL + "/large", engine.CodeTooLarge, "refused (response_too_large)"},
			{"DELETE", s.URL, engine.CodeDenied, "refused (method)"},
			{"", "ftp://" + s.Listener.Addr().String(), engine.CodeDenied, "refused (scheme)"},
			{"", strings.Replace(s.URL, "http://", "http://user:pass@", 1), engine.CodeDenied, "refused (credentials)"},
			{"", "http://127.0.0.1:1", engine.CodeDenied, "refused (host)"},
			{"", "http://2130706433", engine.CodeDenied, "refused (address)"},
			{"", "file:///etc/passwd", engine.CodeDenied, "refused"},
		} {
			in := httpInput(t, tt.method, tt.url, nil)
			wantCode(t, m, "fetch", in, tt.code, tt.text)
			_, err := m.Call(t.Context(), "request", []byte(in))
			wantFault(t, err, host.TrapDenied, "http_request: ")
			denied += 2
			if strings.Contains(fmt.Sprint(err), "secret=1") || strings.Contains(fmt.Sprint(err), "user:pass") {
				t.Errorf("the error tells too much: %v", err)
			}
		}
		wantCode(t, m, "post", httpInput(t, "POST", s.URL, nil), engine.CodeTooLarge, "refused (request_too_large)")
		wantCode(t, m, "fetch", "no JSON", engine.CodeInvalid, "is not JSON of the form")
		wantCode(t, m, "fetch", `{"url": 7}`, engine.CodeInvalid, "is not JSON of the form")
		wantCode(t, m, "nothing", "", engine.CodeInvalid, "there is no request")
		wantCode(t, m, "fetch", `{"url":"`+strings.Repeat("x", 300_000)+`"}`, engine.CodeTooLarge, "262144 are allowed")
		wantCode(t, m, "about_refused", httpInput(t, "", s.URL, nil), 0, "invalid: http_fetch: the request is not JSON")
		_, err := m.Call(t.Context(), "bogus", nil)
		wantFault(t, err, host.TrapFault, "there is no block at 900000")
		if s := m.Stats(); s.Denied != denied+2 || hits.Load() != 0 {
			t.Errorf("%+v; want %d denied; %d requests at a server that is not granted", s, denied+2, hits.Load())
		}
	})
}

// TestHTTP_names holds that a name does not lead to an address that is not granted,
// not even one that changes.
func TestHTTP_names(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		var hits atomic.Int64
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { hits.Add(1); fmt.Fprint(w, "fine") })
		_, port, err := net.SplitHostPort(s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		grant := &httpcap.Grant{
			Hosts: []string{"*:*", "inside.example.com:*"}, Plain: true, Resolver: &zone{answers: map[string][]string{
				"inside.example.com": {"127.0.0.1"}, "metadata.example.com": {"169.254.169.254"}, "private.example.com": {"10.0.0.1"},
			}},
		}
		m := load(t, e, host.Spec{Path: wat("http"), Grants: host.Grants{Capabilities: []host.Capability{grant}}})
		for _, name := range []string{"inside", "metadata", "private"} {
			wantCode(t, m, "fetch", httpInput(t, "", "http://"+name+".example.com:"+port, nil), engine.CodeDenied, "refused (address)")
		}
		wantCode(t, m, "fetch", httpInput(t, "", "http://none.example.com:"+port, nil), engine.CodeFailed, "name not resolved")
		if hits.Load() != 0 {
			t.Errorf("%d requests came through", hits.Load())
		}
		// Granted at first; then the name turns to an address that is not.
		turn := &zone{answers: map[string][]string{"turn.example.com": {"127.0.0.1", "127.0.0.2"}}}
		grant = &httpcap.Grant{
			Hosts: []string{"turn.example.com:" + port}, Plain: true, Resolver: turn, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		}
		s.Config.SetKeepAlivesEnabled(false)
		m = load(t, e, host.Spec{Path: wat("http"), Grants: host.Grants{Capabilities: []host.Capability{grant}}})
		in := httpInput(t, "", "http://turn.example.com:"+port, nil)
		wantAnswer(t, m, "fetch", in, 1, "fine")
		wantCode(t, m, "fetch", in, engine.CodeDenied, "refused (address)")
	})
}

// TestHTTP_time holds that a slow server ends with the grant's time, or with the
// guest's call.
func TestHTTP_time(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		slow := serve(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "a")
			if f, ok := w.(http.Flusher); ok {
				f.Flush()
			}
			<-r.Context().Done()
		})
		in := httpInput(t, "", slow.URL, nil)
		grant := loopback(slow)
		m := load(t, e, host.Spec{Path: wat("http"), Limits: host.Limits{Timeout: 100 * time.Millisecond}, Grants: host.Grants{Capabilities: []host.Capability{grant}}})
		for _, export := range []string{"fetch", "request"} {
			_, err := m.Call(t.Context(), export, []byte(in))
			wantDeadline(t, err)
		}
		grant.Timeout = 50 * time.Millisecond
		m = load(t, e, host.Spec{Path: wat("http"), Limits: host.Limits{Timeout: time.Minute}, Grants: host.Grants{Capabilities: []host.Capability{grant}}})
		wantCode(t, m, "fetch", in, engine.CodeTimeout, "refused (timeout)")
		_, err := m.Call(t.Context(), "request", []byte(in))
		wantFault(t, err, host.TrapFault, "refused (timeout)")

		grant.Timeout, grant.PerMinute = 0, 2
		quick := serve(t, func(http.ResponseWriter, *http.Request) {})
		grant.Hosts = append(grant.Hosts, quick.Listener.Addr().String())
		spec := host.Spec{Path: wat("http"), Grants: host.Grants{Capabilities: []host.Capability{grant}}}
		m = load(t, e, spec)
		in = httpInput(t, "", quick.URL, nil)
		wantAnswer(t, m, "fetch", in, 0, "")
		wantAnswer(t, m, "fetch", in, 0, "")
		wantCode(t, m, "fetch", in, engine.CodeQuota, "refused (rate)")
		if _, err := m.Swap(t.Context(), spec, host.SwapOptions{}); err != nil {
			t.Fatal(err)
		}
		wantCode(t, m, "fetch", in, engine.CodeQuota, "refused (rate)") // it has used the budget of the module
	})
}

// TestSecrets holds that a secret reaches the server alone.
func TestSecrets(t *testing.T) {
	t.Parallel()
	const value = "s3cr3t-v4lue-0f-the-test"
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		var got atomic.Value
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			auth := r.Header.Get("Authorization")
			got.Store(auth)
			// A server that repeats what it was sent, in every way that comes to mind.
			w.Header().Set("X-Echo", auth)
			for _, text := range []string{auth, base64.StdEncoding.EncodeToString([]byte(auth)), url.QueryEscape(auth), fmt.Sprintf("%x", auth)} {
				fmt.Fprintln(w, text)
			}
		})
		other := serve(t, func(_ http.ResponseWriter, r *http.Request) { got.Store(r.Header.Get("Authorization")) })
		grant := loopback(s, other)
		grant.ResponseHeaders = true
		grant.Secrets = map[string]httpcap.Secret{"token": {
			Value: func(context.Context) (string, error) { return value, nil }, Hosts: []string{s.Listener.Addr().String()}, Plain: true,
		}}
		var lines logBuffer
		h := newHost(t, host.Config{Engine: hosttest.Engine(e), Logger: logger(&lines, slog.LevelDebug)})
		m, err := h.Load(t.Context(), host.Spec{Path: wat("http"), Limits: host.Limits{Timeout: time.Minute}, Grants: host.Grants{Capabilities: []host.Capability{grant, logcap.Grant{}}}})
		if err != nil {
			t.Fatal(err)
		}
		in := httpInput(t, "", s.URL, map[string]string{"Authorization": "Bearer {{secret.token}}"})
		for _, export := range []string{"fetch", "about", "dump", "dump_memory"} {
			out, err := m.Call(t.Context(), export, []byte(in))
			if err != nil {
				t.Fatalf("%s: %v", export, err)
			}
			if got.Load() != "Bearer "+value {
				t.Errorf("%s: the server got %q", export, got.Load())
			}
			if !strings.Contains(string(out), "{{secret.token}}") {
				t.Errorf("%s: the answer does not hold the handle", export)
			}
			wantNoSecret(t, export, string(out), value)
		}
		got.Store("nothing")
		wantCode(t, m, "fetch", httpInput(t, "", other.URL, map[string]string{"Authorization": "{{secret.token}}"}), engine.CodeDenied, "refused (secret)")
		wantCode(t, m, "fetch", httpInput(t, "", s.URL, map[string]string{"X-Other": "{{secret.token}}"}), engine.CodeDenied, "refused (secret)")
		wantCode(t, m, "fetch", httpInput(t, "", s.URL, map[string]string{"Authorization": "{{secret.unknown}}"}), engine.CodeDenied, "refused (secret)")
		if got.Load() != "nothing" {
			t.Errorf("a refused request was sent with %q", got.Load())
		}
		_, err = m.Call(t.Context(), "request", []byte(httpInput(t, "", other.URL, map[string]string{"Authorization": "{{secret.token}}"})))
		wantFault(t, err, host.TrapDenied, "refused (secret)")
		wantNoSecret(t, "error", fmt.Sprint(err), value)
		wantNoSecret(t, "log", lines.String(), value)
	})
}

// wantNoSecret looks for a value as it is and as others write it.
func wantNoSecret(t *testing.T, where, text, value string) {
	t.Helper()
	for _, v := range []string{
		value, base64.StdEncoding.EncodeToString([]byte("Bearer " + value)), base64.StdEncoding.EncodeToString([]byte(value))[:20],
		url.QueryEscape(value), fmt.Sprintf("%x", value),
	} {
		if strings.Contains(text, v) {
			t.Errorf("%s holds the secret as %q", where, v)
		}
	}
}

func TestHTTP_badGrant(t *testing.T) {
	t.Parallel()
	value := func(context.Context) (string, error) { return "", nil }
	for want, g := range map[string]host.Grants{
		"http.Grant.Hosts is empty":                            {Capabilities: []host.Capability{&httpcap.Grant{}}},
		"http.Grant.Hosts[0]":                                  {Capabilities: []host.Capability{&httpcap.Grant{Hosts: []string{"a b"}}}},
		"http.Grant.ResponseBytes -1 is negative":              {Capabilities: []host.Capability{&httpcap.Grant{Hosts: []string{"*"}, ResponseBytes: -1}}},
		"http.Grant.Methods[0] TRACE":                          {Capabilities: []host.Capability{&httpcap.Grant{Hosts: []string{"*"}, Methods: []string{"trace"}}}},
		"Grants.Capabilities[1]: http is there twice":          {Capabilities: []host.Capability{&httpcap.Grant{Hosts: []string{"*"}}, &httpcap.Grant{}}},
		"Grants.Capabilities[0] is nil":                        {Capabilities: []host.Capability{nil}},
		`http.Grant.Secrets["a"]: its Value is nil`:            {Capabilities: []host.Capability{&httpcap.Grant{Hosts: []string{"*"}, Secrets: map[string]httpcap.Secret{"a": {}}}}},
		`http.Grant.Secrets["a"]: its Hosts[0] "*" would send`: {Capabilities: []host.Capability{&httpcap.Grant{Hosts: []string{"*"}, Secrets: map[string]httpcap.Secret{"a": {Value: value, Hosts: []string{"*"}}}}}},
	} {
		_, err := newHost(t, host.Config{}).Load(t.Context(), host.Spec{Path: wat("echo"), Grants: g})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	_, err := newHost(t, host.Config{}).Load(t.Context(), host.Spec{Path: wat("http")})
	if !errors.Is(err, host.ErrImport) || !strings.Contains(err.Error(), "needs the capability http; grant it (host/capability/http)") {
		t.Errorf("%v", err)
	}
}

// tlsServer is a server for example.com, with a grant of it.
func tlsServer(t *testing.T, handler http.HandlerFunc) (port string, grant *httpcap.Grant) {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, &httpcap.Grant{
		Hosts: []string{"example.com:" + port}, RootCAs: roots, Resolver: &zone{answers: map[string][]string{"example.com": {"127.0.0.1"}}},
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	}
}
