package phases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Fire fires a phase: it calls the hooks, applies what they reply, commits the
// state and returns the rest for the caller to carry out. With no hooks it does
// nothing, quickly.
//
// The error is that of ctx, or joins one [*HookError] for each hook whose failure
// ends the run. Then nothing was applied, and the outcome holds the frame's
// messages alone. What the hooks did is recorded all the same.
func (r *Runtime) Fire(ctx context.Context, st *State, f Frame) (Outcome, error) {
	hooks, known := r.hooks[f.Phase]
	switch {
	case !known:
		return Outcome{Messages: f.Messages}, fmt.Errorf("phases: phase %.40q is not one of the nine", f.Phase)
	case ctx.Err() != nil:
		return Outcome{Messages: f.Messages}, fmt.Errorf("phases: %s: %w", f.Phase, ctx.Err())
	case len(hooks) == 0:
		return Outcome{Messages: f.Messages}, nil
	case st == nil:
		return Outcome{Messages: f.Messages}, fmt.Errorf("phases: %s: there are hooks but no State", f.Phase)
	}
	// Apart, so that the frame moves to the heap only if there are hooks.
	return r.fire(ctx, st, f, hooks)
}

func (r *Runtime) fire(ctx context.Context, st *State, f Frame, hooks []*hook) (Outcome, error) {
	if err := st.take(ctx); err != nil {
		return Outcome{Messages: f.Messages}, fmt.Errorf("phases: %s: waiting for another phase of the run: %w", f.Phase, err)
	}
	defer st.release()
	ctx = context.WithValue(ctx, conversationKey{}, f.Messages)
	p := &pass{r: r, frame: &f, draft: newDraft(r, st, &f)}
	out, err := p.run(ctx, hooks)
	p.record()
	return out, err
}

// pass is one firing of a phase.
type pass struct {
	r      *Runtime
	frame  *Frame
	draft  *draft
	calls  []*call // first calls, in firing order
	reruns []*call // second calls
	fatal  []error
	// What replies touched, and who did it first.
	keys     map[*key]touch
	messages map[string]touch
}

// touch is the first change of a key or message in a phase.
type touch struct {
	by string
	// shared changes do not collide with each other: commutative operations, pins.
	shared bool
}

func (p *pass) run(ctx context.Context, hooks []*hook) (Outcome, error) {
	p.calls = make([]*call, len(hooks))
	for i, h := range hooks {
		p.calls[i] = p.newCall(h, 1)
	}
	p.r.invoke(ctx, p.calls)
	if err := ctx.Err(); err != nil {
		return p.discard(p.calls, fmt.Errorf("phases: %s: %w", p.frame.Phase, err))
	}
	final := slices.Clone(p.calls)
	for i, c := range p.calls {
		p.settle(c)
		if c.deferred != "" {
			final[i] = nil
		}
	}
	for i, c := range p.calls {
		if c.deferred == "" || len(p.fatal) > 0 {
			continue
		}
		again := p.newCall(c.hook, 2)
		p.reruns, final[i] = append(p.reruns, again), again
		p.r.invoke(ctx, []*call{again})
		if err := ctx.Err(); err != nil {
			return p.discard(final, fmt.Errorf("phases: %s: %w", p.frame.Phase, err))
		}
		p.settle(again)
	}
	if len(p.fatal) > 0 {
		return p.discard(final, errors.Join(p.fatal...))
	}
	return p.finish(final), nil
}

// discard ends the phase with nothing applied.
func (p *pass) discard(calls []*call, err error) (Outcome, error) {
	for _, c := range calls {
		if c != nil && len(c.applied) > 0 {
			c.applied = nil
			c.refused = append(c.refused, Refusal{What: "reply", Reason: "the phase failed, and nothing of it was applied"})
		}
	}
	return Outcome{Messages: p.frame.Messages}, err
}

