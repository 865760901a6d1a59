package phases

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// commitRounds is how often a phase is settled before other commits have to wait for
// it.
const commitRounds = 3

// pass is one firing of a phase.
type pass struct {
	r     *Runtime
	st    *State
	frame *Frame
	draft *draft
	calls
	touched
	fatal []error
	// whole and bare are the request to the model, with and without the system prompt.
	whole, bare *abi.InferenceRequest
	recheck     bool
	applied     bool // what the hooks replied is committed
	left        bool // the state is free for the next phase
	// customs are the committed effects to execute.
	customs []custom
	report  Report
}

// calls are those of a pass: the first calls in firing order, the final ones, which
// count, and all in the order in which they were made. accepted counts replies.
type calls struct {
	first, final, all []*call
	accepted          int
}

// touched is what the replies of a pass changed, and who was first.
type touched struct {
	keys    map[*state.Key]touch
	objects map[object]touch
}

// touch is the first change of a key or message in a phase.
type touch struct {
	by string
	// shared changes do not collide with each other: commutative operations, pins.
	shared bool
}

// enter begins a phase when the earlier ones of the same state are over.
func (r *Runtime) enter(ctx context.Context, st *State, f Frame) (*pass, error) {
	if st == nil {
		return nil, fmt.Errorf("phases: %s: there are hooks but no State", f.Phase)
	}
	if err := st.take(ctx); err != nil {
		return nil, fmt.Errorf("phases: %s: waiting for another phase of the run: %w", f.Phase, err)
	}
	return r.newPass(st, f), nil
}

// leave lets the next phase of the state begin.
func (p *pass) leave() {
	if !p.left {
		p.left = true
		p.st.release()
	}
}

// end ends a phase with its error: it executes effects, while the next phase may begin, and records what the hooks did.
// When the error came before the commit, nothing is applied.
func (p *pass) end(ctx context.Context, err error) (Outcome, error) {
	var out Outcome
	if err != nil && !p.applied {
		out = p.discard()
	} else {
		out = p.finish()
	}
	p.leave()
	p.dispatch(ctx)
	out.Report = p.report
	p.record(ctx)
	return out, err
}

func (r *Runtime) newPass(st *State, f Frame) *pass {
	p := &pass{r: r, st: st, frame: &f, draft: &draft{}}
	p.draft.begin(r, st, p.frame)
	return p
}

// apply calls the hooks and commits what they reply.
func (p *pass) apply(ctx context.Context, hooks []*hook) error {
	if err := p.invoke(ctx, p.prepare(hooks)); err != nil {
		return err
	}
	return p.commitReplies(ctx)
}

// prepare makes the first calls of the hooks, all with the state and messages as they are now.
func (p *pass) prepare(hooks []*hook) []*call {
	now := p.st.store.Snapshot()
	for _, h := range hooks {
		p.first = append(p.first, p.newCall(h, 1, now, now.Revision()))
	}
	return p.first
}

// commitReplies settles and commits the first replies.
func (p *pass) commitReplies(ctx context.Context) error {
	if len(p.first) > 0 {
		if err := p.commit(ctx, func() error { return p.settleHooks(ctx) }); err != nil {
			return err
		}
	}
	p.applied = true
	return nil
}

// commit settles and commits. Other commits may come in between: a phase that conflicts with
// one is settled again, and the last time the others wait. So it ends, and
// a commit from the background fails no run.
func (p *pass) commit(ctx context.Context, settle func() error) error {
	base, made := *p.draft, len(p.all)
	for round := 1; ; round++ {
		again, err := p.commitOnce(ctx, settle, round == commitRounds)
		if err == nil || !again {
			return err
		}
		for _, c := range p.all[made:] {
			c.discard("the state was changed meanwhile by others, and the phase was settled again")
		}
		restart := base
		p.draft, p.fatal, p.touched = &restart, nil, touched{}
	}
}

func (p *pass) commitOnce(ctx context.Context, settle func() error, hold bool) (again bool, err error) {
	commit := func(t *state.Tx) (uint64, error) { return p.st.store.Commit(ctx, t) }
	if hold {
		var release func()
		if commit, release, err = p.st.store.Hold(ctx); err != nil {
			return false, fmt.Errorf("phases: %s: %w", p.frame.Phase, err)
		}
		defer release()
	}
	p.draft.tx = p.st.store.Begin()
	if err := settle(); err != nil {
		return false, err
	}
	if _, err := commit(p.draft.tx); err != nil {
		return !hold && ctx.Err() == nil, fmt.Errorf("phases: %s: %w", p.frame.Phase, err)
	}
	p.committed()
	return false, nil
}

// committed collects the effects to execute after a commit.
func (p *pass) committed() {
	if len(p.draft.customs) == 0 {
		return
	}
	now := p.st.store.Snapshot()
	for _, e := range p.draft.customs {
		e.state = now
		p.customs = append(p.customs, e)
	}
	p.draft.customs = nil
}

// settleHooks settles the first replies in firing order, and then calls the deferred
// hooks again.
func (p *pass) settleHooks(ctx context.Context) error {
	p.final = append(p.final[:0], p.first...)
	for i, c := range p.first {
		p.settle(c)
		if c.deferred != "" {
			p.final[i] = nil
		}
	}
	for i, c := range p.first {
		if c.deferred == "" || len(p.fatal) > 0 {
			continue
		}
		again := p.newCall(c.hook, 2, p.draft.tx, p.draft.tx.Base().Revision())
		p.final[i] = again
		if err := p.invoke(ctx, p.final[i:i+1]); err != nil {
			return err
		}
		p.settle(again)
	}
	return errors.Join(p.fatal...)
}

// discard ends the phase with nothing applied.
func (p *pass) discard() Outcome {
	for _, c := range p.all {
		c.discard("the phase failed, and nothing of it was applied")
	}
	return Outcome{Messages: p.frame.Messages}
}

func (c *call) discard(reason string) {
	if len(c.applied) > 0 {
		c.applied, c.proposal = nil, nil
		c.refused = append(c.refused, Refusal{What: "reply", Reason: reason})
	}
}

// account keeps the health of the hooks that were called.
func (p *pass) account(ctx context.Context) {
	for _, c := range p.all {
		c.hook.plugin.stats.count(c)
		if c.err == nil {
			c.err = c.fault // of a phase that was over before it was settled
		}
		if ctx.Err() != nil && c.fault != nil {
			continue // It may well be the context's fault.
		}
		switch {
		case c.attempt == 0 || c.deferred != "":
		case c.err == nil:
			c.hook.succeeded()
		default:
			c.quarantined = c.hook.failed(&p.r.cfg.Limits, p.r.cfg.Now())
		}
		if c.err != nil && c.hook.OnFailure != abi.FailRun {
			p.r.cfg.Logger.WarnContext(ctx, "hook failed", "plugin", c.hook.plugin.name, "phase", string(p.frame.Phase),
				"handler", c.hook.name, "run_id", p.frame.Run.RunID, "quarantined", c.quarantined,
				"error", oneLine(c.err.Error(), p.r.cfg.Limits.TextBytes))
		}
	}
}
