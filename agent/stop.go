package agent

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// StopType is what a [StopPolicy] looks at.
type StopType string

// Types of stop policies. Each is also the code with which it stops a run.
const (
	// StopMaxRounds stops before one inference more than Rounds.
	StopMaxRounds StopType = "max_rounds"
	// StopTimeout stops a run that was at work for Seconds. What it waited does not
	// count.
	StopTimeout StopType = "timeout"
	// StopTokens stops when a run was billed for MaxTotal tokens, StopCost when it
	// cost MaxCost, in the unit of Config.Cost.
	StopTokens StopType = "token_budget"
	StopCost   StopType = "cost_budget"
	// StopErrors stops after Max tool calls in a row that failed.
	StopErrors StopType = "consecutive_errors"
	// StopOnTool stops after a step that called ToolName; the call is executed.
	StopOnTool StopType = "stop_on_tool"
	// StopContent stops when an answer matches Pattern, a regular expression. Calls of
	// that answer are not executed.
	StopContent StopType = "content_match"
	// StopLoop stops when the last Window calls were the same one, with the same
	// arguments. The last of them is not executed.
	StopLoop StopType = "loop_detection"
)

// StopPolicy ends a run. Which field counts follows from Type. All count across the
// times that a run waited and continued.
type StopPolicy struct {
	Type     StopType `json:"type"`
	Rounds   int      `json:"rounds,omitempty"`
	Seconds  float64  `json:"seconds,omitempty"`
	MaxTotal int64    `json:"max_total,omitempty"`
	MaxCost  float64  `json:"max_cost,omitempty"`
	Max      int      `json:"max,omitempty"`
	ToolName string   `json:"tool_name,omitempty"`
	Pattern  string   `json:"pattern,omitempty"`
	Window   int      `json:"window,omitempty"`
}

// maxWindow bounds how many calls are remembered.
const maxWindow = 256

// rule is a policy that was checked.
type rule struct {
	StopPolicy
	pattern *regexp.Regexp
}

