package egress_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/internal/egress"
)

func TestDo(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			url := serve(t, scheme, "a.example.com", func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("X-Saw", r.Method+" "+r.Host+" "+r.RequestURI+" "+r.UserAgent()+" "+r.Header.Get("X-Mine"))
				w.WriteHeader(http.StatusTeapot)
				_, _ = w.Write(body)
			})
			b := broker(t, nil)
			resp := get(t, b, egress.Request{
				Method: "post", URL: url + "/p?q=1#f", Header: http.Header{"x-mine": {"yes"}}, Body: []byte("hello"),
			})
			host := strings.TrimPrefix(url, scheme+"://")
			if want := "POST " + host + " /p?q=1 mortise yes"; resp.Header.Get("X-Saw") != want {
				t.Errorf("the server saw %q, want %q", resp.Header.Get("X-Saw"), want)
			}
			if resp.Status != http.StatusTeapot || string(resp.Body) != "hello" || resp.URL != url+"/p?q=1" {
				t.Errorf("got %d %q from %s", resp.Status, resp.Body, resp.URL)
			}
			s := b.Stats()
			if s.Requests != 1 || s.Failed != 0 || s.Connections != 1 || s.BytesIn < 100 || s.BytesOut < 100 {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}

func TestHeadAndEmptyBodies(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", "1000000000")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	b := broker(t, nil)
	for range 2 {
		if resp := get(t, b, egress.Request{Method: "HEAD", URL: url}); resp.Status != 200 || len(resp.Body) != 0 {
			t.Errorf("HEAD: %+v", resp)
		}
		if resp := get(t, b, egress.Request{Method: "DELETE", URL: url}); resp.Status != 204 || len(resp.Body) != 0 {
			t.Errorf("DELETE: %+v", resp)
		}
	}
	if n := b.Stats().Connections; n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestConnectionsAreUsedAgainForTheirOriginOnly(t *testing.T) {
	t.Parallel()
	b := broker(t, nil)
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) })
	for range 5 {
		get(t, b, egress.Request{URL: url})
	}
	if n := b.Stats().Connections; n != 1 {
		t.Errorf("%d connections to one origin, want 1", n)
	}
	other := strings.Replace(url, "//a.", "//b.", 1)
	if resp := get(t, b, egress.Request{URL: other}); !strings.HasPrefix(string(resp.Body), "b.") {
		t.Errorf("got %q", resp.Body)
	}
	if n := b.Stats().Connections; n != 2 {
		t.Errorf("%d connections to two origins on one address, want 2", n)
	}
}

func TestClosedIdleConnectionIsNotedOrRepeated(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	url := raw(t, func(c net.Conn) {
		served.Add(1)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	b := broker(t, nil)
	for i := range 20 {
		if resp := get(t, b, egress.Request{URL: url}); string(resp.Body) != "ok" {
			t.Fatalf("request %d: %q", i, resp.Body)
		}
	}
	if served.Load() != 20 {
		t.Errorf("served %d, want 20", served.Load())
	}
}

// A connection that dies with a request is tried again only where that is safe.
func TestOnlyIdempotentRequestsAreRepeated(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]int64{"GET": 3, "POST": 2} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			var heads atomic.Int64
			url := raw(t, func(c net.Conn) {
				heads.Add(1)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				if readHead(c) == nil { // the second request gets no answer
					heads.Add(1)
				}
			})
			b := broker(t, nil)
			get(t, b, egress.Request{URL: url})
			_, err := b.Do(t.Context(), egress.Request{Method: method, URL: url})
			if method == "GET" && err != nil || method == "POST" && !errors.Is(err, egress.ErrConnect) {
				t.Errorf("got %v", err)
			}
			if got := heads.Load(); got != want {
				t.Errorf("the server saw %d requests, want %d", got, want)
			}
		})
	}
}