// settle decides what becomes of the reply of one call.
func (p *pass) settle(c *call) {
	if c.attempt == 0 && c.err == nil {
		return // in quarantine
	}
	if c.err != nil {
		p.fail(c)
		return
	}
	if c.reply == nil {
		c.hook.succeeded()
		return
	}
	v := vetter{limits: &p.r.cfg.Limits, hook: c.hook, frame: p.frame, budget: meter{left: p.r.cfg.Limits.ReplyBytes}}
	proposal := v.vet(c.reply)
	if len(v.refused) > 0 {
		p.refuse(c, v.refused)
		return
	}
	if c.attempt == 1 {
		if c.deferred = p.collides(proposal); c.deferred != "" {
			return
		}
	}
	fork := p.draft.fork(c.hook.plugin.name)
	if refused := fork.apply(proposal); len(refused) > 0 {
		p.refuse(c, refused)
		return
	}
	fork.accept()
	c.applied, c.proposal, c.gate = fork.changes, proposal, proposal.gate
	p.draft = fork
	p.touch(c.hook.plugin.name, proposal)
	c.hook.succeeded()
}

// apply applies all parts of a proposal, or returns why some could not be. The
// draft is then to be thrown away.
func (d *draft) apply(p *proposal) []Refusal {
	var refused []Refusal
	refuse := func(what string, err error) {
		refused = append(refused, Refusal{What: what, Reason: oneLine(err.Error(), d.limits.TextBytes)})
	}
	for i, u := range p.updates {
		if err := d.update(u); err != nil {
			refuse(fmt.Sprintf("update %d %q", i, u.key.short), err)
		}
	}
	if len(p.effects) >= indexFrom {
		d.buildIndex()
	}
	for i := range p.effects {
		if err := d.effect(&p.effects[i]); err != nil {
			refuse(fmt.Sprintf("effect %d %s", i, p.effects[i].Type), err)
		}
	}
	return refused
}

// collides says with whom a proposal collides, or nothing.
func (p *pass) collides(proposal *proposal) string {
	for _, u := range proposal.updates {
		if t, ok := p.keys[u.key]; ok && (!t.shared || !u.shared()) {
			return fmt.Sprintf("state key %q was changed by %q", u.key.full, t.by)
		}
	}
	for i := range proposal.effects {
		e := &proposal.effects[i]
		if e.MessageID == "" {
			continue
		}
		if t, ok := p.messages[e.MessageID]; ok && (!t.shared || e.Type != abi.EffectPinMessage) {
			return fmt.Sprintf("message %.80q was changed by %q", e.MessageID, t.by)
		}
	}
	return ""
}

func (u *update) shared() bool { return !u.key.exclusive && u.op != abi.OpSet }

// touch remembers what an applied proposal changed.
func (p *pass) touch(by string, proposal *proposal) {
	for _, u := range proposal.updates {
		if p.keys == nil {
			p.keys = make(map[*key]touch)
		}
		t, ok := p.keys[u.key]
		if !ok {
			t = touch{by: by, shared: true}
		}
		t.shared = t.shared && u.shared()
		p.keys[u.key] = t
	}
	for i := range proposal.effects {
		e := &proposal.effects[i]
		if e.MessageID == "" {
			continue
		}
		if p.messages == nil {
			p.messages = make(map[string]touch)
		}
		t, ok := p.messages[e.MessageID]
		if !ok {
			t = touch{by: by, shared: true}
		}
		t.shared = t.shared && e.Type == abi.EffectPinMessage
		p.messages[e.MessageID] = t
	}
}

// finish commits the state and chooses among decisions of which one counts, in
// firing order.
func (p *pass) finish(calls []*call) Outcome {
	d := p.draft
	d.state.commit(d.values)
	out := d.out
	out.Messages = d.messages
	slices.Sort(out.ExcludeTools)
	out.ExcludeTools = slices.Compact(out.ExcludeTools)
	for _, c := range calls {
		if c.err == nil && c.attempt > 0 && c.hook.Messages == abi.ViewDelta {
			d.state.seen.advance(c.hook.plugin.name, c.mark)
		}
		if c.proposal == nil {
			continue
		}
		for i := range c.proposal.effects {
			out.choose(&c.proposal.effects[i], c.hook.plugin.name)
		}
	}
	out.Gate = decide(calls)
	return out
}

// choose takes the first stop, and the first compaction request with a focus.
func (o *Outcome) choose(e *abi.Effect, by string) {
	switch {
	case e.Type == abi.EffectStop && o.Stop == nil:
		o.Stop = &Stop{Code: e.Code, Detail: e.Detail, By: by}
	case e.Type == abi.EffectRequestCompaction && (o.Compact == nil || o.Compact.Focus == "" && e.Focus != ""):
		o.Compact = &CompactionRequest{Focus: e.Focus, By: by}
	}
}

func join(names []string) string { return strings.Join(names, ",") }
