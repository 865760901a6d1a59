package phases

import (
	"context"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Fire fires a phase: it calls the hooks, applies their replies, commits the
// state, executes the scheduled actions that are due, then the custom effects, and
// returns the remaining effects for the caller to execute. With nothing to do it returns
// at once.
//
// The error is that of ctx, or joins one [*HookError] for each hook whose failure
// ends the run. Then nothing was applied, and the outcome holds the frame's
// messages alone. What the hooks did is recorded all the same.
//
// When an action fails the run, or the actions do not end
// ([ErrNotConverged]), or ctx ends in between, then what was committed before stays,
// and the outcome holds it. So an outcome counts with an error too.
func (r *Runtime) Fire(ctx context.Context, st *State, f Frame) (Outcome, error) {
	if f.Phase == abi.RunEnd {
		run := f.Run
		defer r.ended(&run)
	}
	hooks, err := r.hooksAt(ctx, f.Phase)
	switch {
	case err != nil:
		return Outcome{Messages: f.Messages}, err
	case len(hooks) == 0 && (st == nil || !anyPending(st.store.Snapshot())):
		return Outcome{Messages: f.Messages, Report: Report{Rounds: 1}}, nil
	}
	p, err := r.enter(ctx, st, f)
	if err != nil {
		return Outcome{Messages: f.Messages}, err
	}
	defer p.leave()
	if err = p.apply(ctx, hooks); err == nil {
		err = p.converge(ctx)
	}
	return p.end(ctx, err)
}

// ended notifies the plugins that keep something for a run of its end.
func (r *Runtime) ended(run *abi.RunIdentity) {
	for _, p := range r.plugins {
		if e, ok := p.impl.(Ender); ok {
			e.RunEnded(run)
		}
	}
}

// finish chooses among decisions of which only one counts, in firing order, actions
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
