package phases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/mortise-dev/mortise/abi"
)

// Why a hook failed, for errors.Is.
var (
	// ErrDeadline is a hook that took longer than Config.HookTimeout, or than its own limit.
	ErrDeadline = errors.New("missed its deadline")
	// ErrPanic is a hook that panicked.
	ErrPanic = errors.New("panicked")
	// ErrRefused is a hook whose reply was refused.
	ErrRefused = errors.New("reply refused")
	// ErrNotConverged is a phase whose actions continue after Limits.Rounds or beyond
	// Config.HandlerTime.
	ErrNotConverged = errors.New("not converged")
)

// HookError is the failure of a hook.
type HookError struct {
	Plugin string
	Phase  abi.Phase
	// Handler is the full name of the action or tool that failed, or empty for a hook.
	Handler string
	// Tool means that Handler is a tool.
	Tool bool
	Err  error
}

// Error names the plugin and the phase.
func (e *HookError) Error() string {
	switch {
	case e.Tool:
		return fmt.Sprintf("phases: %s: tool %q: %v", e.Phase, e.Handler, e.Err)
	case e.Handler != "":
		return fmt.Sprintf("phases: %s: action %q: %v", e.Phase, e.Handler, e.Err)
	}
	return fmt.Sprintf("phases: %s: plugin %q: %v", e.Phase, e.Plugin, e.Err)
}

// Unwrap returns the cause.
func (e *HookError) Unwrap() error { return e.Err }

// Record is what one call of a hook came to.
type Record struct {
	// At is when the hook was called, Duration how long it took.
	At       time.Time
	Run      abi.RunIdentity
	Phase    abi.Phase
	Step     int
	Plugin   string
	CallID   string
	ToolName string
	// Handler is the full name of the action or effect that was executed, or of the tool
	// that replied; empty for a hook.
	Handler  string
	Duration time.Duration
	// Attempt is 1, 2 for the second call of a deferred hook, 0 for a hook that
	// was not called. An action counts on while others change what it writes.
	Attempt int
	// MessagesSent of the MessagesTotal in the conversation were shown to the hook,
	// beginning with that of index MessagesFrom.
	MessagesSent  int
	MessagesFrom  int
	MessagesTotal int
	// Revision is that of the state which the hook was shown.
	Revision uint64
	Applied  []Change
	Refused  []Refusal
	// Deferred says with whom the reply collided. It was dropped, and the hook's
	// next record is that of its second call.
	Deferred string
	// Gate is the decision that the hook gave, or that its failure implies.
	// Overridden means that another one was taken.
	Gate       *abi.GateDecision
	Overridden bool
	// Recheck is a gate that judged a call again because plugins had rewritten it. Only its
	// decision counts.
	Recheck bool
	// RewrittenBy are the plugins that had changed the arguments of the call when the hook
	// saw it.
	RewrittenBy []string
	// Err is why the hook failed.
	Err string
	// Quarantined means that the hook was skipped, or will be from now on.
	Quarantined bool
}

// Change is one thing that was applied: an operation or the type of an effect,
// and what it was done to.
type Change struct {
	What   string
	Target string
	Note   string
	// Overridden means that it does not count, because another hook's does: of several
	// stops and requests for a compaction one is taken, and a later override of the
	// inference wins over an earlier one where both set a field.
	Overridden bool
}

// Refusal is one part of a reply that was refused. The rest of the reply was not
// applied either.
type Refusal struct {
	What   string
	Reason string
}

// record keeps the health of the hooks and reports what they did: first calls in
// firing order, then the others as they came.
func (p *pass) record(ctx context.Context) {
	p.account(ctx)
	records := make([]Record, len(p.all))
	for i, c := range p.all {
		records[i] = p.recordOf(c)
	}
	p.r.hand(records...)
}

// hand hands records over, one at a time.
func (r *Runtime) hand(records ...Record) {
	if r.cfg.Record == nil {
		return
	}
	r.recording.Lock()
	defer r.recording.Unlock()
	for _, rec := range records {
		r.cfg.Record(rec)
	}
}

func (p *pass) recordOf(c *call) Record {
	rec := Record{
		At: c.at, Run: p.frame.Run, Phase: p.frame.Phase, Step: p.frame.Step,
		Plugin: c.hook.plugin.name, Handler: c.hook.name, Duration: c.duration, Attempt: c.attempt,
		MessagesSent: len(c.event.Messages), MessagesFrom: c.event.MessagesFrom, MessagesTotal: c.event.MessagesTotal, Revision: c.base, Applied: c.applied, Refused: c.refused,
		Deferred: c.deferred, Overridden: c.overridden, Quarantined: c.quarantined, Recheck: p.recheck, RewrittenBy: c.event.RewrittenBy,
	}
	if c.attempt == 0 {
		rec.MessagesSent, rec.MessagesFrom, rec.MessagesTotal = 0, 0, 0
	}
	if p.frame.Call != nil {
		rec.CallID, rec.ToolName = p.frame.Call.ID, p.frame.Call.Name
	}
	if c.gate != nil {
		decision := *c.gate
		rec.Gate = &decision
	}
	if c.err != nil {
		rec.Err = oneLine(c.err.Error(), p.r.cfg.Limits.TextBytes)
	}
	return rec
}

// oneLine makes foreign text fit to be shown on a terminal: valid, bounded,
// without control characters.
func oneLine(s string, limit int) string {
	s = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, s[:min(len(s), limit)])
	return strings.ToValidUTF8(s, "")
}
