package replaycmd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/llm/transcript"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
	"github.com/mortise-dev/mortise/thread"
)

// Bounds on lists in a report; what is beyond them is still counted.
const (
	maxFailures = 20
	maxGates    = 200
	maxNotes    = 100
	maxRuns     = 200
)

// collector gathers a report while runs execute. It is safe for concurrent use.
type collector struct {
	limits map[string]time.Duration
	// records gets the same decisions, for mortise explain; nil keeps none.
	records *recorder
	steps   stepClock

	mu       sync.Mutex
	report   Report
	hooks    map[[2]string]*HookReport
	changes  map[[3]string]*ChangeReport
	admitted map[string]int // thread -> index of its last admission
}

func newCollector() *collector {
	return &collector{
		limits:   make(map[string]time.Duration),
		report:   Report{Schema: reportSchema, Runs: RunsReport{Terminations: make(map[agent.TerminationType]int)}},
		hooks:    make(map[[2]string]*HookReport),
		changes:  make(map[[3]string]*ChangeReport),
		admitted: make(map[string]int),
	}
}

// record takes what one hook call came to. The report is made of the same entries
// that mortise explain prints.
func (c *collector) record(r phases.Record) {
	if r.Plugin == recordingName || r.Plugin == background.PluginName {
		return // the replay's own, and the runtime's
	}
	e := thread.DecisionOf(&r)
	c.records.decided(&r, e)
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hook(&e)
	if e.Attempt > 0 {
		h.Calls++
	}
	h.TotalMS += e.DurationMS
	h.MaxMS = max(h.MaxMS, e.DurationMS)
	h.Refused += len(e.Refused)
	if e.Error != "" {
		h.Failures++
		h.LastError = e.Error
	}
	if e.DeferredBy != "" {
		h.Deferred++
	}
	if e.Quarantined {
		h.Quarantined++
	}
	for _, change := range e.Applied {
		c.change(e.Plugin, change)
	}
	if g := e.Gate; g != nil && g.Action != abi.GateAllow && !g.Overridden {
		c.gate(GateReport{Plugin: e.Plugin, Action: string(g.Action), Tool: e.Tool, CallID: e.CallID, Reason: g.Reason})
	}
}

// gate counts a call that a gate decided.
func (c *collector) gate(g GateReport) {
	list := &c.report.Gates
	same := func(had GateReport) bool {
		had.CallID, had.Count = g.CallID, 0
		return had == g
	}
	i := slices.IndexFunc(*list, same)
	if i < 0 && len(*list) >= maxGates {
		g.Reason = ""
		i = slices.IndexFunc(*list, same)
	}
	if i < 0 {
		i = len(*list)
		*list = append(*list, g)
	}
	(*list)[i].Count++
}

func (c *collector) hook(e *thread.Decision) *HookReport {
	key := [2]string{e.Plugin, string(e.Phase)}
	h := c.hooks[key]
	if h == nil {
		h = &HookReport{Plugin: e.Plugin, Phase: string(e.Phase), LimitMS: c.limits[e.Plugin].Milliseconds()}
		c.hooks[key] = h
	}
	return h
}

func (c *collector) change(plugin string, change thread.Change) {
	key := [3]string{plugin, change.What, change.Note}
	entry := c.changes[key]
	if entry == nil {
		entry = &ChangeReport{Plugin: plugin, What: change.What, Note: change.Note, Example: change.Target}
		c.changes[key] = entry
	}
	entry.Count++
}

