package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// DefaultValues is how many values of a label count apart, besides the known ones.
const DefaultValues = 50

// Config makes [Metrics]. Registry is required.
type Config struct {
	Registry prometheus.Registerer
	// Agents and Models are the names that are known. They always count apart.
	Agents, Models []string
	// Values is how many more values of a label count apart, [DefaultValues] when 0.
	Values int
	// Modules returns the counters of modules by name, as plugins.Set.Stats does; nil leaves them out.
	Modules func() map[string]host.Stats
	// Tasks returns the counts of background tasks, as background.Manager.Stats does; nil leaves them out.
	Tasks func() background.Stats
}

// Metrics counts what its [Metrics.Observer] receives. Make it with [New].
type Metrics struct {
	agents, models, tools, plugins, policies, kinds, reasons *label

	requests, prompt, completion, cacheRead, cacheWrite, cost *prometheus.CounterVec
	asked, first                                              *prometheus.HistogramVec
	calls                                                     *prometheus.CounterVec
	called, hooked                                            *prometheus.HistogramVec
	hookFailures, hookSkips                                   *prometheus.CounterVec
	compactions, admissions                                   *prometheus.CounterVec
	before, after                                             prometheus.Counter
	compacted                                                 *prometheus.HistogramVec
	tasks, terminations                                       *prometheus.CounterVec
}

