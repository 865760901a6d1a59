package proxy_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// endless is a conversation of a client that compacts by itself after so many rounds, with a call whose arguments a plugin rewrites, a
// blocked one and an edited result in each.
type endless struct {
	t      *testing.T
	s      *stand
	rounds int // 0 for a client that never compacts
	items  []string
	n      int
}

func (e *endless) round() {
	e.t.Helper()
	if e.n == 0 || e.rounds > 0 && e.n%e.rounds == 0 {
		e.items = []string{fmt.Sprintf(`{"role":"user","content":"Continue. Summary %d: all went well."}`, e.n)}
	}
	e.n++
	body := `{"model":"claude-sonnet-4-5","max_tokens":100,"stream":true,"system":"x","tools":[{"name":"bash","input_schema":{"type":"object"}}],"messages":[` + strings.Join(e.items, ",") + `]}`
	resp, raw := post(e.t, e.s.url+"/v1/messages", body, "X-Claude-Code-Session-Id", "s")
	if resp.StatusCode != http.StatusOK {
		e.t.Fatalf("%s: %s", resp.Status, raw)
	}
	var split wire.Splitter
	_, _ = split.Write(raw)
	st := wire.NewStream(wire.Messages)
	for ev, ok := split.Next(); ok; ev, ok = split.Next() {
		st.Event(ev)
	}
	for _, it := range st.Items(func(*wire.Out) bool { return true }) {
		e.items = append(e.items, string(it))
	}
	result := fmt.Sprintf("%d: %s", e.n, strings.Repeat("output ", 150))
	var results []string
	for _, c := range st.Calls() {
		results = append(results, string(wire.ResultBlock(wire.Messages, &c, result, false)))
	}
	e.items = append(e.items, `{"role":"user","content":[`+strings.Join(results, ",")+`]}`)
}

// heap is what is in use once all requests have ended, without what the client has.
func (e *endless) heap() int64 {
	settle(e.t, e.s)
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	all := int64(m.HeapAlloc) //nolint:gosec // a size
	for _, it := range e.items {
		all -= int64(len(it))
	}
	return all
}

// least plays up to a round, and returns the least heap of the last hundred: a compaction that is under way has its text in memory.
func (e *endless) least(round int) int64 {
	least := int64(math.MaxInt64)
	for e.n < round {
		e.round()
		if left := round - e.n; left < 100 && left%10 == 0 {
			least = min(least, e.heap())
		}
	}
	return least
}

// busyModel asks for two calls in each answer, "keep" and "no", and counts a token for each four bytes of a prompt.
func busyModel(t *testing.T) *httptest.Server {
	t.Helper()
	n := 0
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, _ := io.Copy(io.Discard, r.Body)
		n++
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":%d,\"output_tokens\":1}}}\n\n", size/4)
		for i, id := range []string{"keep", "no"} {
			_, _ = fmt.Fprintf(w, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":{\"type\":\"tool_use\",\"id\":\"%s_%d\",\"name\":\"bash\",\"input\":{}}}\n\n", i, id, n)
			_, _ = fmt.Fprintf(w, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":%d}\n\n", i)
		}
		_, _ = io.WriteString(w, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	}))
	t.Cleanup(up.Close)
	return up
}

// A lane in constant use takes no more memory after a thousand rounds than after some: what a client has compacted away is forgotten, with
// what plugins changed of it; and of what only the proxy has compacted away no text is kept in memory. The answers have a length, as that of
// an upstream which does not stream, though the plugins change them.
func TestEndless(t *testing.T) { //nolint:paralleltest // it measures memory
	testskip.Long(t)
	if proxy.UnderRace {
		testskip.Skip(t, "it measures memory: make test-plain runs it, without the race detector")
	}
	const rounds = 1000
	redact := hook{
		name: "redact", hooks: []abi.Hook{{Phase: abi.AfterToolExecute, Mode: abi.ModeTransform}},
		answer: func(e *abi.Event) (*abi.Reply, error) {
			r := abi.ToolResult{CallID: e.Call.ID, Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text("less")}}
			return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceResult, Result: &r}}}, nil
		},
	}
	forbid := gate(func(c *abi.ToolCall) *abi.Reply {
		if strings.HasPrefix(c.ID, "no") {
			return block("not that")
		}
		return nil
	})
	for name, c := range map[string]struct {
		each int // when the client compacts
		cfg  proxy.Config
		grow int64 // bytes a round
	}{
		"client compacts": {100, proxy.Config{Runtime: runtimeOf(t, redact, forbid, counter{})}, 128},
		"proxy compacts": {0, proxy.Config{Runtime: runtimeOf(t, counter{}), Compaction: &proxy.Compaction{
			Policy: compaction.Policy{WindowTokens: 40_000, ThresholdTokens: 20_000, KeepRecentTokens: 4000, SummaryTokens: 1000},
		}}, 512},
	} {
		e := &endless{t: t, s: start(t, busyModel(t).URL, c.cfg), rounds: c.each}
		before := e.least(rounds / 2)
		after := e.least(rounds)
		r := e.s.Report()
		t.Logf("%s: %d KiB after %d rounds, %d after %d; %d swaps", name, before>>10, rounds/2, after>>10, rounds, r.Counts["swaps"])
		if len(r.Lanes) != 1 || c.each > 0 && (r.Counts["calls_removed"] != int64(rounds) || r.Lanes[0].Epoch < rounds/c.each-1) || c.each == 0 && r.Counts["swaps"] < 4 {
			t.Errorf("%s: %v, lanes %+v", name, r.Counts, r.Lanes)
		}
		if limit := c.grow*int64(rounds/2) + 128<<10; after-before > limit {
			t.Errorf("%s: %d KiB after %d rounds, %d after %d", name, before>>10, rounds/2, after>>10, rounds)
		}
	}
}
