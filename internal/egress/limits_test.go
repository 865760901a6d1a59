package egress_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/egress"
)

// endless writes a text again and again until the other side is gone.
func endless(c net.Conn, text string) {
	for {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// drip writes a text a byte at a time, with a pause, and then continues with the last byte.
func drip(c net.Conn, text string) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for i := 0; ; i++ {
		if _, err := c.Write([]byte{text[min(i, len(text)-1)]}); err != nil {
			return
		}
		<-ticker.C
	}
}

func TestHostileServers(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, c := range map[string]struct {
		handle func(c net.Conn)
		want   egress.Reason
	}{
		"declared too large": {func(c net.Conn) { _, _ = io.WriteString(c, ok+"Content-Length: 2000\r\n\r\nx") }, egress.ReasonResponseTooLarge},
		"declared enormous": {func(c net.Conn) {
			_, _ = io.WriteString(c, ok+"Content-Length: 9223372036854775807\r\n\r\n")
		}, egress.ReasonResponseTooLarge},
		"endless chunks": {func(c net.Conn) {
			_, _ = io.WriteString(c, ok+"Transfer-Encoding: chunked\r\n\r\n")
			endless(c, "64\r\n"+strings.Repeat("x", 100)+"\r\n")
		}, egress.ReasonResponseTooLarge},
		"endless stream": {func(c net.Conn) {
			_, _ = io.WriteString(c, ok+"\r\n")
			endless(c, "xxxxxxxx")
		}, egress.ReasonResponseTooLarge},
		"endless headers": {func(c net.Conn) {
			_, _ = io.WriteString(c, ok)
			endless(c, "X-A: b\r\n")
		}, egress.ReasonHeadersTooLarge},
		"endless header line": {func(c net.Conn) {
			_, _ = io.WriteString(c, ok+"X-A: ")
			endless(c, "bbbbbbbb")
		}, egress.ReasonHeadersTooLarge},
		"endless status line": {func(c net.Conn) { endless(c, "HTTP/1.1 200 ") }, egress.ReasonHeadersTooLarge},
		"interim flood":       {func(c net.Conn) { endless(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n") }, egress.ReasonHeadersTooLarge},
		"slow headers":        {func(c net.Conn) { drip(c, ok+"X-Slow: xxxx") }, egress.ReasonTimeout},
		"slow body":           {func(c net.Conn) { drip(c, ok+"Content-Length: 1000\r\n\r\nx") }, egress.ReasonTimeout},
		"slow chunk":          {func(c net.Conn) { drip(c, ok+"Transfer-Encoding: chunked\r\n\r\n200\r\nx") }, egress.ReasonTimeout},
		"silence":             {func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }, egress.ReasonTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := raw(t, c.handle)
			b := broker(t, func(cfg *egress.Config) {
				cfg.Policy.ResponseBytes, cfg.Policy.HeaderBytes = 1000, 1000
				cfg.Policy.Timeout = 10 * time.Second
				if c.want == egress.ReasonTimeout {
					cfg.Policy.Timeout = 200 * time.Millisecond
				}
			})
			_ = refused(t, b, egress.Request{URL: url}, c.want)
			if s := b.Stats(); s.Refused[c.want] != 1 || s.BytesIn > 8000 {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}

// What is broken is an error, never a short success.
func TestBrokenResponses(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, text := range map[string]string{
		"cut body":          ok + "Content-Length: 10\r\n\r\nhalf",
		"cut chunk":         ok + "Transfer-Encoding: chunked\r\n\r\n10\r\nhalf",
		"no last chunk":     ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"cut headers":       ok + "X-A: b\r\n",
		"two lengths":       ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"bad length":        ok + "Content-Length: -1\r\n\r\n",
		"bad chunk":         ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
		"unknown encoding":  ok + "Transfer-Encoding: gzip\r\n\r\n",
		"bad header":        ok + "no colon\r\n\r\n",
		"bad status":        "HTTP/1.1 abc OK\r\n\r\n",
		"status zero":       "HTTP/1.1 000 OK\r\n\r\n",
		"another protocol":  "SSH-2.0-OpenSSH_9.6\r\n\r\n",
		"switched":          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
		"endless trailer":   ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nX-T: " + strings.Repeat("x", 100_000),
		"long chunk header": ok + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := raw(t, func(c net.Conn) { _, _ = io.WriteString(c, text) })
			b := broker(t, nil)
			resp, err := b.Do(t.Context(), egress.Request{URL: url})
			if !errors.Is(err, egress.ErrProtocol) {
				t.Errorf("got %v, %v", resp, err)
			}
		})
	}
}

// TLS tells a stream that was cut from one that ended.
func TestCutStreamOverTLS(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, _ *http.Request) {
		c, buf, err := w.(http.Hijacker).Hijack() //nolint:errcheck // HTTP/1.1 can
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buf.WriteString("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf")
		_ = buf.Flush()
		_ = c.(interface{ NetConn() net.Conn }).NetConn().Close() //nolint:errcheck // a TLS connection
	})
	b := broker(t, nil)
	if resp, err := b.Do(t.Context(), egress.Request{URL: url}); !errors.Is(err, egress.ErrProtocol) {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestLimitsAreExact(t *testing.T) {
	t.Parallel()
	for _, chunked := range []bool{false, true} {
		url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, _ *http.Request) {
			if chunked {
				w.(http.Flusher).Flush() //nolint:errcheck // it can
			}
			_, _ = io.WriteString(w, strings.Repeat("x", 100))
		})
		of := func(limit int) *egress.Broker {
			return broker(t, func(c *egress.Config) { c.Policy.ResponseBytes = limit })
		}
		if resp := get(t, of(100), egress.Request{URL: url}); len(resp.Body) != 100 {
			t.Errorf("%d bytes", len(resp.Body))
		}
		_ = refused(t, of(99), egress.Request{URL: url}, egress.ReasonResponseTooLarge)
	}
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"
	url := raw(t, func(c net.Conn) { _, _ = io.WriteString(c, head+strings.Repeat("x", 500)) })
	b := broker(t, func(c *egress.Config) { c.Policy.HeaderBytes = max(len(head), 60) })
	get(t, b, egress.Request{URL: url, Header: http.Header{"User-Agent": {""}}})
}

// A server may answer before it has read everything, and need not read at all.
func TestServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	url := raw(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
		<-hold
	})
	t.Cleanup(func() { close(hold) }) // before the server is ended
	b := broker(t, func(c *egress.Config) { c.Policy.RequestBytes = 64 << 20; c.Policy.BytesPerMinute = 1 << 30 })
	resp := get(t, b, egress.Request{Method: "POST", URL: url, Body: make([]byte, 64<<20)})
	if resp.Status != http.StatusRequestEntityTooLarge || string(resp.Body) != "no" {
		t.Errorf("got %d %q", resp.Status, resp.Body)
	}
	get(t, b, egress.Request{URL: url}) // not on the connection that is full
	if n := b.Stats().Connections; n != 2 {
		t.Errorf("%d connections", n)
	}
}

func TestTimeoutCoversRedirectsAndWaiting(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			<-r.Context().Done()
			return
		}
		http.Redirect(w, r, "/hang", http.StatusFound)
	})
	b := broker(t, func(c *egress.Config) { c.Policy.Timeout, c.Policy.Concurrent = 200*time.Millisecond, 1 })
	ended := make(chan string, 3)
	for range 3 {
		go func() {
			_, err := b.Do(t.Context(), egress.Request{URL: url})
			r, _ := errors.AsType[*egress.Refusal](err)
			if r == nil || r.Reason != egress.ReasonTimeout {
				ended <- fmt.Sprint(err)
				return
			}
			ended <- ""
		}()
	}
	for range 3 {
		if got := <-ended; got != "" {
			t.Errorf("a request did not end with its timeout: %s", got)
		}
	}
}
