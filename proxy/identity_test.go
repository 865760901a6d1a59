package proxy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy"
)

// quiet has hooks at all phases and no opinion.
type quiet struct{}

func (quiet) Describe() abi.Description {
	d := abi.Description{Name: "quiet"}
	for _, p := range abi.Phases() {
		mode := abi.ModeTransform
		if p == abi.ToolGate {
			mode = abi.ModeGate
		}
		d.Hooks = append(d.Hooks, abi.Hook{Phase: p, Mode: mode, Messages: abi.ViewAll})
	}
	return d
}

func (quiet) OnPhase(context.Context, *abi.Event) (*abi.Reply, error) { return nil, nil }

// watching is a quiet one that cannot replace answers, so that they stream on.
type watching struct{ quiet }

func (w watching) Describe() abi.Description {
	d := w.quiet.Describe()
	for i := range d.Hooks {
		if d.Hooks[i].Phase == abi.AfterInference {
			d.Hooks[i].Mode = abi.ModeObserve
		}
	}
	return d
}

func runtimeOf(tb testing.TB, plugins ...phases.Plugin) *phases.Runtime {
	tb.Helper()
	rt, err := phases.New(phases.Config{Plugins: plugins, HookTimeout: time.Minute})
	if err != nil {
		tb.Fatal(err)
	}
	return rt
}

// Bytes are identical both ways for all recorded bodies, however they arrive, also when there are plugins without an
// opinion (spec 08, acceptance 1 and 2).
func TestIdentity(t *testing.T) {
	t.Parallel()
	pairs := recorded(t)
	for name, cfg := range map[string]proxy.Config{"bare": {}, "plugins": {Runtime: runtimeOf(t, quiet{})}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(1, 2))
			var now pair
			up := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", now.contentType)
				w.Header().Set("Anthropic-Ratelimit-Requests-Remaining", "49")
				for rest := now.response; rest != ""; {
					n := min(len(rest), 1+rnd.IntN(200))
					_, _ = io.WriteString(w, rest[:n])
					rest = rest[n:]
					_ = http.NewResponseController(w).Flush()
				}
			})
			s := start(t, up.URL, cfg)
			for _, p := range pairs {
				now = p
				resp, got := post(t, s.url+p.path, p.request)
				if string(got) != p.response {
					t.Errorf("%s: the answer is another one:\n%q\n%q", p.name, got, p.response)
				}
				if sent, _ := up.last(); string(sent) != p.request {
					t.Errorf("%s: the request is another one:\n%s\n%s", p.name, sent, p.request)
				}
				if resp.Header.Get("Anthropic-Ratelimit-Requests-Remaining") != "49" {
					t.Errorf("%s: a header is gone", p.name)
				}
			}
			if s.Report().Counts["panics"] != 0 {
				t.Error(s.Report().Counts)
			}
		})
	}
}

// Headers, paths, methods and queries pass as they are (acceptance 3 to 6).
func TestPass(t *testing.T) {
	t.Parallel()
	up := newTape(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/redirect":
			w.Header().Set("Location", "https://elsewhere.example/x")
			w.WriteHeader(http.StatusFound)
		case "/v1/nothing":
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Request-Id", "req_1")
			w.Header()["X-Twice"] = []string{"a", "b"}
		}
	})
	s := start(t, up.URL, proxy.Config{})
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{http.MethodHead, "/", 200},
		{http.MethodGet, "/v1/models?limit=1&x=%20", 200},
		{http.MethodDelete, "/v1/files/a%2Fb", 200},
		{http.MethodPut, "/anything", 200},
		{http.MethodGet, "/v1/redirect", 302},
		{http.MethodGet, "/v1/nothing", 204},
		{http.MethodPost, "/v1/messages", 200},
		{http.MethodGet, "/v1/responses/resp_1?", 200},
	} {
		r, _ := http.NewRequestWithContext(context.Background(), c.method, s.url+c.path, http.NoBody)
		r.Header.Set("X-Unknown", "y")
		r.Header["User-Agent"] = nil
		resp, err := (&http.Transport{DisableCompression: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		up.mu.Lock()
		path, h := up.paths[len(up.paths)-1], up.headers[len(up.headers)-1]
		up.mu.Unlock()
		if resp.StatusCode != c.status || path != c.method+" "+c.path {
			t.Errorf("%s %s: %d, upstream got %s", c.method, c.path, resp.StatusCode, path)
		}
		if h.Get("X-Unknown") != "y" || h.Get("User-Agent") != "" || h.Get("Accept-Encoding") != "" || h.Get("X-Forwarded-For") != "" {
			t.Errorf("%s: headers %v", c.path, h)
		}
		if c.status == 200 && len(resp.Header["X-Twice"]) != 2 {
			t.Errorf("%s: answer's headers %v", c.path, resp.Header)
		}
	}
}

// An upgrade gets 426 at once (F16).
func TestUpgrade(t *testing.T) {
	t.Parallel()
	up := newTape(t, func(http.ResponseWriter, *http.Request) {})
	s := start(t, up.URL, proxy.Config{})
	r, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, s.url+"/v1/responses", http.NoBody)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUpgradeRequired || len(up.paths) != 0 {
		t.Errorf("status %d, upstream %v", resp.StatusCode, up.paths)
	}
}

