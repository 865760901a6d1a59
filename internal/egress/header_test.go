package egress_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/egress"
)

// mirror answers with the headers that it saw.
func mirror(w http.ResponseWriter, r *http.Request) {
	r.Header.Set("Host", r.Host)
	_ = json.NewEncoder(w).Encode(r.Header)
}

func seen(tb testing.TB, resp *egress.Response) http.Header {
	tb.Helper()
	var h http.Header
	if err := json.Unmarshal(resp.Body, &h); err != nil {
		tb.Fatalf("%q: %v", resp.Body, err)
	}
	return h
}

func TestHeadersThatAreRefused(t *testing.T) {
	t.Parallel()
	b := broker(t, nil)
	for name, value := range map[string]string{
		"X-A":                 "b\r\nX-C: d",
		"X-B":                 "b\nc",
		"X-C":                 "b\x00c",
		"X-D\r\nX-E":          "f",
		"X G":                 "h",
		"X:":                  "i",
		"":                    "j",
		"é":                   "k",
		"host":                "b.example.com",
		"Connection":          "close",
		"keep-alive":          "1",
		"Content-Length":      "5",
		"transfer-encoding":   "chunked",
		"Upgrade":             "websocket",
		"Proxy-Authorization": "Basic x",
		"proxy-connection":    "x",
		"TE":                  "trailers",
		"Trailer":             "X",
		"Expect":              "100-continue",
		"Accept-Encoding":     "gzip",
		"Via":                 "1.1 x",
		"Forwarded":           "for=127.0.0.1",
		"X-Forwarded-For":     "127.0.0.1",
		"X-Real-IP":           "127.0.0.1",
	} {
		_ = refused(t, b, egress.Request{URL: "https://a.example.com/", Header: http.Header{name: {"fine", value}}}, egress.ReasonHeader)
		_ = refused(t, b, egress.Request{URL: "https://a.example.com/", Header: http.Header{name: {value}}}, egress.ReasonHeader)
	}
	if n := b.Stats().Connections; n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestHeadersThatAreSent(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", mirror)
	b := broker(t, nil)
	host := strings.TrimPrefix(url, "https://")
	h := seen(t, get(t, b, egress.Request{Method: "POST", URL: url, Body: []byte("12345"), Header: http.Header{
		"host": {host}, "content-length": {"5"}, "accept-encoding": {"identity"}, "cookie": {"a=b"}, "x-two": {"1", "2"},
	}}))
	for name, want := range map[string]string{
		"Host": host, "Content-Length": "5", "Accept-Encoding": "identity", "Cookie": "a=b", "X-Two": "1,2", "User-Agent": "mortise",
		"Referer": "", "Connection": "",
	} {
		if got := strings.Join(h[name], ","); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestCookiesAreNotKept(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "x", Secure: true, HttpOnly: true})
		mirror(w, r)
	})
	b := broker(t, nil)
	for range 2 {
		if h := seen(t, get(t, b, egress.Request{URL: url})); h.Get("Cookie") != "" {
			t.Errorf("a cookie was sent: %v", h)
		}
	}
}

func TestEnvironmentProxyIsNotUsed(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	url := serve(t, "https", "a.example.com", mirror)
	get(t, broker(t, nil), egress.Request{URL: url})
}

func TestRequestTooLarge(t *testing.T) {
	t.Parallel()
	b := broker(t, func(c *egress.Config) { c.Policy.RequestBytes, c.Policy.HeaderBytes = 10, 200 })
	_ = refused(t, b, egress.Request{Method: "POST", URL: "https://a.example.com", Body: make([]byte, 11)}, egress.ReasonRequestTooLarge)
	_ = refused(t, b, egress.Request{
		URL: "https://a.example.com", Header: http.Header{"X-A": {strings.Repeat("a", 201)}},
	}, egress.ReasonHeadersTooLarge)
	many := http.Header{}
	for i := range 60 {
		many["X-"+strings.Repeat("a", i+1)] = []string{""}
	}
	_ = refused(t, b, egress.Request{URL: "https://a.example.com", Header: many}, egress.ReasonHeadersTooLarge)
}
