package phases

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
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

	attempt  int
	at       time.Time
	duration time.Duration
	reply    *abi.Reply
	fault    error // of the call
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

// conversationKey finds the frame's messages in the context of a hook.
type conversationKey struct{}

// Conversation returns all messages that the model sees at the phase whose hook
// was called with ctx, whatever the hook's view. It is how a plugin reads more
// than it asked for. Nothing may change them. Outside of a hook it is nil.
func Conversation(ctx context.Context) []abi.Message {
	messages, _ := ctx.Value(conversationKey{}).([]abi.Message)
	return messages
}

// invoke makes the calls concurrently, and returns when each has answered or was abandoned. The error is that of ctx.
func (p *pass) invoke(ctx context.Context, calls []*call) error {
	shown := context.WithValue(ctx, conversationKey{}, p.frame.Messages)
	calls = slices.DeleteFunc(slices.Clone(calls), func(c *call) bool { return c.attempt == 0 })
	var calling sync.WaitGroup
	calling.Add(len(calls))
	for i, c := range calls {
		if i == len(calls)-1 {
			p.r.call(shown, c, &calling) // this goroutine would only wait
			break
		}
		go p.r.call(shown, c, &calling)
	}
	calling.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("phases: %s: %w", p.frame.Phase, err)
	}
	return nil
}

// answer is what a hook returned, and how long it took.
type answer struct {
	reply    *abi.Reply
	err      error
	duration time.Duration
}

// call makes a call. When the hook is not back at the end of its time and the grace, it is abandoned: its goroutine
// continues, and nothing reads its answer.
func (r *Runtime) call(ctx context.Context, c *call, calling *sync.WaitGroup) {
	defer calling.Done()
	plugin := c.hook.plugin
	ctx, cancel := context.WithTimeout(ctx, plugin.timeout(r.cfg.HookTimeout))
	defer cancel()
	answers := make(chan answer, 1)
	go r.answer(ctx, c, answers)
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		grace := time.NewTimer(r.cfg.Grace)
		defer grace.Stop()
		select {
		case a = <-answers:
		case <-grace.C:
			plugin.stuck.Add(1)
			go func() {
				<-answers
				plugin.stuck.Add(-1)
			}()
			a = answer{err: fmt.Errorf("%w: it ignored its cancelled context and was abandoned", ErrDeadline), duration: r.cfg.Now().Sub(c.at)}
			r.cfg.Logger.WarnContext(ctx, "hook abandoned", "plugin", plugin.name, "phase", string(c.event.Phase))
		}
	}
	c.reply, c.fault, c.duration = a.reply, a.err, a.duration
}

// answer calls the hook, and answers whatever it does.
func (r *Runtime) answer(ctx context.Context, c *call, answers chan<- answer) {
	a := answer{err: fmt.Errorf("%w: the hook ended its goroutine", ErrPanic)}
	defer func() {
		if v := recover(); v != nil {
			a.err = fmt.Errorf("%w: %.512v", ErrPanic, v)
			r.cfg.Logger.ErrorContext(ctx, "plugin panicked", "plugin", c.hook.plugin.name, "phase", string(c.event.Phase), "stack", string(debug.Stack()))
		}
		a.duration = r.cfg.Now().Sub(c.at)
		answers <- a
	}()
	reply, err := c.hook.answer(ctx, &c.event)
	late := ctx.Err()
	if until, _ := ctx.Deadline(); late == nil && !time.Now().Before(until) {
		late = context.DeadlineExceeded // its timer has not fired yet
	}
	switch {
	case late == nil:
		a = answer{reply: reply, err: err}
	case errors.Is(late, context.Canceled):
		a.err = late
	case err != nil:
		a.err = fmt.Errorf("%w: %w", ErrDeadline, err)
	default:
		a.err = fmt.Errorf("%w: it answered too late", ErrDeadline)
	}
}