func newRules(policies []StopPolicy) ([]rule, error) {
	var out []rule
	for i, p := range policies {
		r := rule{StopPolicy: p}
		wrong := func(field string) error {
			return fmt.Errorf("agent: Config.Stop[%d]: %s needs %s", i, p.Type, field)
		}
		var err error
		switch {
		case p.Type == StopMaxRounds && p.Rounds <= 0:
			err = wrong("rounds above 0")
		case p.Type == StopTimeout && (p.Seconds <= 0 || p.Seconds > 1e9):
			err = wrong("seconds above 0, and not beyond a billion")
		case p.Type == StopTokens && p.MaxTotal <= 0:
			err = wrong("max_total above 0")
		case p.Type == StopCost && p.MaxCost <= 0:
			err = wrong("max_cost above 0")
		case p.Type == StopErrors && p.Max <= 0:
			err = wrong("max above 0")
		case p.Type == StopOnTool && p.ToolName == "":
			err = wrong("a tool_name")
		case p.Type == StopContent && p.Pattern == "":
			err = wrong("a pattern")
		case p.Type == StopLoop && (p.Window < 2 || p.Window > maxWindow):
			err = wrong(fmt.Sprintf("a window from 2 to %d", maxWindow))
		case !slices.Contains(stopTypes(), p.Type):
			err = fmt.Errorf("agent: Config.Stop[%d]: type %.40q is not one of %q", i, p.Type, stopTypes())
		case p.Type == StopContent:
			if r.pattern, err = regexp.Compile(p.Pattern); err != nil {
				err = fmt.Errorf("agent: Config.Stop[%d]: pattern: %w", i, err)
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func stopTypes() []StopType {
	return []StopType{StopMaxRounds, StopTimeout, StopTokens, StopCost, StopErrors, StopOnTool, StopContent, StopLoop}
}

func stopped(code StopType, format string, args ...any) *Termination {
	return &Termination{Type: Stopped, Code: string(code), Detail: fmt.Sprintf(format, args...)}
}

// active is how long the run was at work.
func (r *run) active() time.Duration {
	return r.record.Active + time.Since(r.began)
}

// mayStep stops a run before an inference that is beyond its limits.
func (r *run) mayStep() *Termination {
	if n := r.cfg.MaxRounds; n > 0 && r.step >= n {
		return stopped(StopMaxRounds, "reached %d rounds", n)
	}
	for i := range r.agent.rules {
		p := &r.agent.rules[i]
		if p.Type == StopMaxRounds && r.step >= p.Rounds {
			return stopped(StopMaxRounds, "reached %d rounds", p.Rounds)
		}
		if stop := r.spent(p); stop != nil {
			return stop
		}
	}
	return nil
}

// spent checks what an inference uses up.
func (r *run) spent(p *rule) *Termination {
	used := r.record.Usage
	total := max(used.TotalTokens, used.PromptTokens+used.CompletionTokens)
	switch {
	case p.Type == StopTokens && total >= p.MaxTotal:
		return stopped(StopTokens, "used %d of %d tokens", total, p.MaxTotal)
	case p.Type == StopCost && r.record.Cost >= p.MaxCost:
		return stopped(StopCost, "spent %.4f of %.4f", r.record.Cost, p.MaxCost)
	case p.Type == StopTimeout && r.active().Seconds() >= p.Seconds:
		return stopped(StopTimeout, "at work for %.0f of %.0f seconds", r.active().Seconds(), p.Seconds)
	default:
		return nil
	}
}

// mayGoOn stops a run after an answer. What was said is kept; its calls are not
// executed.
func (r *run) mayGoOn(m *abi.Message) *Termination {
	r.remember(m.ToolCalls)
	for i := range r.agent.rules {
		p := &r.agent.rules[i]
		if stop := r.spent(p); stop != nil && len(m.ToolCalls) > 0 {
			return stop
		}
		if p.Type == StopContent && p.pattern.MatchString(m.Text()) {
			return stopped(StopContent, "the answer matches %.120q", p.Pattern)
		}
		if p.Type == StopLoop && same(r.record.Recent, p.Window) {
			return stopped(StopLoop, "the last %d calls were the same", p.Window)
		}
	}
	return nil
}

// stepStop stops a run after a step.
func (r *run) stepStop(calls []abi.ToolCall) *Termination {
	for i := range r.agent.rules {
		p := &r.agent.rules[i]
		switch {
		case p.Type == StopErrors && r.record.Failures >= p.Max:
			return stopped(StopErrors, "%d tool calls in a row failed", r.record.Failures)
		case p.Type == StopOnTool && slices.ContainsFunc(calls, func(c abi.ToolCall) bool { return c.Name == p.ToolName }):
			return stopped(StopOnTool, "the tool %.80q was called", p.ToolName)
		}
	}
	return nil
}

// remember keeps fingerprints of calls.
func (r *run) remember(calls []abi.ToolCall) {
	window := 0
	for i := range r.agent.rules {
		window = max(window, r.agent.rules[i].Window)
	}
	if window == 0 {
		return
	}
	recent := slices.Clone(r.record.Recent)
	for _, c := range calls {
		h := fnv.New64a()
		arguments, err := json.Marshal(c.Arguments)
		if err != nil {
			arguments = fmt.Append(nil, c.Arguments)
		}
		fmt.Fprintf(h, "%q %s", c.Name, arguments)
		recent = append(recent, h.Sum64())
	}
	r.record.Recent = recent[max(0, len(recent)-window):]
}

// same reports whether the last n are equal.
func same(recent []uint64, n int) bool {
	if len(recent) < n {
		return false
	}
	last := recent[len(recent)-n:]
	return !slices.ContainsFunc(last, func(v uint64) bool { return v != last[0] })
}

// tally counts how a tool call ended.
func (r *run) tally(result abi.ToolResult) {
	switch result.Status {
	case abi.ToolError:
		r.record.Failures++
	case abi.ToolSuccess:
		r.record.Failures = 0
	case abi.ToolPending:
	}
}
