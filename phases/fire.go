package phases

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Fire fires a phase: it calls the hooks, applies what they reply, commits the
// state, carries out the scheduled actions that are due, then the custom effects, and
// returns the rest for the caller to carry out. With nothing to do it does nothing,
// quickly.
//
// The error is that of ctx, or joins one [*HookError] for each hook whose failure
// ends the run. Then nothing was applied, and the outcome holds the frame's
// messages alone. What the hooks did is recorded all the same.
//
// When it is an action that fails the run, or that does not come to an end
// ([ErrNotConverged]), or ctx ends in between, then what was committed before stays,
// and the outcome holds it. So an outcome counts with an error too.
func (r *Runtime) Fire(ctx context.Context, st *State, f Frame) (Outcome, error) {
	if f.Phase == abi.RunEnd {
		run := f.Run
		defer r.ended(&run)
	}
	hooks, known := r.hooks[f.Phase]
	switch {
	case !known:
		return Outcome{Messages: f.Messages}, fmt.Errorf("phases: phase %.40q is not one of %s", f.Phase, phaseNames(hookPhases()))
	case ctx.Err() != nil:
		return Outcome{Messages: f.Messages}, fmt.Errorf("phases: %s: %w", f.Phase, ctx.Err())
	case len(hooks) == 0 && (st == nil || !anyPending(st.store.Snapshot())):
		return Outcome{Messages: f.Messages, Report: Report{Rounds: 1}}, nil
	case st == nil:
		return Outcome{Messages: f.Messages}, fmt.Errorf("phases: %s: there are hooks but no State", f.Phase)
	}
	return r.fire(ctx, st, f, hooks)
}

func (r *Runtime) fire(ctx context.Context, st *State, f Frame, hooks []*hook) (Outcome, error) {
	p := r.newPass(st, f)
	out, err := p.inTurn(ctx, func() (Outcome, error) {
		if err := p.hooks(ctx, hooks); err != nil {
			return p.discard(), err
		}
		err := p.converge(ctx)
		return p.finish(), err
	})
	// Effects are carried out when the next phase may already go on.
	p.dispatch(ctx)
	out.Report = p.report
	p.record(ctx)
	p.free()
	return out, err
}

// ended tells who keeps something for a run that it has come to its end.
func (r *Runtime) ended(run *abi.RunIdentity) {
	for _, p := range r.plugins {
		if e, ok := p.impl.(Ender); ok {
			e.RunEnded(run)
		}
	}
}

// inTurn runs a phase when the earlier ones of the same state are over.
func (p *pass) inTurn(ctx context.Context, do func() (Outcome, error)) (Outcome, error) {
	if err := p.st.take(ctx); err != nil {
		return Outcome{Messages: p.frame.Messages}, fmt.Errorf("phases: %s: waiting for another phase of the run: %w", p.frame.Phase, err)
	}
	defer p.st.release()
	return do()
}

// hooks calls the hooks and commits what they reply.
func (p *pass) hooks(ctx context.Context, hooks []*hook) error {
	if len(hooks) == 0 {
		return nil
	}
	if err := p.gather(ctx, hooks); err != nil {
		return err
	}
	return p.commit(ctx, func() error { return p.settleHooks(ctx) })
}

// finish chooses among decisions of which one counts, in firing order, actions
// last.
func (p *pass) finish() Outcome {
	d := p.draft
	out := d.out
	out.Messages = d.messages
	slices.Sort(out.ExcludeTools)
	out.ExcludeTools = slices.Compact(out.ExcludeTools)
	for _, c := range p.final {
		if c.err == nil && c.attempt > 0 && c.hook.Messages == abi.ViewDelta {
			p.st.seen.advance(c.hook.plugin.name, c.mark)
		}
	}
	p.choose(&out)
	out.Gate = decide(p.final)
	return out
}

func join(names []string) string { return strings.Join(names, ",") }
