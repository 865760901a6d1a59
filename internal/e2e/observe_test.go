package e2e_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// The trace to which the test's requests belong.
const (
	traceID  = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentID = "00f067aa0ba902b7"
)

// collector takes spans by OTLP.
type collector struct {
	*httptest.Server

	mu    sync.Mutex
	raw   []byte
	spans []*tracepb.Span
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		var traces tracepb.TracesData
		if err != nil || proto.Unmarshal(data, &traces) != nil || r.Header.Get("X-Key") != "k" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw = append(c.raw, data...)
		for _, resource := range traces.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// TestServe_observed: what /metrics counts is what the provider billed, what the tool executed and what the compactions recorded;
// spans arrive at a collector, in the trace of the request; and neither they nor the log quote a run.
func TestServe_observed(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	w, spans := newWorld(t), newCollector(t)
	w.env = []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + spans.URL, "OTEL_EXPORTER_OTLP_HEADERS=X-Key=k", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment=e2e-test",
	}
	w.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := &client{w: w, http: &http.Client{Transport: &http.Transport{}}, header: http.Header{"Traceparent": {"00-" + traceID + "-" + parentID + "-01"}}}
	defer c.http.CloseIdleConnections()
	var runs []*run
	for swapped := 0; swapped == 0 && ctx.Err() == nil; {
		r, err := c.run(ctx, 10*len(runs)+1, 0) // none of them checked in the background
		must(t, err)
		runs = append(runs, r)
		swapped = len(w.happened(ctx, t, c, compaction.EventSwapped))
	}
	checkRuns(t, runs, len(runs))
	w.checkMetrics(ctx, t, c, len(runs))
	w.stop(t) // which exports the rest
	w.checkSpans(t, spans, len(runs))
	w.checkLog(t, runs)
}

