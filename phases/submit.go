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

// SubmitAt is Submit at a moment of a run, as when a tool was executed. The command
// is held to the limits of a hook's reply, and what became of it is recorded, with
// Command.By in the place of the plugin.
func (r *Runtime) SubmitAt(ctx context.Context, st *State, f Frame, c Command) (Report, error) {
	rec := r.commandRecord(st, &f, &c)
	err := r.bounds(&c)
	var customs []custom
	if err == nil {
		customs, err = r.commit(ctx, st, &c)
	}
	rec.Duration = r.cfg.Now().Sub(rec.At)
	if err != nil {
		rec.Err = oneLine(err.Error(), r.cfg.Limits.TextBytes)
		rec.Refused, rec.Applied = []Refusal{{What: "command", Reason: rec.Err}}, nil
	}
	r.hand(rec)
	if err != nil {
		return Report{}, err
	}
	return r.execute(ctx, st, f, customs), nil
}

func (r *Runtime) bounds(c *Command) error {
	l := &r.cfg.Limits
	for _, b := range []struct {
		what     string
		n, limit int
	}{
		{"updates", len(c.Batch.Updates), l.Updates},
		{"actions", len(c.Actions), l.Actions},
		{"effects", len(c.Effects), l.Effects},
	} {
		if b.n > b.limit {
			return fmt.Errorf("phases: submit: %d %s in one command, at most %d", b.n, b.what, b.limit)
		}
	}
	return nil
}

// commandRecord describes what a command asks for.
func (r *Runtime) commandRecord(st *State, f *Frame, c *Command) Record {
	rec := Record{
		At: r.cfg.Now(), Run: f.Run, Phase: f.Phase, Step: f.Step, Plugin: c.By, Attempt: 1,
		MessagesTotal: len(f.Messages), Revision: st.Revision(),
	}
	if f.Call != nil {
		rec.CallID, rec.ToolName = f.Call.ID, f.Call.Name
	}
	limit := r.cfg.Limits.TextBytes
	add := func(what, target, note string) {
		rec.Applied = append(rec.Applied, Change{What: oneLine(what, limit), Target: oneLine(target, limit), Note: oneLine(note, limit)})
	}
	for _, u := range c.Batch.Updates {
		add(string(u.Op), u.Key, "")
	}
	for i := range c.Actions {
		add("schedule", c.Actions[i].Key, "")
	}
	for i := range c.Effects {
		add(string(c.Effects[i].Type), c.Effects[i].Key, c.Effects[i].Note)
	}
	return rec
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
