package phases

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// commitRounds is how often a phase is settled before others have to wait for
// it.
const commitRounds = 3

// pass is one firing of a phase. Passes are used again, so that a phase costs no
// allocation for a plugin with no opinion.
type pass struct {
	r     *Runtime
	st    *State
	frame *Frame
	draft *draft
	// first are the first calls in firing order, final those that count, all the
	// calls in the order in which they were made.
	first, final, all []*call
	fatal             []error
	// What replies touched, and who did it first.
	keys    map[*state.Key]touch
	objects map[object]touch
	// whole and bare are the request to the model, with and without the system prompt.
	whole, bare *abi.InferenceRequest
	accepted    int // replies
	recheck     bool
	// customs are the committed effects that are to be carried out.
	customs []custom
	report  Report

	// own and base are where frame and draft point at first.
	own  Frame
	base draft

	spare   []*call
	used    int
	answers chan answer
	stuck   bool // an abandoned hook still reads a call
}

// touch is the first change of a key or message in a phase.
type touch struct {
	by string
	// shared changes do not collide with each other: commutative operations, pins.
	shared bool
}

func (r *Runtime) newPass(st *State, f Frame) *pass {
	var p *pass
	select {
	case p = <-r.passes:
	default:
		p = &pass{}
	}
	p.r, p.st, p.own = r, st, f
	p.frame, p.draft = &p.own, &p.base
	p.base.begin(r, st, p.frame)
	return p
}

// free makes the pass ready for another phase.
func (p *pass) free() {
	if p.stuck {
		return
	}
	r, spare, answers := p.r, p.spare, p.answers
	for _, c := range spare[:p.used] {
		*c = call{}
	}
	clear(p.first)
	clear(p.final)
	clear(p.all)
	*p = pass{first: p.first[:0], final: p.final[:0], all: p.all[:0], spare: spare, answers: answers}
	select {
	case r.passes <- p:
	default:
	}
}

// gather calls the hooks, all on the state and messages as they are now.
func (p *pass) gather(ctx context.Context, hooks []*hook) error {
	now := p.st.store.Snapshot()
	for _, h := range hooks {
		p.first = append(p.first, p.newCall(h, 1, now, now.Revision()))
	}
	p.invoke(ctx, p.first)
	return p.over(ctx)
}

// over is the error of a phase whose context is done.
func (p *pass) over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("phases: %s: %w", p.frame.Phase, err)
	}
	return nil
}

// commit settles and commits. Somebody else may commit meanwhile: what does not
// go together with that is settled again, and the last time others wait. So it ends, and
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
		p.draft, p.fatal, p.keys, p.objects = &restart, nil, nil, nil
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

// committed takes over what is to be done after a commit.
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

// settleHooks decides what becomes of the first replies, in firing order, and then
// calls again whoever was deferred.
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
		p.invoke(ctx, p.final[i:i+1])
		if err := p.over(ctx); err != nil {
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
