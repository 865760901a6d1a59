package replaycmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/plugins"
)

// VerdictReport is how a command went, before the details.
type VerdictReport struct {
	// Problems are sentences, the most important first. Faults is how many of them are
	// failures, or refused replies, of plugins and policies, which --strict does not let pass.
	Problems []string `json:"problems"`
	Faults   int      `json:"faults"`
	// Tokens are estimates of all threads at their end, ViewTokens what a model would see of them.
	Tokens     int64 `json:"tokens"`
	ViewTokens int64 `json:"view_tokens"`
	// Compactions that were swapped in, and those that failed or were refused.
	Compactions int       `json:"compactions"`
	Failed      int       `json:"failed_compactions"`
	ExitCode    exit.Code `json:"exit_code"`
	// Meaning is that of the exit code.
	Meaning string `json:"exit_meaning"`
}

// judge fills in the verdict, but for the exit code.
func (r *Report) judge() {
	r.fillLists()
	v := &r.Verdict
	for _, t := range r.Threads {
		v.Tokens, v.ViewTokens = v.Tokens+t.Tokens, v.ViewTokens+t.ViewTokens
	}
	for _, e := range r.Compactions {
		switch e.Kind {
		case compaction.EventSwapped:
			v.Compactions++
		case compaction.EventFailed, compaction.EventRefused:
			v.Failed++
		default: // they begin or end none
		}
	}
	faults := slices.Concat(r.moduleFaults(), r.hookFaults(), r.policyFaults())
	v.Faults = len(faults)
	v.Problems = term.List(slices.Concat(r.runProblems(), faults, r.otherProblems()))
}

// fillLists makes empty lists of those that are nil, which JSON would have as null.
func (r *Report) fillLists() {
	r.Modules, r.Guests, r.Threads, r.Hooks = term.List(r.Modules), term.List(r.Guests), term.List(r.Threads), term.List(r.Hooks)
	r.Changes, r.Gates, r.Admissions, r.Compactions = term.List(r.Changes), term.List(r.Gates), term.List(r.Admissions), term.List(r.Compactions)
}

// firstFault is the first of those that --strict does not let pass.
func (r *Report) firstFault() string { return r.Verdict.Problems[len(r.runProblems())] }

// end sets the exit code.
func (v *VerdictReport) end(code exit.Code) { v.ExitCode, v.Meaning = code, code.String() }

func (r *Report) runProblems() (out []string) {
	if n := len(r.Runs.Failures); n > 0 {
		out = append(out, fmt.Sprintf("%s failed, the last one: %s", term.Counted(n, "run"), r.Runs.Failures[n-1]))
	}
	if n := r.blocked(); n > 0 {
		out = append(out, fmt.Sprintf("%s blocked by a plugin and ended there, the last one: %s", term.Counted(n, "run was", "runs were"), r.Runs.Blocked))
	}
	for _, t := range r.Threads {
		if !t.Complete && !r.Interrupted {
			out = append(out, fmt.Sprintf("thread %s was not played to its end%s", t.ID, term.After(": ", t.Ended)))
		}
	}
	return out
}

// blocked is how many runs a plugin blocked.
func (r *Report) blocked() int { return r.Runs.Terminations[agent.Blocked] }

func (r *Report) moduleFaults() (out []string) {
	for _, m := range r.Modules {
		if m.State == plugins.StateFailed {
			out = append(out, "module "+m.Name+" was not loaded: "+m.Reason)
		}
	}
	for _, l := range r.Reloads {
		switch {
		case l.RolledBackTo != "":
			out = append(out, fmt.Sprintf("module %s was %s", l.Module, l.Error))
		case l.Error != "":
			out = append(out, fmt.Sprintf("module %s was not swapped: %s", l.Module, l.Error))
		}
	}
	return out
}

func (r *Report) hookFaults() (out []string) {
	for _, h := range r.Hooks {
		if h.Failures > 0 {
			out = append(out, fmt.Sprintf("plugin %s failed in %d of %s at %s, the last time: %s", h.Plugin, h.Failures, term.Counted(h.Calls, "call"), h.Phase, h.LastError))
		}
		if h.Refused > 0 {
			out = append(out, fmt.Sprintf("of plugin %s %s refused at %s; mortise explain RUN says why", h.Plugin, term.Counted(h.Refused, "part of its replies was", "parts of its replies were"), h.Phase))
		}
	}
	return out
}

// policyFaults are those of summarizers and admission, each kind once, with the last reason.
func (r *Report) policyFaults() (out []string) {
	type fault struct{ policy, what string }
	var order []fault
	times, last := map[fault]int{}, map[fault]string{}
	add := func(policy, what, reason string, n int) {
		f := fault{policy, what}
		if times[f] == 0 {
			order = append(order, f)
		}
		times[f], last[f] = times[f]+n, reason
	}
	for _, e := range r.Compactions {
		switch {
		case e.Kind == compaction.EventFailed:
			add(e.Policy, "failed", e.Reason, 1)
		case e.Kind == compaction.EventRefused:
			add(e.Policy, "wrote a summary that was refused", e.Reason, 1)
		case e.Kind == compaction.EventSwapped && strings.HasPrefix(e.Reason, "fallback after "):
			add(e.Policy, "wrote as the fallback", e.Reason, 1)
		}
	}
	for _, a := range r.Admissions {
		if a.Decision.Reason == abi.ReasonPolicyUnavailable {
			add("admission", "gave no decision", a.Detail, a.Count)
		}
	}
	for _, f := range order {
		out = append(out, fmt.Sprintf("policy %s %s %s, the last time: %s", f.policy, f.what, term.Counted(times[f], "time"), last[f]))
	}
	return out
}

func (r *Report) otherProblems() (out []string) {
	exceeded := 0
	for _, e := range r.Compactions {
		if e.Kind == compaction.EventFallback {
			exceeded++
		}
		if e.Kind == compaction.EventBreaker {
			out = append(out, "the breaker of compaction opened: "+e.Reason)
		}
	}
	if exceeded > 0 {
		out = append(out, fmt.Sprintf("the window was exceeded %s: the oldest rounds were left out until a compaction landed", term.Counted(exceeded, "time")))
	}
	return out
}

// verdictTable is the top of the report.
func (r *Report) verdictTable(t *term.Table) {
	v := &r.Verdict
	verdict := "no problems"
	if n := len(v.Problems); n > 0 {
		verdict = term.Counted(n, "problem")
	}
	t.Row("%s, exit code %d: %s", verdict, v.ExitCode, v.Meaning)
	for i, p := range v.Problems {
		if i == maxRows {
			t.Row("  and %d more (--output json has them)", len(v.Problems)-maxRows)
			break
		}
		t.Row("  %s", term.Whole(p))
	}
	t.Row("%s, %s, %s, %s failed or refused; %s tokens in the log, the model sees %s; %.2f s\n",
		term.Counted(r.Runs.Count, "run"), term.Counted(r.Runs.Steps, "inference"), term.Counted(v.Compactions, "compaction"), fmt.Sprint(v.Failed),
		term.Thousands(v.Tokens), term.Thousands(v.ViewTokens), float64(r.WallMS)/1000)
}
