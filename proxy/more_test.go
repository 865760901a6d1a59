package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// An upstream of HTTP/2 works as one of HTTP/1.1 does (acceptance 7).
func TestHTTP2(t *testing.T) {
	t.Parallel()
	proto := ""
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proto = r.Proto
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, streamed)
	}))
	up.EnableHTTP2 = true
	up.StartTLS()
	defer up.Close()
	tr, _ := up.Client().Transport.(*http.Transport)
	tr = tr.Clone()
	tr.ForceAttemptHTTP2, tr.DisableCompression = true, true
	s := start(t, up.URL, proxy.Config{Transport: tr})
	if _, got := post(t, s.url+"/v1/messages", hello); string(got) != streamed || proto != "HTTP/2.0" {
		t.Errorf("%s: %q", proto, got)
	}
}

// Ten thousand requests, half of them cut by the client or the upstream, leave nothing behind: no goroutine, no memory (F9).
func TestChurn(t *testing.T) { //nolint:paralleltest // it counts goroutines
	n := 10_000
	if testing.Short() || proxy.UnderRace { // make test-plain has all
		n = 400
	}
	var asked atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cut := asked.Add(1)%4 == 0
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, streamed[:300])
		_ = http.NewResponseController(w).Flush()
		if cut {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, streamed[300:])
	}))
	t.Cleanup(up.Close)
	s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, quiet{})})
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) //nolint:gosec // a size
	}
	var early int64
	client := &http.Client{Transport: &http.Transport{}}
	before := runtime.NumGoroutine()
	for i := range n {
		ctx, cancel := context.WithCancel(context.Background())
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/messages", strings.NewReader(hello))
		resp, err := client.Do(r)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if i%3 == 0 {
			cancel()
		}
		if i == n/10 {
			early = heap()
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		cancel()
	}
	client.CloseIdleConnections()
	wait(t, "requests end", func() bool { return s.Report().Counts["active"] == 0 })
	wait(t, "goroutines end", func() bool { return runtime.NumGoroutine() < before+50 })
	if grown := heap() - early; grown > 4<<20 {
		t.Errorf("the memory grew by %d bytes", grown)
	}
}

// Overlapping requests of one session lose nothing: each answer's blocked call is in the requests that follow (acceptance
// 23).
func TestOverlap(t *testing.T) {
	t.Parallel()
	up := fake(t, func(q providertest.Query) providertest.Answer {
		if len(results(q)) == 0 {
			return providertest.Answer{Calls: []abi.ToolCall{call(fmt.Sprintf("c%d", q.N), "bash", "x")}}
		}
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text(fmt.Sprintf("answer %d", q.N))}}
	})
	s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, gate(func(*abi.ToolCall) *abi.Reply { return block("no") }))})
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			a := newAgent(t, wire.Messages, s.url, i%2 == 0, "X-Session-Id", "one")
			for j := range 4 {
				a.say(fmt.Sprintf("branch %d turn %d", i, j))
				a.step()
			}
		})
	}
	group.Wait()
	if c := s.Report().Counts; c["panics"] != 0 || c["store_failures"] != 0 {
		t.Error(c)
	}
}

