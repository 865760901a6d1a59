package phases

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// Collect is Fire without the commit: it calls the hooks and merges what they
// reply, and leaves it to the caller to submit the command, alone or merged with others.
// Conflicts are resolved as in Fire. No action is carried out.
func (r *Runtime) Collect(ctx context.Context, st *State, f Frame) (Outcome, Command, error) {
	out := Outcome{Messages: f.Messages}
	hooks, known := r.hooks[f.Phase]
	switch {
	case !known:
		return out, Command{}, fmt.Errorf("phases: phase %.40q is not one of %s", f.Phase, phaseNames(hookPhases()))
	case ctx.Err() != nil:
		return out, Command{}, fmt.Errorf("phases: %s: %w", f.Phase, ctx.Err())
	case len(hooks) == 0:
		return out, Command{}, nil
	case st == nil:
		return out, Command{}, fmt.Errorf("phases: %s: there are hooks but no State", f.Phase)
	}
	p := r.newPass(st, f)
	var c Command
	out, err := p.inTurn(ctx, func() (Outcome, error) {
		err := p.gather(ctx, hooks)
		if err == nil {
			p.draft.tx = st.store.Begin()
			err = p.settleHooks(ctx)
		}
		if err != nil {
			return p.discard(), err
		}
		c = p.draft.command()
		return p.finish(), nil
	})
	p.record(ctx)
	p.free()
	return out, c, err
}

// command is what is left to commit.
func (d *draft) command() Command {
	c := Command{Batch: d.tx.Batch()}
	all := c.Batch.Updates
	c.Batch.Updates = nil
	for _, u := range all {
		if !strings.HasPrefix(u.Key, runtimeOwner+"/") {
			c.Batch.Updates = append(c.Batch.Updates, u)
			continue
		}
		entries, _ := u.Value.([]any)
		for _, e := range entries {
			c.Actions = append(c.Actions, decodeAction(e))
		}
	}
	for _, e := range d.customs {
		c.Effects = append(c.Effects, abi.Effect{Type: abi.EffectCustom, Key: e.handler.name, Payload: e.effect.Payload, Note: e.effect.Note})
	}
	if c.Empty() {
		return Command{}
	}
	return c
}

// Part is the command of one of several that ran side by side, as the tool calls
// of a step do.
type Part struct {
	CallID  string
	Command Command
}

// Merge merges the commands of parts into one, in their order. Two parts that
// touch one key exclusively are an error that names the key and both calls.
func (r *Runtime) Merge(st *State, parts ...Part) (Command, error) {
	var out Command
	for i := range parts {
		for j := range i {
			if key, ok := st.store.Overlap(parts[j].Command.Batch, parts[i].Command.Batch); ok {
				return Command{}, fmt.Errorf("phases: %w: conflicting parallel state modification on exclusive key %q by tool calls [%s] and [%s]",
					state.ErrConflict, key, parts[j].CallID, parts[i].CallID)
			}
		}
		var err error
		if out, err = out.Extend(parts[i].Command); err != nil {
			return Command{}, err
		}
	}
	return out, nil
}