const hello = `{"model":"claude-sonnet-4-5","max_tokens":10,"stream":true,"messages":[{"role":"user","content":"hi"}]}`

// A client that leaves ends the request upstream, also before the first byte (F31, acceptance 10).
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		gone, came := make(chan struct{}), make(chan struct{})
		up := newTape(t, func(w http.ResponseWriter, r *http.Request) {
			if begun {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "event: ping\ndata: {\"type\":\"ping\"}\n\n")
				_ = http.NewResponseController(w).Flush()
			}
			close(came)
			<-r.Context().Done()
			close(gone)
		})
		s := start(t, up.URL, proxy.Config{})
		ctx, cancel := context.WithCancel(context.Background())
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/messages", strings.NewReader(hello))
		go func() {
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}()
		<-came
		cancel()
		at := time.Now()
		select {
		case <-gone:
		case <-time.After(5 * time.Second):
			t.Fatal("the request upstream continues")
		}
		t.Logf("cancelled after %s", time.Since(at))
		wait(t, "the request ends", func() bool { return s.Report().Counts["active"] == 0 })
	}
}

// An upstream that breaks off is a broken answer, and no invented end (acceptance 11).
func TestCut(t *testing.T) {
	t.Parallel()
	up := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\nevent: con")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	for name, cfg := range map[string]proxy.Config{"bare": {}, "plugins": {Runtime: runtimeOf(t, quiet{})}} {
		s := start(t, up.URL, cfg)
		resp, err := http.Post(s.url+"/v1/messages", "application/json", strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil || strings.Contains(string(b), "message_stop") {
			t.Errorf("%s: err %v, got %q", name, err, b)
		}
	}
}

// gated has a gate rewrite a call in a compressed stream, of which the client gets plain events.
func gated(t *testing.T, coding string, pack func(string) []byte) {
	t.Helper()
	stream := strings.Replace(streamed, "event: message_delta", "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"bash\",\"input\":{}}}\n\n"+
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\nevent: message_delta", 1)
	up := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", coding)
		_, _ = w.Write(pack(stream))
	})
	s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, hook{
		name: "rewrite", hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeTransform}},
		answer: func(*abi.Event) (*abi.Reply, error) {
			return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectRewriteCall, Arguments: map[string]any{"command": "safe"}}}}, nil
		},
	})})
	resp, got := post(t, s.url+"/v1/messages", string(pack(hello)), "Content-Encoding", coding)
	if !contains(got, `{\"command\":\"safe\"}`) || !contains(got, "hello") || resp.Header.Get("Content-Encoding") != "" {
		t.Errorf("%s: gated: %q", coding, got)
	}
}

// Compressed bodies pass as they are, and are plain when something may act (F15, acceptance 8).
func TestCompressed(t *testing.T) {
	t.Parallel()
	codings := map[string]func(io.Writer) io.WriteCloser{
		"gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"br":   func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
	}
	stream := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":7}}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	for coding, writer := range codings {
		pack := func(s string) []byte {
			var b bytes.Buffer
			w := writer(&b)
			_, _ = io.WriteString(w, s)
			_ = w.Close()
			return b.Bytes()
		}
		up := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", coding)
			_, _ = w.Write(pack(stream))
		})
		idle := start(t, up.URL, proxy.Config{})
		packed := pack(hello)
		resp, got := post(t, idle.url+"/v1/messages", string(packed), "Content-Encoding", coding)
		sent, h := up.last()
		if !bytes.Equal(got, pack(stream)) || resp.Header.Get("Content-Encoding") != coding || !bytes.Equal(sent, packed) || h.Get("Content-Encoding") != coding {
			t.Errorf("%s: idle, but changed", coding)
		}
		wait(t, "the bill", func() bool { return idle.Report().Total.Paid.Usage.Output == 3 })
		acting := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, quiet{})})
		resp, got = post(t, acting.url+"/v1/messages", string(packed), "Content-Encoding", coding)
		if string(got) != stream || resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: acting: %q", coding, got)
		}
		if sent, _ := up.last(); !bytes.Equal(sent, packed) {
			t.Errorf("%s: a request without an act was changed", coding)
		}
		gated(t, coding, pack)
	}
}
