package phases

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// call is one call of a hook or handler and what became of it.
type call struct {
	hook  *hook
	event abi.Event
	mark  uint64 // for the tracker
	base  uint64 // revision of the state in the event
	stage atomic.Int32
	// moment is the context of the call.
	moment *moment

	// Written by the goroutine of the phase only.
	attempt int
	at      time.Time
	took    time.Duration
	reply   *abi.Reply
	fault   error // of the call
	verdict
}

// verdict is what settling made of a call. It is made anew when the phase is
// settled again.
type verdict struct {
	err         error
	proposal    *proposal
	applied     []Change
	refused     []Refusal
	deferred    string
	gate        *abi.GateDecision
	overridden  bool
	quarantined bool
	// order counts the replies that were applied.
	order int
}

// Stages of a call. The goroutine that first moves it on from running reports.
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

// loader shows the values of keys: a snapshot, or one with updates on top.
type loader interface {
	Load(k *state.Key) (any, bool)
}

// newCall prepares a call, or records why there will be none (attempt 0).
func (p *pass) newCall(h *hook, attempt int, from loader, base uint64) *call {
	c := &call{hook: h, at: p.r.cfg.Now(), base: base}
	p.all = append(p.all, c)
	if until, skip := h.quarantined(p.r.cfg.Now); skip && attempt == 1 {
		c.quarantined = true
		c.refused = []Refusal{{What: "hook", Reason: "in quarantine until " + until.UTC().Format(time.RFC3339)}}
		return c
	}
	if n := h.plugin.stuck.Load(); n >= int64(p.r.cfg.Limits.Abandoned) {
		c.fault = fmt.Errorf("%w: not called, because %d earlier calls of the plugin are still running", ErrDeadline, n)
		return c
	}
	c.attempt = attempt
	p.show(c, from)
	return c
}

// show writes the event: the frame, and the plugin's own state.
func (p *pass) show(c *call, from loader) {
	f, h, e := p.frame, c.hook, &c.event
	*e = abi.Event{ABI: abi.Version, Phase: f.Phase, Run: f.Run, Step: f.Step, NowMS: c.at.UnixMilli(), MessagesTotal: len(f.Messages), Config: h.plugin.settings}
	if h.kind != effectHandler {
		d := p.draft
		e.Response, e.Call, e.RewrittenBy, e.Result, e.ResultMessageID = d.response, d.call, d.rewrittenBy, d.answer, f.ResultMessageID
		e.Request, e.End = p.request(h), f.End
		e.Notices, e.Compaction, e.MessagesTotal = f.Notices, f.Compaction, len(p.draft.messages)
		p.showMessages(c)
	}
	e.State = h.plugin.values(from)
}

// values returns what a plugin keeps, by the short names of its keys, or nil if it keeps
// nothing.
func (p *plugin) values(from loader) map[string]any {
	var out map[string]any
	for _, k := range p.list {
		if value, ok := from.Load(k.Key); ok {
			if out == nil {
				out = make(map[string]any, len(p.list))
			}
			out[k.short] = value
		}
	}
	return out
}

// request is what a hook may read of the request to the model.
func (p *pass) request(h *hook) *abi.InferenceRequest {
	if p.frame.Request == nil || len(h.Include) == 0 || h.kind != phaseHook {
		return nil
	}
	if p.whole == nil {
		p.whole = p.frame.Request()
		bare := *p.whole
		bare.System = ""
		p.bare = &bare
	}
	if slices.Contains(h.Include, abi.IncludeSystem) {
		return p.whole
	}
	return p.bare
}

func (p *pass) showMessages(c *call) {
	messages := p.draft.messages
	from := len(messages)
	switch c.hook.Messages {
	case abi.ViewLast:
		from = max(0, len(messages)-1)
	case abi.ViewWindow:
		from = max(0, len(messages)-c.hook.Window)
	case abi.ViewAll:
		from = 0
	case abi.ViewDelta:
		from, c.mark = p.st.seen.delta(c.hook.plugin.name, messages)
	case abi.ViewNone:
	}
	if from < len(messages) {
		c.event.Messages, c.event.MessagesFrom = messages[from:len(messages):len(messages)], from
	}
}

// invoke makes the calls concurrently, and returns when each has answered or was
// abandoned. The last one that always returns by itself is made here. The error is that of ctx.
func (p *pass) invoke(ctx context.Context, calls []*call) error {
	left := 0
	var own *call
	for _, c := range calls {
		if c.attempt == 0 {
			continue
		}
		left++
		if b := c.hook.plugin.bounded; b != nil && b.Bounded() {
			own = c
		}
	}
	if left == 0 {
		return p.over(ctx)
	}
	p.limit(ctx, calls)
	defer endMoments(calls)
	answers := make(chan answer, left)
	for _, c := range calls {
		if c.attempt > 0 && c != own {
			go p.r.work(c, answers) //nolint:contextcheck // a call has its moment
		}
	}
	if own != nil {
		p.r.work(own, answers) //nolint:contextcheck // as above
	}
	p.await(ctx, calls, answers, left)
	return p.over(ctx)
}

