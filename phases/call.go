package phases

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// call is one call of a hook and what became of it.
type call struct {
	hook  *hook
	event abi.Event
	mark  uint64 // for the tracker
	stage atomic.Int32

	// Written by the goroutine of the phase only.
	attempt     int
	at          time.Time
	took        time.Duration
	reply       *abi.Reply
	err         error
	proposal    *proposal
	applied     []Change
	refused     []Refusal
	deferred    string
	gate        *abi.GateDecision
	overridden  bool
	quarantined bool
}

// Stages of a call. Whoever leaves running first decides who reports.
const (
	running int32 = iota
	returned
	abandoned
)

// answer travels from the goroutine of a hook to that of the phase.
type answer struct {
	call  *call
	reply *abi.Reply
	err   error
	took  time.Duration
}

// newCall prepares a call, or says why there will be none (attempt 0).
func (p *pass) newCall(h *hook, attempt int) *call {
	c := &call{hook: h, at: p.r.cfg.Now()}
	if until, skip := h.quarantined(p.r.cfg.Now); skip && attempt == 1 {
		c.quarantined = true
		c.refused = []Refusal{{What: "hook", Reason: "in quarantine until " + until.UTC().Format(time.RFC3339)}}
		return c
	}
	if n := h.plugin.stuck.Load(); n >= int64(p.r.cfg.Limits.Abandoned) {
		c.err = fmt.Errorf("%w: not called, because %d earlier calls of the plugin are still running", ErrDeadline, n)
		return c
	}
	c.attempt = attempt
	c.event, c.mark = p.event(h)
	return c
}

// event shows a hook the frame and its own state, as they are now.
func (p *pass) event(h *hook) (abi.Event, uint64) {
	f, messages := p.frame, p.draft.messages
	from, mark := len(messages), uint64(0)
	switch h.Messages {
	case abi.ViewLast:
		from = max(0, len(messages)-1)
	case abi.ViewWindow:
		from = max(0, len(messages)-h.Window)
	case abi.ViewAll:
		from = 0
	case abi.ViewDelta:
		from, mark = p.draft.state.seen.delta(h.plugin.name, messages)
	case abi.ViewNone:
	}
	e := abi.Event{
		ABI: abi.Version, Phase: f.Phase, Run: f.Run, Step: f.Step, MessagesTotal: len(messages),
		Response: f.Response, Call: f.Call, Result: f.Result, ResultMessageID: f.ResultMessageID, Notices: f.Notices,
	}
	if from < len(messages) {
		e.Messages, e.MessagesFrom = messages[from:len(messages):len(messages)], from
	}
	for _, k := range h.plugin.list {
		if value, ok := p.draft.load(k); ok {
			if e.State == nil {
				e.State = make(map[string]any, len(h.plugin.list))
			}
			e.State[k.short] = value
		}
	}
	return e, mark
}

// invoke makes the calls concurrently, and returns when each has answered or was
// abandoned.
func (r *Runtime) invoke(ctx context.Context, calls []*call) {
	hctx, cancel := context.WithTimeout(ctx, r.cfg.HookTimeout)
	defer cancel()
	answers := make(chan answer, len(calls))
	left := 0
	for _, c := range calls {
		if c.attempt > 0 {
			left++
			go r.work(hctx, c, answers)
		}
	}
	grace := time.NewTimer(r.cfg.HookTimeout + r.cfg.Grace)
	defer grace.Stop()
	done := hctx.Done()
	for left > 0 {
		select {
		case a := <-answers:
			left--
			a.call.reply, a.call.err, a.call.took = a.reply, a.err, a.took
		case <-done:
			done = nil
			grace.Reset(r.cfg.Grace)
		case <-grace.C:
			// Those still left after this have returned: their answers are coming.
			left -= r.abandon(ctx, calls)
		}
	}
}

// work calls the hook, whatever it does.
func (r *Runtime) work(ctx context.Context, c *call, answers chan<- answer) {
	a := answer{call: c, err: fmt.Errorf("%w: the hook ended its goroutine", ErrPanic)}
	start := r.cfg.Now()
	defer func() {
		if v := recover(); v != nil {
			a.reply, a.err = nil, fmt.Errorf("%w: %.512v", ErrPanic, v)
			r.cfg.Logger.ErrorContext(ctx, "plugin panicked", "plugin", c.hook.plugin.name, "phase", string(c.hook.Phase), "stack", string(debug.Stack()))
		}
		a.took = r.cfg.Now().Sub(start)
		if !c.stage.CompareAndSwap(running, returned) {
			c.hook.plugin.stuck.Add(-1)
			return
		}
		answers <- a
	}()
	reply, err := c.hook.plugin.impl.OnPhase(ctx, &c.event)
	late := ctx.Err()
	switch {
	case late == nil:
		a.reply, a.err = reply, err
	case errors.Is(late, context.Canceled):
		a.err = late
	case err != nil:
		a.err = fmt.Errorf("%w: %w", ErrDeadline, err)
	default:
		a.err = fmt.Errorf("%w: it answered too late", ErrDeadline)
	}
}

// abandon gives up the calls that have not returned, and says how many.
func (r *Runtime) abandon(ctx context.Context, calls []*call) int {
	n := 0
	for _, c := range calls {
		if c.attempt == 0 || !c.stage.CompareAndSwap(running, abandoned) {
			continue
		}
		n++
		c.hook.plugin.stuck.Add(1)
		c.took = r.cfg.Now().Sub(c.at)
		c.err = fmt.Errorf("%w: it ignored its cancelled context and was abandoned", ErrDeadline)
		r.cfg.Logger.WarnContext(ctx, "hook abandoned", "plugin", c.hook.plugin.name, "phase", string(c.hook.Phase))
	}
	return n
}