// A server that sends more than it was asked for could have the surplus taken for
// the answer to the next request.
func TestSurplusIsNoAnswer(t *testing.T) {
	t.Parallel()
	for name, surplus := range map[string]string{
		"response": "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
		"noise":    "evil",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := raw(t, func(c net.Conn) {
				for {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"+surplus)
					if readHead(c) != nil {
						return
					}
				}
			})
			b := broker(t, nil)
			for range 5 {
				if resp := get(t, b, egress.Request{URL: url}); string(resp.Body) != "ok" {
					t.Fatalf("got %q", resp.Body)
				}
			}
			if n := b.Stats().Connections; n != 5 {
				t.Errorf("%d connections, want 5", n)
			}
		})
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 1)
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			arrived <- struct{}{}
			<-r.Context().Done()
		}
	})
	b := broker(t, nil)
	get(t, b, egress.Request{URL: url})
	ended := make(chan error, 1)
	go func() {
		_, err := b.Do(t.Context(), egress.Request{URL: url + "/hang"})
		ended <- err
	}()
	<-arrived
	b.Close()
	b.Close()
	if r, ok := errors.AsType[*egress.Refusal](<-ended); !ok || r.Reason != egress.ReasonClosed {
		t.Errorf("the request in progress ended with %v", r)
	}
	_ = refused(t, b, egress.Request{URL: url}, egress.ReasonClosed)
}

func TestCallersContextEndsDo(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 1)
	url := serve(t, "https", "a.example.com", func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	b := broker(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	_, err := b.Do(ctx, egress.Request{URL: url + "/path?token=hush"})
	if _, ok := errors.AsType[*egress.Refusal](err); ok || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	hidden(t, err.Error(), "hush", "127.0.0.1")
	if s := b.Stats(); s.Failed != 1 {
		t.Errorf("stats: %+v", s)
	}
}

func TestNetworkErrorsTellNothing(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port //nolint:errcheck // a TCP listener
	_ = l.Close()
	plain := serve(t, "http", "a.example.com", func(http.ResponseWriter, *http.Request) {})
	tlsURL := serve(t, "https", "a.example.com", func(http.ResponseWriter, *http.Request) {})
	drop := raw(t, func(net.Conn) {})
	garbage := raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "127.0.0.1 hush\r\n\r\n") })
	noRoots := broker(t, func(c *egress.Config) { c.RootCAs = nil })
	b := broker(t, func(c *egress.Config) {
		c.Policy.Hosts = append(c.Policy.Hosts, "wrong.test:*")
		n := loopback()
		n["wrong.test"] = []string{"127.0.0.1"}
		c.Resolver = n
	})
	for _, c := range []struct {
		b    *egress.Broker
		url  string
		want error
	}{
		{b, "http://a.example.com:" + strconv.Itoa(port), egress.ErrConnect},
		{b, "http://missing.example.com", egress.ErrResolve},
		{b, strings.Replace(plain, "http:", "https:", 1), egress.ErrTLS},
		{b, strings.Replace(tlsURL, "a.example.com", "wrong.test", 1), egress.ErrTLS},
		{noRoots, tlsURL, egress.ErrTLS},
		{b, drop, egress.ErrConnect},
		{b, garbage, egress.ErrProtocol},
	} {
		_, err := c.b.Do(t.Context(), egress.Request{URL: c.url + "/p?token=hush"})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.url, err, c.want)
			continue
		}
		hidden(t, err.Error(), "hush", "127.0.0.1", "10.9.8.7")
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Method) })
	b := broker(t, func(c *egress.Config) { c.Policy.Methods = []string{"get", "POST"} })
	for _, m := range []string{"", "GET", "get", "POST"} {
		get(t, b, egress.Request{Method: m, URL: url})
	}
	for _, m := range []string{"PUT", "CONNECT", "TRACE", "GET / HTTP/1.1\r\nX: y", "PROPFIND", " GET"} {
		_ = refused(t, b, egress.Request{Method: m, URL: url}, egress.ReasonMethod)
	}
	_ = refused(t, b, egress.Request{
		Method: "POST", URL: url, Header: http.Header{"X-HTTP-Method-Override": {"delete"}},
	}, egress.ReasonMethod)
	get(t, b, egress.Request{Method: "POST", URL: url, Header: http.Header{"X-HTTP-Method-Override": {"GET"}}})
}
