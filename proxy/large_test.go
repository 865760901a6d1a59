package proxy_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/proxy"
)

// flood is an upstream whose answer has no end: it repeats a piece until so many bytes were sent or the proxy hangs up, and keeps the most
// memory that was in use meanwhile.
type flood struct {
	first, more, last string
	most              atomic.Uint64
}

const (
	floodSize = 160 << 20
	// floodHeap is for a stream. A whole answer is kept up to 64 MiB, and twice while it is read.
	floodHeap, wholeHeap = 100 << 20, 190 << 20
)

func (f *flood) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := sseType
	if strings.HasPrefix(f.first, "{") {
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	_, err := io.WriteString(w, f.first)
	for n, measured := 0, 0; n < floodSize && err == nil && r.Context().Err() == nil; n += len(f.more) {
		_, err = io.WriteString(w, strings.ReplaceAll(f.more, "INDEX", fmt.Sprint(n/len(f.more))))
		if n-measured > 8<<20 {
			measured = n
			f.most.Store(max(f.most.Load(), heap()))
		}
	}
	_, _ = io.WriteString(w, f.last)
	f.most.Store(max(f.most.Load(), heap()))
}

// heap is how much memory is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// ending keeps the last bytes that were written to it, and counts all.
type ending struct {
	last []byte
	n    int64
}

func (e *ending) Write(p []byte) (int, error) {
	e.n += int64(len(p))
	e.last = append(e.last, p...)
	e.last = bytes.Clone(e.last[max(0, len(e.last)-1<<10):])
	return len(p), nil
}

// TestLarge: an answer without end takes bounded memory, whatever repeats in it. It passes where plugins need not see it, and ends with an
// error of the protocol where they decide about its calls, or one that fails closed replaces answers.
func TestLarge(t *testing.T) { //nolint:paralleltest // it measures memory
	testskip.Long(t)
	if proxy.UnderRace {
		testskip.Skip(t, "it measures memory: make test-plain runs it, without the race detector")
	}
	text := strings.Repeat("x", 64<<10)
	begun := events(begunMessage, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	delta := events(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + text + `"}}`)
	gates := gate(func(*abi.ToolCall) *abi.Reply { return nil })
	replaces := func(failure abi.FailurePolicy) hook {
		return hook{name: "replaces", hooks: []abi.Hook{{Phase: abi.AfterInference, Mode: abi.ModeTransform, OnFailure: failure}}, answer: nothingToSay}
	}
	for name, c := range map[string]struct { //nolint:paralleltest // as above
		path, ask, first, more string
		plugin                 hook
		heap                   int64
		failed                 string // the end of the answer, empty where all of it passes
	}{
		"text":             {path: "/v1/messages", ask: hello, first: begun, more: delta},
		"blocks":           {path: "/v1/messages", ask: hello, first: begun, more: events(`{"type":"content_block_start","index":INDEX,"content_block":{"type":"text","text":"` + text[:1000] + `"}}`)},
		"items":            {path: "/v1/responses", ask: respHello, more: events(`{"type":"response.output_item.done","output_index":INDEX,"item":{"type":"message","content":[{"type":"output_text","text":"` + text + `"}]}}`)},
		"chat":             {path: "/v1/chat/completions", ask: chatHello, more: events(`{"id":"c","choices":[{"index":0,"delta":{"content":"` + text + `"}}]}`)},
		"chat reasoning":   {path: "/v1/chat/completions", ask: chatHello, more: events(`{"id":"c","choices":[{"index":0,"delta":{"reasoning":"` + text + `"}}]}`)},
		"event":            {path: "/v1/messages", ask: hello, first: "data: ", more: text},
		"JSON":             {path: "/v1/messages", ask: hello, first: `{"x":"`, more: text},
		"replaced":         {path: "/v1/messages", ask: hello, first: begun, more: delta, plugin: replaces(abi.FailIgnore)},
		"replaced, closed": {path: "/v1/messages", ask: hello, first: begun, more: delta, plugin: replaces(abi.FailRun), failed: "it is too large for plugin replaces, which fails closed"},
		"gate, text":       {path: "/v1/messages", ask: hello, first: begun, more: delta, plugin: gates, failed: "it is too large"},
		"gate, items":      {path: "/v1/responses", ask: respHello, more: events(`{"type":"response.output_item.done","output_index":INDEX,"item":{"type":"message","content":[{"type":"output_text","text":"` + text + `"}]}}`), plugin: gates, failed: "it is too large"},
		"gate, chat":       {path: "/v1/chat/completions", ask: chatHello, more: events(`{"id":"c","choices":[{"index":0,"delta":{"content":"` + text + `"}}]}`), plugin: gates, failed: "it is too large"},
		"gate, event":      {path: "/v1/messages", ask: hello, first: "data: ", more: text, plugin: gates, failed: "an event is too large to be held"},
		"gate, JSON":       {path: "/v1/messages", ask: hello, first: `{"x":"`, more: text, plugin: gates, heap: wholeHeap, failed: "what it has to see cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &flood{first: c.first, more: c.more}
			if c.more == delta {
				f.last = events(`{"type":"content_block_stop","index":0}`, endedMessage, `{"type":"message_stop"}`)
			}
			up := newTape(t, f.ServeHTTP)
			cfg := proxy.Config{}
			if c.plugin.name != "" {
				cfg.Runtime = runtimeOf(t, c.plugin)
			}
			s := start(t, up.URL, cfg)
			before := heap()
			resp, err := http.Post(s.url+c.path, "application/json", strings.NewReader(c.ask))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var end ending
			if _, err := io.Copy(&end, resp.Body); err != nil {
				t.Error(err)
			}
			grown := int64(f.most.Load()) - int64(before) //nolint:gosec // sizes
			t.Logf("%d MiB passed, %d MiB more memory", end.n>>20, grown>>20)
			if grown > cmp.Or(c.heap, floodHeap) {
				t.Errorf("%d MiB more memory", grown>>20)
			}
			if c.failed == "" && end.n < floodSize || c.failed != "" && (!strings.Contains(string(end.last), c.failed) || end.n > 64<<20) {
				t.Errorf("%d bytes passed, the last ones are %.600s", end.n, end.last)
			}
		})
	}
}
