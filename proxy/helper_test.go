package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/proxy"
)

// stand is a proxy before an upstream.
type stand struct {
	*proxy.Server

	url string
}

// start starts a proxy whose upstreams are all one.
func start(tb testing.TB, upstream string, cfg proxy.Config) *stand {
	tb.Helper()
	if cfg.Anthropic.URL == "" {
		cfg.Anthropic.URL = upstream
	}
	cfg.OpenAI.URL = upstream
	if cfg.ChatGPT.URL == "" {
		cfg.ChatGPT.URL = upstream
	}
	s, err := proxy.New(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	srv := httptest.NewServer(s)
	tb.Cleanup(func() {
		srv.Close()
		if err := s.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return &stand{s, srv.URL}
}

// fake starts the strict fake of the providers.
func fake(tb testing.TB, reply func(providertest.Query) providertest.Answer) *providertest.Server {
	tb.Helper()
	s, err := providertest.New(providertest.Config{Reply: reply})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// tape is an upstream that plays one answer and keeps what it was asked.
type tape struct {
	*httptest.Server

	mu      sync.Mutex
	bodies  [][]byte
	headers []http.Header
	paths   []string
}

func (tp *tape) last() ([]byte, http.Header) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if len(tp.bodies) == 0 {
		return nil, nil
	}
	return tp.bodies[len(tp.bodies)-1], tp.headers[len(tp.headers)-1]
}

func newTape(tb testing.TB, answer http.HandlerFunc) *tape {
	tb.Helper()
	tp := &tape{}
	tp.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		tp.mu.Lock()
		tp.bodies, tp.headers, tp.paths = append(tp.bodies, b), append(tp.headers, r.Header.Clone()), append(tp.paths, r.Method+" "+r.RequestURI)
		tp.mu.Unlock()
		answer(w, r)
	}))
	tb.Cleanup(tp.Close)
	return tp
}

// reply is the head of an answer.
type reply struct {
	StatusCode int
	Status     string
	Header     http.Header
}

// post sends a body and returns the answer.
func post(tb testing.TB, url, body string, header ...string) (*reply, []byte) {
	tb.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+providertest.DefaultKey)
	if strings.Contains(url, "/v1/messages") {
		r.Header.Del("Authorization")
		r.Header.Set("X-Api-Key", providertest.DefaultKey)
		r.Header.Set("Anthropic-Version", "2023-06-01")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return do(tb, r)
}

// do sends a request.
func do(tb testing.TB, r *http.Request) (*reply, []byte) {
	tb.Helper()
	tr := &http.Transport{DisableCompression: true}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(r)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return &reply{resp.StatusCode, resp.Status, resp.Header}, b
}

// pair is a recorded request with its answer.
type pair struct {
	name, path, request, response, contentType string
}

// recorded returns pairs that others recorded. They are no part of the repository.
func recorded(tb testing.TB) []pair {
	tb.Helper()
	shared := os.Getenv("MORTISE_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared")
	}
	dir := filepath.Join(shared, "data", "payloads")
	if _, err := os.Stat(dir); err != nil {
		testskip.Skip(tb, "no real recordings in data/payloads of the shared folder (set MORTISE_SHARED): %v", err)
	}
	var out []pair
	files, _ := filepath.Glob(filepath.Join(dir, "fantasy", "*", "*", "*.yaml"))
	for _, path := range files {
		var c struct {
			Interactions []struct {
				Request  struct{ Body, URL string }
				Response struct {
					Body    string
					Headers map[string][]string
				}
			}
		}
		raw, err := os.ReadFile(path)
		if err == nil {
			err = yaml.Unmarshal(raw, &c)
		}
		if err != nil {
			tb.Fatal(err)
		}
		for i, in := range c.Interactions {
			_, after, _ := strings.Cut(in.Request.URL, "://")
			p := pair{name: fmt.Sprintf("%s#%d", path[len(dir)+1:], i), path: "/" + tail(after), request: in.Request.Body, response: in.Response.Body}
			if ct := in.Response.Headers["Content-Type"]; len(ct) > 0 {
				p.contentType = ct[0]
			}
			out = append(out, p)
		}
	}
	traces, _ := filepath.Glob(filepath.Join(dir, "langchaingo", "llms", "*", "*", "*.httprr"))
	more, _ := filepath.Glob(filepath.Join(dir, "langchaingo", "llms", "*", "*", "*", "*", "*.httprr"))
	for _, path := range append(traces, more...) {
		raw, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, httprr(path[len(dir)+1:], raw)...)
	}
	if len(out) < 20 {
		tb.Fatalf("only %d recordings were read", len(out))
	}
	return out
}

// httprr reads a trace: lengths of a request and a response, and their bytes.
func httprr(name string, raw []byte) (out []pair) {
	_, rest, _ := bytes.Cut(raw, []byte("\n"))
	for i := 0; len(rest) > 0; i++ {
		var n, m int
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		if _, err := fmt.Sscanf(string(line), "%d %d", &n, &m); err != nil || n+m > len(after) {
			return out
		}
		req, resp := after[:n], after[n:n+m]
		rest = after[n+m:]
		first, _, _ := bytes.Cut(req, []byte("\r\n"))
		parts := strings.Fields(string(first))
		_, body, _ := bytes.Cut(req, []byte("\r\n\r\n"))
		headers, answer, _ := bytes.Cut(resp, []byte("\r\n\r\n"))
		if len(parts) < 2 || len(body) == 0 {
			continue
		}
		path := parts[1]
		if _, p, ok := strings.Cut(path, "://"); ok {
			path = "/" + tail(p)
		}
		p := pair{name: fmt.Sprintf("%s#%d", name, i), path: path, request: string(body), response: string(answer)}
		for line := range strings.SplitSeq(string(headers), "\r\n") {
			if v, ok := strings.CutPrefix(line, "Content-Type: "); ok {
				p.contentType = v
			}
		}
		out = append(out, p)
	}
	return out
}

// decode reads JSON into a map.
func decode(tb testing.TB, b []byte) map[string]any {
	tb.Helper()
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		tb.Fatalf("%v: %.400s", err, b)
	}
	return v
}

// wait waits until a condition holds.
func wait(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("timed out: %s", what)
		}
	}
}

func nothingToSay(*abi.Event) (*abi.Reply, error) { return nil, nil }

// tail is what follows the first slash.
func tail(s string) string {
	_, rest, _ := strings.Cut(s, "/")
	return rest
}