// over is the error of a phase whose context is done.
func (p *pass) over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("phases: %s: %w", p.frame.Phase, err)
	}
	return nil
}

// limit gives each call its moment: one for all, and one of its own for the call of a plugin with its
// own time limit.
func (p *pass) limit(ctx context.Context, calls []*call) {
	now := time.Now()
	shared := &moment{Context: ctx, until: now.Add(p.r.cfg.HookTimeout), messages: p.frame.Messages}
	for _, c := range calls {
		c.moment = shared
		if c.attempt == 0 || c.hook.plugin.timed == nil {
			continue
		}
		if d := c.hook.plugin.timed.HookTimeout(); d > 0 {
			c.moment = &moment{Context: ctx, until: now.Add(d), messages: p.frame.Messages}
		}
	}
}

func endMoments(calls []*call) {
	for _, c := range calls {
		c.moment.end()
	}
}

// await takes the answers. A call that is not back when its time and the grace are over is
// abandoned; when ctx ends, the time of all calls is over.
func (p *pass) await(ctx context.Context, calls []*call, answers <-chan answer, left int) {
	for ; left > 0 && len(answers) > 0; left-- {
		a := <-answers
		a.take()
	}
	if left == 0 {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	done := ctx.Done()
	var cancelled time.Time
	for left > 0 {
		timer.Reset(time.Until(p.patience(calls, cancelled)))
		select {
		case a := <-answers:
			left--
			a.take()
		case <-done:
			done, cancelled = nil, time.Now()
		case <-timer.C:
			// Those still left after this have time, or have returned: their answers are coming.
			left -= p.abandon(ctx, calls, cancelled)
		}
	}
}

// forever is longer than any hook may take.
const forever = 1 << 62

// patience returns when the next call that still runs is to be abandoned.
func (p *pass) patience(calls []*call, cancelled time.Time) time.Time {
	next := time.Now().Add(forever)
	for _, c := range calls {
		if c.attempt == 0 || c.stage.Load() != running {
			continue
		}
		if at := p.until(c, cancelled); at.Before(next) {
			next = at
		}
	}
	return next
}

// until is the end of a call's time and grace.
func (p *pass) until(c *call, cancelled time.Time) time.Time {
	end := c.moment.until
	if !cancelled.IsZero() && cancelled.Before(end) {
		end = cancelled
	}
	return end.Add(p.r.cfg.Grace)
}

// take gives the call its answer.
func (a *answer) take() { a.call.reply, a.call.fault, a.call.took = a.reply, a.err, a.took }

// work calls the hook, whatever it does.
func (r *Runtime) work(c *call, answers chan<- answer) {
	a, ctx := answer{call: c}, c.moment
	plugin := c.hook.plugin
	finished := false
	start, end := c.at, time.Time{}
	defer func() {
		if v := recover(); v != nil {
			a.reply, a.err = nil, fmt.Errorf("%w: %.512v", ErrPanic, v)
			r.cfg.Logger.ErrorContext(ctx, "plugin panicked", "plugin", plugin.name, "phase", string(c.event.Phase), "stack", string(debug.Stack()))
		} else if !finished {
			a.reply, a.err = nil, fmt.Errorf("%w: the hook ended its goroutine", ErrPanic)
		}
		if end.IsZero() {
			end = r.cfg.Now()
		}
		a.took = end.Sub(start)
		if !c.stage.CompareAndSwap(running, returned) {
			plugin.stuck.Add(-1)
			return
		}
		answers <- a
	}()
	reply, err := c.hook.answer(ctx, &c.event)
	finished, end = true, r.cfg.Now()
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

// abandon gives up the calls that have not returned in time, and returns how many.
func (p *pass) abandon(ctx context.Context, calls []*call, cancelled time.Time) int {
	n := 0
	for _, c := range calls {
		if c.attempt == 0 || p.until(c, cancelled).After(time.Now()) || !c.stage.CompareAndSwap(running, abandoned) {
			continue
		}
		n++
		c.hook.plugin.stuck.Add(1)
		c.took = p.r.cfg.Now().Sub(c.at)
		c.fault = fmt.Errorf("%w: it ignored its cancelled context and was abandoned", ErrDeadline)
		p.r.cfg.Logger.WarnContext(ctx, "hook abandoned", "plugin", c.hook.plugin.name, "phase", string(p.frame.Phase))
	}
	return n
}