// happened returns what is recorded of the thread's compactions, by kind.
func (w *world) happened(ctx context.Context, t *testing.T, c *client, kind compaction.EventKind) (out []compaction.Event) {
	t.Helper()
	status, data, err := c.call(ctx, false, http.MethodGet, "/v1/threads/t0/compactions", nil)
	if err != nil || status != http.StatusOK {
		t.Fatalf("compactions: %d %s %v", status, data, err)
	}
	var kept struct{ Events []compaction.Event }
	must(t, json.Unmarshal(data, &kept))
	for _, e := range kept.Events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// scrape reads /metrics: values by name and labels.
func scrape(ctx context.Context, t *testing.T, c *client) map[string]float64 {
	t.Helper()
	status, data, err := c.call(ctx, true, http.MethodGet, "/metrics", nil)
	if err != nil || status != http.StatusOK {
		t.Fatalf("metrics: %d %s %v", status, data, err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			out[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	return out
}

func (w *world) checkMetrics(ctx context.Context, t *testing.T, c *client, runs int) {
	t.Helper()
	var used abi.Usage
	var cost float64
	bills := w.provider.Bills()
	for _, b := range bills {
		used.PromptTokens += b.Usage.PromptTokens
		used.CompletionTokens += b.Usage.CompletionTokens
		used.CacheReadTokens += b.Usage.CacheReadTokens
		used.CacheCreationTokens += b.Usage.CacheCreationTokens
		cost += b.Cost
	}
	tools, err := os.ReadFile(w.toolLog())
	must(t, err)
	calls := float64(bytes.Count(tools, []byte("\n")))
	var before, after int64
	swapped := w.happened(ctx, t, c, compaction.EventSwapped)
	for _, e := range swapped {
		before += e.PreTokens
		after += e.PostTokens
	}
	model := fmt.Sprintf(`{agent="worker",model=%q}`, model)
	const settled = `mortise_runs_total{outcome="completed"}`
	got := scrape(ctx, t, c)
	for got[settled] < float64(runs) && ctx.Err() == nil { // it is counted after clients learn of it
		pause(ctx, retry)
		got = scrape(ctx, t, c)
	}
	for name, want := range map[string]float64{
		strings.Replace("mortise_inference_requests_total"+model, "}", `,result="ok"}`, 1): float64(len(bills)),
		"mortise_inference_duration_seconds_count" + model:                                 float64(len(bills)),
		"mortise_inference_first_token_seconds_count" + model:                              float64(len(bills)),
		"mortise_prompt_tokens_total" + model:                                              float64(used.PromptTokens),
		"mortise_completion_tokens_total" + model:                                          float64(used.CompletionTokens),
		"mortise_cache_read_tokens_total" + model:                                          float64(used.CacheReadTokens),
		"mortise_cache_write_tokens_total" + model:                                         float64(used.CacheCreationTokens),
		"mortise_cost_usd_total" + model:                                                   cost,
		`mortise_tool_calls_total{result="success",tool="mcp__works__work"}`:               calls,
		`mortise_hook_duration_seconds_count{phase="after_tool_execute",plugin="redact"}`:  calls,
		`mortise_hook_duration_seconds_count{phase="tool_gate",plugin="guard"}`:            calls,
		`mortise_compaction_before_tokens_total`:                                           float64(before),
		`mortise_compaction_after_tokens_total`:                                            float64(after),
		`mortise_run_terminations_total{code="",termination="natural_end"}`:                float64(runs),
		settled: float64(runs),
	} {
		if g, ok := got[name]; !ok || math.Abs(g-want) > 1e-9 {
			t.Errorf("%s is %v (there: %v), want %v", name, g, ok, want)
		}
	}
	for kind, n := range map[string]int{"swapped": len(swapped), "started": len(w.happened(ctx, t, c, compaction.EventStarted))} {
		sum := 0.0
		for name, v := range got {
			if strings.HasPrefix(name, `mortise_compaction_events_total{kind="`+kind+`"`) {
				sum += v
			}
		}
		if sum != float64(n) {
			t.Errorf("%v compactions %s, want %d", sum, kind, n)
		}
	}
	if got[`mortise_module_calls_total{module="redact"}`] < calls || got[`mortise_module_busy_seconds_total{module="redact"}`] <= 0 {
		t.Errorf("modules: %v calls, want at least %v", got[`mortise_module_calls_total{module="redact"}`], calls)
	}
	t.Logf("%d bills, %d tokens, %.4f USD, %v calls, %d compactions, %d series", len(bills), used.PromptTokens, cost, calls, len(swapped), len(got))
}

func (w *world) checkSpans(t *testing.T, c *collector, runs int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	names, count := map[string]string{}, map[string]int{}
	for _, s := range c.spans {
		names[hex.EncodeToString(s.GetSpanId())] = s.GetName()
		if hex.EncodeToString(s.GetTraceId()) != traceID {
			t.Errorf("the span %q is not in the trace of its request", s.GetName())
		}
	}
	for _, s := range c.spans {
		parent := hex.EncodeToString(s.GetParentSpanId())
		if parent == parentID {
			parent = "request"
		} else {
			parent = names[parent]
		}
		count[parent+" > "+s.GetName()]++
	}
	inferences := len(w.provider.Bills())
	for edge, n := range map[string]int{
		"request > mailbox run": runs, "mailbox run > invoke_agent worker": runs, "invoke_agent worker > chat " + model: inferences,
		"invoke_agent worker > execute_tool mcp__works__work": runs,
	} {
		if count[edge] != n {
			t.Errorf("%d spans %q, want %d; there are %v", count[edge], edge, n, count)
		}
	}
	if count["invoke_agent worker > compaction"] == 0 {
		t.Errorf("there is no span of a compaction: %v", count)
	}
	for _, text := range []string{"Please do", "worked on", "It needed a change", w.provider.Key()} {
		if bytes.Contains(c.raw, []byte(text)) {
			t.Errorf("the spans have %q", text)
		}
	}
	if !bytes.Contains(c.raw, []byte("e2e-test")) || !bytes.Contains(c.raw, []byte("service.version")) {
		t.Error("the resource lacks what the environment says of it")
	}
}

// checkLog: each run has at most ten lines at level info, with the trace, and none quotes it.
func (w *world) checkLog(t *testing.T, runs []*run) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.log.String()
	for _, r := range runs {
		lines, traced := 0, 0
		for line := range strings.Lines(log) {
			if strings.Contains(line, "run_id="+r.ID) {
				lines++
			}
			if strings.Contains(line, "run_id="+r.ID) && strings.Contains(line, "trace_id="+traceID) {
				traced++
			}
		}
		if lines < 3 || lines > 10 || traced < 2 {
			t.Errorf("run %s has %d lines in the log, %d with its trace:\n%s", r.ID, lines, traced, log)
		}
	}
	for _, text := range []string{"Please do", "worked on", "It needed a change", w.provider.Key()} {
		if strings.Contains(log, text) {
			t.Errorf("the log has %q:\n%s", text, log)
		}
	}
}