// A request that the provider refuses because of what the proxy made of it is sent as it came, and the session continues.
func TestFallBack(t *testing.T) {
	t.Parallel()
	up := newTape(t, func(w http.ResponseWriter, r *http.Request) {
		nothing(w, r)
	})
	picky := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "lookup") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"no such tools, please"}}`)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		up.Config.Handler.ServeHTTP(w, r)
	}))
	defer picky.Close()
	s := start(t, picky.URL, proxy.Config{Tools: &offered{}, Runtime: runtimeOf(t)})
	body := strings.Replace(hello, `"stream":true`, `"tools":[{"name":"bash","input_schema":{"type":"object"}}]`, 1)
	for range 2 {
		resp, got := post(t, s.url+"/v1/messages", body, "X-Claude-Code-Session-Id", "s")
		if sent, _ := up.last(); resp.StatusCode != http.StatusOK || string(sent) != body {
			t.Errorf("%s %s: sent %s", resp.Status, got, sent)
		}
	}
	if n := s.Report().Counts["fell_back"]; n != 1 {
		t.Errorf("fell back %d times", n)
	}
}

// Two keys with one session id are two threads (acceptance 20).
func TestTwoKeys(t *testing.T) {
	t.Parallel()
	up := newTape(t, nothing)
	s := start(t, up.URL, proxy.Config{})
	body := strings.Replace(hello, `"stream":true`, `"tools":[{"name":"bash","input_schema":{"type":"object"}}]`, 1)
	for _, key := range []string{"one", "two"} {
		post(t, s.url+"/v1/messages", body, "X-Api-Key", key, "X-Claude-Code-Session-Id", "s", "User-Agent", "x")
	}
	if n := len(s.Report().Lanes); n != 2 {
		t.Errorf("%d threads: %+v", n, s.Report().Lanes)
	}
}

// Signed thinking survives answers that are merged of several, compactions and replays, also without text (F3, F28, F29).
func TestThinking(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{true, false} {
		var seen []map[string]string
		think := func(text string) abi.ContentBlock { return abi.ContentBlock{Type: abi.BlockThinking, Text: text} }
		up := fake(t, func(q providertest.Query) providertest.Answer {
			seen = append(seen, results(q))
			switch q.N {
			case 1:
				return providertest.Answer{Content: []abi.ContentBlock{think("hm\n\u00e9 \"<b>\"")}, Calls: []abi.ToolCall{call("h1", "lookup", "x")}}
			case 2:
				return providertest.Answer{Content: []abi.ContentBlock{think(""), abi.Text("so")}, Calls: []abi.ToolCall{call("h2", "lookup", "x"), call("v1", "bash", "x")}}
			case 3:
				return providertest.Answer{Content: []abi.ContentBlock{think("more")}, Calls: []abi.ToolCall{call("v2", "bash", "x")}}
			}
			return providertest.Answer{Content: []abi.ContentBlock{think("end"), abi.Text("done")}}
		})
		s := start(t, up.URL(), proxy.Config{Tools: &offered{}, Runtime: runtimeOf(t, quiet{})})
		a := newAgent(t, wire.Messages, s.url, stream, "X-Session-Id", "s")
		a.think = true
		a.say("go")
		for {
			ans := a.step()
			if len(ans.Calls()) == 0 {
				break
			}
			a.answer(ans, func(c wire.Out) string { return "ran " + c.ID })
		}
		a.say("again")
		a.step()
		last := seen[len(seen)-1]
		if len(last) != 4 || last["h1"] != "found for h1" || last["v2"] != "ran v2" {
			t.Errorf("stream %t: %v", stream, last)
		}
	}
}

// What plugins take out of results is not in the client's own compaction, nor in requests whose history the provider has
// (acceptance 34).
func TestRedacted_elsewhere(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-very-secret"
	redact := hook{
		name: "redact", hooks: []abi.Hook{{Phase: abi.AfterToolExecute, Mode: abi.ModeTransform, OnFailure: abi.FailRun}},
		answer: func(e *abi.Event) (*abi.Reply, error) {
			r := *e.Result
			r.Content = []abi.ContentBlock{abi.Text(strings.ReplaceAll(r.Content[0].Text, secret, "***"))}
			return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceResult, Result: &r}}}, nil
		},
	}
	up := newTape(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, redact)})
	const item = `{"type":"message","role":"user","content":"go"},{"type":"function_call","call_id":"c","name":"n","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"` + secret + `"}`
	for _, body := range []string{
		`{"model":"m","input":[` + item + `],"tools":[{"type":"function","name":"n"}]}`,
		`{"model":"m","input":[` + item + `,{"type":"message","role":"user","content":"summarize"}]}`,
		`{"model":"m","previous_response_id":"r","input":[{"type":"function_call_output","call_id":"c","output":"` + secret + `"}],"tools":[{"type":"function","name":"n"}]}`,
	} {
		post(t, s.url+"/v1/responses", body, "Session-Id", "s", "User-Agent", "codex_cli")
		if sent, _ := up.last(); contains(sent, secret) || !contains(sent, "***") {
			t.Errorf("sent %s", sent)
		}
	}
}
