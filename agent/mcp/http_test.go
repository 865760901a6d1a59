package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent/mcp"
)

const token = "Bearer secret-token"

// overHTTP serves a handler, and configures it as a server.
func overHTTP(tb testing.TB, h http.Handler) mcp.ServerConfig {
	tb.Helper()
	site := httptest.NewServer(h)
	tb.Cleanup(site.Close)
	return mcp.ServerConfig{Name: "helper", URL: site.URL + "/secret-path/mcp?key=secret-key", Headers: map[string]string{"Authorization": token}}
}

// streamable serves tools. Sessions that a client left are closed at the end.
func streamable(tb testing.TB, opts *sdk.StreamableHTTPOptions) http.Handler {
	tb.Helper()
	server := newServer()
	tb.Cleanup(func() {
		for session := range server.Sessions() {
			_ = session.Close()
		}
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, opts)
}

// guarded refuses requests without the token.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != token {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func TestHTTP_calls(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*sdk.StreamableHTTPOptions{
		"stream": nil, "json": {JSONResponse: true}, "stateless": {Stateless: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := overHTTP(t, guarded(streamable(t, opts)))
			cfg.CallTimeout = 3 * time.Second
			s := openOne(t, cfg)
			wantEcho(t, s)
			if r := call(t, s, "fail", nil); r.Status != abi.ToolError || said(r) != "the disk is full" {
				t.Errorf("fail answered %+v", r)
			}
			if name == "stateless" { // this server would wait for the tool for ever
				return
			}
			if r := call(t, s, "hang", nil); !strings.Contains(said(r), "did not answer within") {
				t.Errorf("hang answered %+v", r)
			}
			wantEcho(t, s)
			call(t, s, "change", nil)
			eventually(t, "the new tool is listed", func() bool { return find(s, "new") != nil })
		})
	}
}

func TestHTTP_secrets(t *testing.T) {
	t.Parallel()
	var logged log
	cfg := overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	refused := overHTTP(t, guarded(streamable(t, nil)))
	refused.Name, refused.Headers = "refused", map[string]string{"Authorization": "Bearer secret-other"}
	down := cfg
	down.Name, down.URL = "down", "http://user:secret-password@127.0.0.1:1/secret-path?key=secret-key"
	s := open(t, mcp.Config{Servers: []mcp.ServerConfig{cfg, refused, down}, Logger: logged.logger()})
	for _, h := range s.Health() {
		if h.State == mcp.StateReady || h.LastError == "" {
			t.Errorf("health is %+v", h)
		}
		logged.logger().Info("health", "error", h.LastError)
	}
	if strings.Contains(logged.String(), "secret") {
		t.Errorf("there is a secret in the log: %s", &logged)
	}
}

func TestHTTP_redirects(t *testing.T) {
	t.Parallel()
	var stolen atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen.Store(r.Header.Get("Authorization") != "" || stolen.Load())
	}))
	defer thief.Close()
	s := openOne(t, overHTTP(t, http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect)))
	if h := s.Health()[0]; !strings.Contains(h.LastError, "another origin") || stolen.Load() {
		t.Errorf("health is %+v, stolen: %t", h, stolen.Load())
	}
	mux := http.NewServeMux()
	mux.Handle("/secret-path/mcp", http.RedirectHandler("/there", http.StatusTemporaryRedirect))
	mux.Handle("/there", guarded(streamable(t, nil)))
	wantEcho(t, openOne(t, overHTTP(t, mux)))
}

// TestHTTP_restart is about a server that comes back without its sessions.
func TestHTTP_restart(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[http.Handler]
	set := func(h http.Handler) { now.Store(&h) }
	set(streamable(t, nil))
	s := openOne(t, overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*now.Load()).ServeHTTP(w, r) })))
	wantEcho(t, s)
	set(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "starting", http.StatusServiceUnavailable) }))
	if r := call(t, s, "echo", map[string]any{"text": "hello"}); r.Status != abi.ToolError || !strings.Contains(said(r), "Service Unavailable") {
		t.Errorf("echo answered %+v", r)
	}
	set(streamable(t, nil))
	if r := call(t, s, "echo", map[string]any{"text": "hello"}); r.Status != abi.ToolError || !strings.Contains(said(r), "has ended") {
		t.Errorf("echo answered %+v", r)
	}
	eventually(t, "the session is renewed", func() bool { return s.Health()[0].Restarts > 0 && s.Health()[0].State == mcp.StateReady })
	wantEcho(t, s)
}

// method answers requests of one JSON-RPC method, or of GET, in another way.
func method(name string, other, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if r.Method == name || strings.Contains(string(data), `"`+name+`"`) {
			other.ServeHTTP(w, r)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(data)))
		h.ServeHTTP(w, r)
	})
}

func repeating(contentType, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for range 1 << 20 {
			if _, err := fmt.Fprint(w, text); err != nil {
				return
			}
		}
	})
}

func TestHTTP_floods(t *testing.T) {
	t.Parallel()
	changed := "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
	for name, h := range map[string]http.Handler{
		"json":   method("tools/call", repeating("application/json", strings.Repeat(" ", 1<<12)), streamable(t, nil)),
		"event":  method("tools/call", repeating("text/event-stream", "data: "+strings.Repeat("x", 1<<16)), streamable(t, nil)),
		"events": method("tools/call", repeating("text/event-stream", changed), streamable(t, nil)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openOne(t, overHTTP(t, h))
			if r := call(t, s, "echo", map[string]any{"text": "hello"}); r.Status != abi.ToolError {
				t.Errorf("echo answered %+v", r)
			}
			eventually(t, "the session is renewed", func() bool { return s.Health()[0].Restarts > 0 && s.Health()[0].State == mcp.StateReady })
		})
	}
	t.Run("unasked", func(t *testing.T) {
		t.Parallel()
		s := openOne(t, overHTTP(t, method(http.MethodGet, repeating("text/event-stream", changed), streamable(t, nil))))
		eventually(t, "the session is renewed", func() bool { return s.Health()[0].Restarts > 0 })
		if h := s.Health()[0]; !strings.Contains(h.LastError, "more notifications") {
			t.Errorf("health is %+v", h)
		}
	})
}

// TestHTTP_unansweredAnswers is about a server that asks and asks, and takes no answer.
func TestHTTP_unansweredAnswers(t *testing.T) {
	t.Parallel()
	ping := func(w http.ResponseWriter, i int) {
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"p%d\",\"method\":\"ping\"}\n\n", i)
	}
	asks := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 100 {
			ping(w, i)
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	deaf := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := open(t, mcp.Config{Grace: 50 * time.Millisecond, Servers: []mcp.ServerConfig{
		overHTTP(t, method("result", deaf, method("tools/call", asks, streamable(t, nil)))),
	}})
	if r := call(t, s, "echo", map[string]any{"text": "hello"}); !strings.Contains(said(r), "has ended: it sent more notifications and requests") {
		t.Errorf("echo answered %+v", r)
	}
}

// TestHTTP_noStream is about a server that accepts the request for its notifications and does not answer it.
func TestHTTP_noStream(t *testing.T) {
	t.Parallel()
	over, end := context.WithCancel(context.Background())
	cfg := overHTTP(t, method(http.MethodGet, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-over.Done():
		}
	}), streamable(t, nil)))
	t.Cleanup(end)
	cfg.StartTimeout = 2 * time.Second
	wantEcho(t, openOne(t, cfg))
}