// New makes the metrics and registers them.
func New(cfg Config) (*Metrics, error) {
	if cfg.Registry == nil {
		return nil, errors.New("metrics: Config.Registry is nil: give it a prometheus.Registry")
	}
	if cfg.Values < 0 {
		return nil, fmt.Errorf("metrics: Config.Values is %d, must not be negative", cfg.Values)
	}
	m := newMetrics(cmp.Or(cfg.Values, DefaultValues), &cfg)
	all := m.all()
	if cfg.Modules != nil {
		all = append(all, newModules(cfg.Modules))
	}
	if cfg.Tasks != nil {
		all = append(all, newTasks(cfg.Tasks))
	}
	for i, c := range all {
		if err := cfg.Registry.Register(c); err != nil {
			for _, c := range all[:i] {
				cfg.Registry.Unregister(c)
			}
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return m, nil
}

func newMetrics(values int, cfg *Config) *Metrics {
	return &Metrics{
		agents: newLabel(values, slices.Concat(cfg.Agents, []string{""})...), models: newLabel(values, cfg.Models...), tools: newLabel(values),
		plugins: newLabel(values), policies: newLabel(values, ""), kinds: newLabel(values), reasons: newLabel(values),

		requests:   counters("inference_requests_total", "Requests to models, by how they ended: ok, or the kind of the failure.", "agent", "model", "result"),
		asked:      histograms("inference_duration_seconds", "How long requests to models take.", slow(), "agent", "model"),
		first:      histograms("inference_first_token_seconds", "Time to the first piece of a streamed answer.", slow(), "agent", "model"),
		prompt:     counters("prompt_tokens_total", "Tokens of prompts, those from and to a cache included.", "agent", "model"),
		completion: counters("completion_tokens_total", "Tokens of answers.", "agent", "model"),
		cacheRead:  counters("cache_read_tokens_total", "Tokens of prompts that were read from a cache.", "agent", "model"),
		cacheWrite: counters("cache_write_tokens_total", "Tokens of prompts that were written to a cache.", "agent", "model"),
		cost:       counters("cost_usd_total", "What requests to models cost, in USD.", "agent", "model"),

		calls:        counters("tool_calls_total", "Tool calls that were executed, by how they ended.", "tool", "result"),
		called:       histograms("tool_duration_seconds", "How long tools take.", slow(), "tool"),
		hooked:       histograms("hook_duration_seconds", "How long calls of hooks take.", quick(), "plugin", "phase"),
		hookFailures: counters("hook_failures_total", "Calls of hooks that failed.", "plugin", "phase"),
		hookSkips:    counters("hook_skips_total", "Hooks that were not called, because of a quarantine or of calls that still run.", "plugin", "phase"),

		compactions: counters("compaction_events_total", "What happened to compactions, by kind.", "kind", "policy"),
		admissions:  counters("compaction_admissions_total", "Decisions whether to compact, by reason.", "reason"),
		before:      counter("compaction_before_tokens_total", "Tokens of the views that compactions replaced."),
		after:       counter("compaction_after_tokens_total", "Tokens of the views that compactions made."),
		compacted:   histograms("compaction_duration_seconds", "How long compactions take that were swapped in.", slow(), "policy"),

		tasks:        counters("tasks_ended_total", "Background tasks that ended.", "class", "status"),
		terminations: counters("run_terminations_total", "Runs that ended or came to wait, by why; code is which limit stopped them.", "termination", "code"),
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.requests, m.asked, m.first, m.prompt, m.completion, m.cacheRead, m.cacheWrite, m.cost, m.calls, m.called, m.hooked, m.hookFailures,
		m.hookSkips, m.compactions, m.admissions, m.before, m.after, m.compacted, m.tasks, m.terminations,
	}
}

// Observer counts; it is for mortise.Config.Observers.
func (m *Metrics) Observer() mortise.Observer {
	return mortise.Observer{
		Inference: m.Inference, Tool: m.tool, Event: m.event, Hook: m.hook, Task: m.task,
		Compaction: func(_ context.Context, e compaction.Event) { m.compaction(e) },
	}
}

// Inference is an llm.Observe. It is part of [Metrics.Observer]; use it for models that are asked by others than agents.
func (m *Metrics) Inference(ctx context.Context, _ llm.Call) (context.Context, func(llm.Call)) {
	return ctx, func(c llm.Call) {
		name, model := m.agents.value(c.AgentID), m.models.value(c.Model)
		m.requests.WithLabelValues(name, model, cmp.Or(m.kind(c.Kind()), "ok")).Inc()
		m.asked.WithLabelValues(name, model).Observe(c.Took.Seconds())
		if c.First > 0 {
			m.first.WithLabelValues(name, model).Observe(c.First.Seconds())
		}
		m.prompt.WithLabelValues(name, model).Add(float64(max(0, c.Usage.PromptTokens)))
		m.completion.WithLabelValues(name, model).Add(float64(max(0, c.Usage.CompletionTokens)))
		m.cacheRead.WithLabelValues(name, model).Add(float64(max(0, c.Usage.CacheReadTokens)))
		m.cacheWrite.WithLabelValues(name, model).Add(float64(max(0, c.Usage.CacheCreationTokens)))
		m.cost.WithLabelValues(name, model).Add(max(0, c.Cost))
	}
}

// kind bounds what a model of an embedder may call its failures.
func (m *Metrics) kind(k llm.Kind) string {
	if k == "" {
		return ""
	}
	return m.kinds.value(string(k))
}

func (m *Metrics) tool(ctx context.Context, _ string, call abi.ToolCall) (context.Context, func(abi.ToolResult, error)) {
	start := time.Now()
	return ctx, func(r abi.ToolResult, err error) {
		tool, result := m.tools.value(call.Name), string(abi.ToolSuccess)
		switch {
		case err != nil, r.Status == abi.ToolError:
			result = string(abi.ToolError)
		case r.Status == abi.ToolPending:
			result = string(abi.ToolPending)
		}
		m.calls.WithLabelValues(tool, result).Inc()
		m.called.WithLabelValues(tool).Observe(time.Since(start).Seconds())
	}
}

func (m *Metrics) hook(r phases.Record) {
	plugin, phase := m.plugins.value(r.Plugin), string(r.Phase)
	if r.Attempt == 0 {
		m.hookSkips.WithLabelValues(plugin, phase).Inc()
		return
	}
	m.hooked.WithLabelValues(plugin, phase).Observe(r.Duration.Seconds())
	if r.Err != "" {
		m.hookFailures.WithLabelValues(plugin, phase).Inc()
	}
}

func (m *Metrics) compaction(e compaction.Event) {
	if e.Kind == compaction.EventAdmission {
		if e.Decision != nil {
			m.admissions.WithLabelValues(m.reasons.value(e.Decision.Reason)).Add(float64(max(1, e.Count)))
		}
		return
	}
	policy := m.policies.value(e.Policy)
	m.compactions.WithLabelValues(string(e.Kind), policy).Inc()
	if e.Kind == compaction.EventSwapped {
		m.before.Add(float64(max(0, e.PreTokens)))
		m.after.Add(float64(max(0, e.PostTokens)))
		m.compacted.WithLabelValues(policy).Observe(e.Duration.Seconds())
	}
}

func (m *Metrics) task(e background.Event) {
	if e.Kind == background.EventFinished {
		m.tasks.WithLabelValues(string(e.Task.Class), string(e.Task.Status)).Inc()
	}
}

func (m *Metrics) event(_ context.Context, e agent.Event) {
	if e.Type != agent.EventRunFinish || e.Outcome == nil {
		return
	}
	t := e.Outcome.Termination
	m.terminations.WithLabelValues(string(t.Type), codeOf(t)).Inc()
}

// codeOf is the limit that stopped a run, or "plugin": plugins choose their codes.
func codeOf(t agent.Termination) string {
	if t.Type != agent.Stopped {
		return ""
	}
	switch code := agent.StopType(t.Code); code {
	case agent.StopMaxRounds, agent.StopTimeout, agent.StopTokens, agent.StopCost, agent.StopErrors, agent.StopOnTool, agent.StopContent, agent.StopLoop:
		return t.Code
	default:
		return "plugin"
	}
}

// quick are the buckets of hooks, from 10 µs to 20 s; slow those of models and tools, from 10 ms to 10 min.
func quick() []float64 { return prometheus.ExponentialBuckets(0.00001, 5, 10) }

func slow() []float64 { return prometheus.ExponentialBuckets(0.01, 3, 11) }

const namespace = "mortise"

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}
