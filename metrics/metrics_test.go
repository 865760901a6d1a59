package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/metrics"
	"github.com/mortise-dev/mortise/phases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a registry and what feeds it.
type world struct {
	*prometheus.Registry

	observer mortise.Observer
}

func newWorld(t *testing.T, cfg metrics.Config) *world {
	t.Helper()
	w := &world{Registry: prometheus.NewRegistry()}
	cfg.Registry = w.Registry
	m, err := metrics.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.observer = m.Observer()
	return w
}

func (w *world) infer(ctx context.Context, c llm.Call) {
	_, end := w.observer.Inference(ctx, llm.Call{Model: c.Model})
	end(c)
}

func (w *world) call(ctx context.Context, name string, r abi.ToolResult, err error) {
	_, end := w.observer.Tool(ctx, "a", abi.ToolCall{Name: name})
	end(r, err)
}

// is checks metrics in the text format, without their comments and without what took time.
func (w *world) is(t *testing.T, want string, names ...string) {
	t.Helper()
	families, err := w.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, name := range names {
			if f.GetName() != name {
				continue
			}
			for _, m := range f.GetMetric() {
				line := name
				for _, l := range m.GetLabel() {
					line += " " + l.GetName() + "=" + l.GetValue()
				}
				n := m.GetCounter().GetValue() + m.GetGauge().GetValue()
				if h := m.GetHistogram(); h != nil {
					n = float64(h.GetSampleCount())
				}
				got = append(got, fmt.Sprintf("%s: %v", line, n))
			}
		}
	}
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t, metrics.Config{})
	w.infer(ctx, llm.Call{AgentID: "a", Model: "m", First: time.Second, Cost: 0.5, Usage: abi.Usage{PromptTokens: 10, CompletionTokens: 3, CacheReadTokens: 4, CacheCreationTokens: 2}})
	w.infer(ctx, llm.Call{AgentID: "a", Model: "m", Err: &llm.Error{Kind: llm.KindOverloaded}})
	w.infer(ctx, llm.Call{Model: "m", Usage: abi.Usage{PromptTokens: 7}})
	w.is(t, `mortise_cache_read_tokens_total agent= model=m: 0
mortise_cache_read_tokens_total agent=a model=m: 4
mortise_cache_write_tokens_total agent= model=m: 0
mortise_cache_write_tokens_total agent=a model=m: 2
mortise_completion_tokens_total agent= model=m: 0
mortise_completion_tokens_total agent=a model=m: 3
mortise_cost_usd_total agent= model=m: 0
mortise_cost_usd_total agent=a model=m: 0.5
mortise_inference_duration_seconds agent= model=m: 1
mortise_inference_duration_seconds agent=a model=m: 2
mortise_inference_first_token_seconds agent=a model=m: 1
mortise_inference_requests_total agent= model=m result=ok: 1
mortise_inference_requests_total agent=a model=m result=ok: 1
mortise_inference_requests_total agent=a model=m result=overloaded: 1
mortise_prompt_tokens_total agent= model=m: 7
mortise_prompt_tokens_total agent=a model=m: 10`,
		"mortise_inference_requests_total", "mortise_inference_duration_seconds", "mortise_inference_first_token_seconds", "mortise_prompt_tokens_total",
		"mortise_completion_tokens_total", "mortise_cache_read_tokens_total", "mortise_cache_write_tokens_total", "mortise_cost_usd_total")

	w.call(ctx, "read", abi.ToolResult{Status: abi.ToolSuccess}, nil)
	w.call(ctx, "read", abi.ToolResult{Status: abi.ToolError}, nil)
	w.call(ctx, "read", abi.ToolResult{}, errors.New("no"))
	w.is(t, "mortise_tool_calls_total result=error tool=read: 2\nmortise_tool_calls_total result=success tool=read: 1\nmortise_tool_duration_seconds tool=read: 3",
		"mortise_tool_calls_total", "mortise_tool_duration_seconds")

	for _, r := range []phases.Record{{Attempt: 1}, {Attempt: 2, Err: "missed its deadline"}, {Attempt: 0, Quarantined: true, Err: "quarantined"}} {
		r.Plugin, r.Phase = "p", abi.ToolGate
		w.observer.Hook(r)
	}
	w.is(t, "mortise_hook_duration_seconds phase=tool_gate plugin=p: 2\nmortise_hook_failures_total phase=tool_gate plugin=p: 1\nmortise_hook_skips_total phase=tool_gate plugin=p: 1",
		"mortise_hook_duration_seconds", "mortise_hook_failures_total", "mortise_hook_skips_total")

	for _, e := range []compaction.Event{
		{Kind: compaction.EventAdmission, Decision: &compaction.AdmissionDecision{Reason: abi.ReasonCooldown}},
		{Kind: compaction.EventAdmission, Decision: &compaction.AdmissionDecision{Reason: abi.ReasonCooldown}, Count: 5},
		{Kind: compaction.EventStarted},
		{Kind: compaction.EventSwapped, PreTokens: 900, PostTokens: 100},
		{Kind: compaction.EventRefused, PreTokens: 900},
	} {
		e.Policy = "ledger"
		w.observer.Compaction(ctx, e)
	}
	w.is(t, `mortise_compaction_admissions_total reason=cooldown: 6
mortise_compaction_after_tokens_total: 100
mortise_compaction_before_tokens_total: 900
mortise_compaction_duration_seconds policy=ledger: 1
mortise_compaction_events_total kind=refused policy=ledger: 1
mortise_compaction_events_total kind=started policy=ledger: 1
mortise_compaction_events_total kind=swapped policy=ledger: 1`,
		"mortise_compaction_admissions_total", "mortise_compaction_after_tokens_total", "mortise_compaction_before_tokens_total",
		"mortise_compaction_duration_seconds", "mortise_compaction_events_total")

	w.observer.Task(background.Event{Kind: background.EventStarted})
	w.observer.Task(background.Event{Kind: background.EventFinished, Task: background.Info{Class: background.Detached, Status: background.Failed}})
	for _, end := range []agent.Termination{{Type: agent.NaturalEnd}, {Type: agent.Stopped, Code: string(agent.StopCost)}, {Type: agent.Stopped, Code: "mine"}} {
		w.observer.Event(ctx, agent.Event{Type: agent.EventRunFinish, Outcome: &agent.Result{Termination: end}})
	}
	w.is(t, `mortise_run_terminations_total code= termination=natural_end: 1
mortise_run_terminations_total code=cost_budget termination=stopped: 1
mortise_run_terminations_total code=plugin termination=stopped: 1
mortise_tasks_ended_total class=detached status=failed: 1`, "mortise_run_terminations_total", "mortise_tasks_ended_total")
}

func TestReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, metrics.Config{
		Modules: func() map[string]host.Stats {
			return map[string]host.Stats{"redact": {
				Calls: 7, Failures: 2, Traps: 1, Late: 3, LateTime: time.Second, Time: 2 * time.Second, Instances: 4,
				ReplacedBy: map[host.Reason]int64{host.ReplacedAborted: 1},
			}}
		},
		Tasks: func() background.Stats { return background.Stats{Running: 2, Queued: 1, Ended: 9} },
	})
	w.is(t, `mortise_module_busy_seconds_total module=redact: 2
mortise_module_calls_total module=redact: 7
mortise_module_failures_total module=redact: 2
mortise_module_instances module=redact: 4
mortise_module_late_host_call_seconds_total module=redact: 1
mortise_module_late_host_calls_total module=redact: 3
mortise_module_replaced_total module=redact reason=`+string(host.ReplacedAborted)+`: 1
mortise_module_traps_total module=redact: 1
mortise_tasks state=queued: 1
mortise_tasks state=running: 2`,
		"mortise_module_calls_total", "mortise_module_failures_total", "mortise_module_traps_total", "mortise_module_busy_seconds_total", "mortise_module_instances",
		"mortise_module_late_host_calls_total", "mortise_module_late_host_call_seconds_total", "mortise_module_replaced_total", "mortise_tasks")
}

// TestHostileLabels: 10,000 names that models, plugins or clients make up do not make as many series, and the known ones
// still count apart. Tokens below zero count as none.
func TestHostileLabels(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t, metrics.Config{Agents: []string{"assistant"}, Models: []string{"sonnet"}, Values: 20})
	const many = 10_000
	for i := range many {
		name := fmt.Sprintf("evil-%d-%s\xff", i, strings.Repeat("x", i%300))
		w.infer(ctx, llm.Call{AgentID: name, Model: name, First: 1, Err: &llm.Error{Kind: llm.Kind(name)}, Usage: abi.Usage{PromptTokens: -1}})
		w.call(ctx, name, abi.ToolResult{}, nil)
		w.observer.Hook(phases.Record{Plugin: name, Phase: abi.RunStart, Attempt: 1, Err: name})
		w.observer.Compaction(ctx, compaction.Event{Kind: compaction.EventSwapped, Policy: name})
		w.observer.Compaction(ctx, compaction.Event{Kind: compaction.EventAdmission, Decision: &compaction.AdmissionDecision{Reason: name}})
		w.observer.Event(ctx, agent.Event{Type: agent.EventRunFinish, Outcome: &agent.Result{Termination: agent.Termination{Type: agent.Stopped, Code: name}}})
	}
	w.infer(ctx, llm.Call{AgentID: "assistant", Model: "sonnet", Usage: abi.Usage{PromptTokens: 1}})
	n, err := testutil.GatherAndCount(w)
	if err != nil {
		t.Fatal(err)
	}
	// Twenty values and "other" of each label; those of inferences come in pairs and triples of equals.
	if most := 21 * 20; n > most {
		t.Errorf("%d series, want at most %d", n, most)
	}
	families, err := w.Gather()
	if err != nil {
		t.Fatal(err)
	}
	known, total := false, 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				known = known || l.GetValue() == "assistant"
				if len(l.GetValue()) > 103 {
					t.Errorf("a label has %d bytes", len(l.GetValue()))
				}
			}
			if f.GetName() == "mortise_tool_calls_total" {
				total += m.GetCounter().GetValue()
			}
		}
	}
	if !known || total != many {
		t.Errorf("the known agent counts apart: %v; %v tool calls, want %d", known, total, many)
	}
}

func TestNew_refuses(t *testing.T) {
	t.Parallel()
	if _, err := metrics.New(metrics.Config{}); err == nil || !strings.Contains(err.Error(), "Registry is nil") {
		t.Errorf("without a registry: %v", err)
	}
	r := prometheus.NewRegistry()
	if _, err := metrics.New(metrics.Config{Registry: r, Values: -1}); err == nil {
		t.Error("negative values are accepted")
	}
	for i := range 2 {
		if _, err := metrics.New(metrics.Config{Registry: r}); (err == nil) != (i == 0) {
			t.Errorf("registration %d: %v", i, err)
		}
	}
}
