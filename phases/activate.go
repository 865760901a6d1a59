package phases

import (
	"context"

	"github.com/mortise-dev/mortise/abi"
)

// Phases that only an [Activator] sees.
const (
	activation   abi.Phase = "activate"
	deactivation abi.Phase = "deactivate"
)

// Activate tells the active plugins that a run begins with them, before its first
// phase. It fails as Fire does; whoever fails keeps the run from starting.
func (r *Runtime) Activate(ctx context.Context, st *State, run abi.RunIdentity) error {
	return r.tell(ctx, st, Frame{Phase: activation, Run: run}, Activator.Activate)
}

// Deactivate tells them that the run goes on without them.
func (r *Runtime) Deactivate(ctx context.Context, st *State, run abi.RunIdentity) error {
	return r.tell(ctx, st, Frame{Phase: deactivation, Run: run}, Activator.Deactivate)
}

func (r *Runtime) tell(ctx context.Context, st *State, f Frame, what func(Activator, context.Context, *abi.Event) (*abi.Reply, error)) error {
	var hooks []*hook
	for _, p := range r.plugins {
		a, ok := p.impl.(Activator)
		if !ok || !r.active[p] {
			continue
		}
		answer := func(ctx context.Context, e *abi.Event) (*abi.Reply, error) { return what(a, ctx, e) }
		hooks = append(hooks, &hook{
			Hook: abi.Hook{Phase: f.Phase, Mode: abi.ModeObserve, OnFailure: abi.FailRun}, kind: activator, plugin: p, answer: answer,
		})
	}
	if len(hooks) == 0 {
		return nil
	}
	p := r.newPass(st, f)
	_, err := p.inTurn(ctx, func() (Outcome, error) {
		if err := p.hooks(ctx, hooks); err != nil {
			return p.discard(), err
		}
		return Outcome{}, nil
	})
	p.record(ctx)
	p.free()
	return err
}