// event records an event of a run.
func (c *collector) event(e agent.Event) {
	c.records.event(e)
	c.steps.event(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	runs := &c.report.Runs
	switch e.Type {
	case agent.EventInferenceComplete:
		runs.Steps++
		if e.Usage != nil {
			runs.BilledPrompt += e.Usage.PromptTokens
			runs.BilledCompletion += e.Usage.CompletionTokens
		}
	case agent.EventToolCallDone:
		runs.ToolCalls++
		if len(e.RewrittenBy) > 0 {
			runs.Rewritten++
		}
	case agent.EventRunFinish:
		runs.Count++
		if e.Outcome == nil {
			return
		}
		runs.Terminations[e.Outcome.Termination.Type]++
		runs.List = append(runs.List, RunReport{ID: e.RunID, Thread: e.ThreadID, Termination: e.Outcome.Termination.Type, Steps: e.Outcome.Steps})
		runs.List = runs.List[max(0, len(runs.List)-maxRuns):]
		if e.Outcome.Termination.Type == agent.Blocked {
			runs.Blocked = e.Outcome.Termination.Detail
		}
		if e.Outcome.Termination.Type == agent.Failed && len(runs.Failures) < maxFailures {
			runs.Failures = append(runs.Failures, e.Outcome.Termination.Detail)
		}
	default: // the others are not counted
	}
}

// compaction records a compaction.
func (c *collector) compaction(e compaction.Event) {
	c.records.compaction(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Kind == compaction.EventAdmission {
		c.admission(e)
		return
	}
	c.report.Compactions = append(c.report.Compactions, e)
}

// admission keeps one entry for a run of equal decisions.
func (c *collector) admission(e compaction.Event) {
	if e.Decision == nil {
		return
	}
	list := c.report.Admissions
	if i, ok := c.admitted[e.Thread]; ok && list[i].Decision.Reason == e.Decision.Reason && !e.Decision.Allowed {
		list[i].Count += max(1, e.Count)
		return
	}
	c.admitted[e.Thread] = len(list)
	c.report.Admissions = append(c.report.Admissions, AdmissionReport{
		Thread: e.Thread, At: e.At, Decision: e.Decision, Detail: e.Reason, Count: max(1, e.Count),
	})
}

func (c *collector) thread(t ThreadReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Threads = append(c.report.Threads, t)
}

// done returns the report, with its parts in a fixed order.
func (c *collector) done() *Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.report
	r.RecordStore, r.Tools = c.records.name(), slices.Clone(r.Tools)
	r.Evidence = evidence(r.Admissions, &c.steps)
	order := make(map[string]int)
	for i, p := range slices.Concat(abi.Phases(), abi.CompactionPhases()) {
		order[string(p)] = i
	}
	for _, h := range c.hooks {
		r.Hooks = append(r.Hooks, *h)
	}
	slices.SortFunc(r.Hooks, func(a, b HookReport) int {
		return cmp.Or(strings.Compare(a.Plugin, b.Plugin), order[a.Phase]-order[b.Phase])
	})
	keys := slices.SortedFunc(maps.Keys(c.changes), func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		r.Changes = append(r.Changes, *c.changes[k])
	}
	return &r
}

// loaded notes the tools that plugins have, and the time limits of their calls.
func (c *collector) loaded(p *program.Parts) {
	for _, t := range p.Tools.Tools() {
		c.tool(ToolReport{Plugin: p.Tools.Owner(t.Name), Tool: t.Name})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range p.Set.Status() {
		c.limits[s.Name] = p.Cfg.TimeLimit(p.Cfg.Plugins[i].Limits)
	}
}

// tool counts what became of a tool of a plugin. The report of one that was never called has it with no calls.
func (c *collector) tool(r ToolReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.report.Tools, func(o ToolReport) bool { return o.Plugin == r.Plugin && o.Tool == r.Tool })
	if i < 0 {
		c.report.Tools = append(c.report.Tools, r)
		return
	}
	c.report.Tools[i].Calls += r.Calls
	c.report.Tools[i].Failed += r.Failed
}

// session takes what was read.
func (c *collector) session(path string, f *transcript.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := SessionReport{Path: path, Format: string(f.Format), Conversations: len(f.Conversations), Skipped: f.Skipped}
	for i := range f.Conversations {
		conv := &f.Conversations[i]
		s.Messages += len(conv.Entries)
		for _, n := range conv.Notes {
			if len(s.Notes) == maxNotes {
				break
			}
			s.Notes = append(s.Notes, fmt.Sprintf("line %d: %s", n.Line, n.What))
		}
	}
	for i := range f.Broken {
		if i == maxNotes {
			break
		}
		s.Broken = append(s.Broken, "left out: "+f.Broken[i].Error())
	}
	c.report.Session = s
}

// modules takes what was loaded.
func (c *collector) modules(status []plugins.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Modules = status
}

// guests takes what the modules used.
func (c *collector) guests(g []GuestReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Guests = g
}

// reloaded takes what became of a reload.
func (c *collector) reloaded(r ReloadReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.report.Reloads) < maxNotes {
		c.report.Reloads = append(c.report.Reloads, r)
	}
}

// reloadAsked counts a signal that asks for a reload.
func (c *collector) reloadAsked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.ReloadRequests++
}
