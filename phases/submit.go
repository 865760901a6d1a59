package phases

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// Command is what a hook, a tool or a background task wants done to a run: updates
// of state in one commit, with it scheduled actions, and after it custom effects. Keys
// of state, actions and effects are full ones ("<plugin>/<name>").
type Command struct {
	Batch   state.Batch
	Actions []abi.Action
	// Effects are of type custom.
	Effects []abi.Effect
	// By names who asks, for the record.
	By string
}

// Empty reports whether there is nothing to do.
func (c Command) Empty() bool {
	return len(c.Batch.Updates) == 0 && len(c.Actions) == 0 && len(c.Effects) == 0
}

// Extend returns both, first c. Of two base revisions both must be the same.
func (c Command) Extend(other Command) (Command, error) {
	batch, err := c.Batch.Extend(other.Batch)
	if err != nil {
		return c, fmt.Errorf("phases: %w", err)
	}
	if c.By == "" {
		c.By = other.By
	}
	return Command{
		Batch: batch, By: c.By,
		Actions: slices.Concat(c.Actions, other.Actions), Effects: slices.Concat(c.Effects, other.Effects),
	}, nil
}

// Submit commits a command and executes its effects. It is for the program
// itself and what runs alongside a run, so it may touch any key, and does not wait for a
// phase: the hooks of one that is under way are called again if they collide. Every
// action and effect must have a handler, else nothing is committed. Actions wait
// for their phase.
func (r *Runtime) Submit(ctx context.Context, st *State, c Command) (Report, error) {
	customs, err := r.commit(ctx, st, &c)
	if err != nil {
		return Report{}, err
	}
	return r.execute(ctx, st, Frame{}, customs), nil
}

// commit commits a command, and returns the effects that are to be executed.
func (r *Runtime) commit(ctx context.Context, st *State, c *Command) ([]custom, error) {
	batch, err := r.batch(st, c)
	if err != nil {
		return nil, err
	}
	customs, err := r.customs(st, c)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("phases: submit: %w", err)
	}
	if _, err := st.store.Apply(ctx, batch); err != nil {
		return nil, fmt.Errorf("phases: submit: %w", err)
	}
	return customs, nil
}

// execute executes the effects of a command.
func (r *Runtime) execute(ctx context.Context, st *State, f Frame, customs []custom) Report {
	if len(customs) == 0 {
		return Report{}
	}
	p := r.newPass(st, f)
	p.draft.customs = customs
	p.committed()
	p.dispatch(ctx)
	report := p.report
	p.record(ctx)
	return report
}

// batch is what a command commits, its actions included.
func (r *Runtime) batch(st *State, c *Command) (state.Batch, error) {
	for _, u := range c.Batch.Updates {
		if strings.HasPrefix(u.Key, runtimeOwner+"/") {
			return state.Batch{}, fmt.Errorf("phases: submit: key %.140q is the runtime's own", u.Key)
		}
	}
	if len(c.Actions) == 0 {
		return c.Batch, nil
	}
	entries := make([]any, len(c.Actions))
	for i := range c.Actions {
		a := c.Actions[i]
		switch {
		case r.actions[a.Key] == nil:
			return state.Batch{}, fmt.Errorf("phases: submit: no scheduled action handler registered for %.140s", a.Key)
		case !slices.Contains(abi.Phases(), a.Phase):
			return state.Batch{}, fmt.Errorf("phases: submit: action %q: phase %.40q is not one of %s", a.Key, a.Phase, phaseNames(abi.Phases()))
		}
		payload, _, err := state.Clone(a.Payload, r.cfg.Limits.ActionBytes)
		if err != nil {
			return state.Batch{}, fmt.Errorf("phases: submit: action %q: payload: %w", a.Key, err)
		}
		a.Payload, a.ID = payload, st.ids.Add(1)
		if a.By == "" {
			a.By = c.By
		}
		entries[i] = encodeAction(&a)
	}
	push := state.Update{Key: pendingName, Op: opPush, Value: entries}
	return state.Batch{Base: c.Batch.Base, Updates: append(slices.Clip(c.Batch.Updates), push)}, nil
}

func (r *Runtime) customs(st *State, c *Command) ([]custom, error) {
	var out []custom
	for i := range c.Effects {
		e := c.Effects[i]
		if e.Type != abi.EffectCustom {
			return nil, fmt.Errorf("phases: submit: effect %d: type %.40q is not custom; only a hook may ask for it", i, e.Type)
		}
		h := r.effects[e.Key]
		if h == nil {
			return nil, fmt.Errorf("phases: submit: no effect handler registered for %.140s", e.Key)
		}
		payload, _, err := state.Clone(e.Payload, r.cfg.Limits.ActionBytes)
		if err != nil {
			return nil, fmt.Errorf("phases: submit: effect %q: payload: %w", e.Key, err)
		}
		e.Payload = payload
		out = append(out, custom{id: st.ids.Add(1), handler: h, effect: &e, by: c.By})
	}
	return out, nil
}
