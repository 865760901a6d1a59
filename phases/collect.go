package phases

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// Collect is Fire without the commit: it calls the hooks and merges their
// replies, and the caller submits the command, alone or merged with others.
// Conflicts are resolved as in Fire. No action is executed.
func (r *Runtime) Collect(ctx context.Context, st *State, f Frame) (Outcome, Command, error) {
	out := Outcome{Messages: f.Messages}
	hooks, err := r.hooksAt(ctx, f.Phase)
	if err != nil || len(hooks) == 0 {
		return out, Command{}, err
	}
	p, err := r.enter(ctx, st, f)
	if err != nil {
		return out, Command{}, err
	}
	defer p.leave()
	if err = p.invoke(ctx, p.prepare(hooks)); err == nil {
		p.draft.tx = st.store.Begin()
		err = p.settleHooks(ctx)
	}
	var c Command
	if err != nil {
		out = p.discard()
	} else {
		c, out = p.draft.command(), p.finish()
	}
	p.leave()
	p.record(ctx)
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
