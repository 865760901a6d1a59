package phases

import (
	"context"
	"fmt"
)

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

// hand hands over one record.
func (r *Runtime) hand(rec Record) {
	if r.cfg.Record == nil {
		return
	}
	r.recording.Lock()
	defer r.recording.Unlock()
	r.cfg.Record(rec)
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
