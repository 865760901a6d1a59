package agent

import (
	"context"

	"github.com/mortise-dev/mortise/abi"
)

// Consulting is what a [Compactor] may also implement: it lets plugins take part in a
// compaction, at before_compaction and after_compaction. compaction.Compactor is one.
type Consulting interface {
	// ConsiderWith is Consider, and asks before a compaction begins. A veto keeps it from
	// starting. Ask is called at most once, before ConsiderWith returns.
	ConsiderWith(ctx context.Context, thread string, log []abi.Message, ask func(context.Context, *abi.Compaction) (focus, veto string)) bool
	// Ended returns the compactions of a thread that ended since it was last called.
	Ended(thread string) []abi.Compaction
}

// consider may start a compaction, if no plugin objects. A plugin whose failure ends the
// run, or that stops it, vetoes.
func (r *run) consider(ctx context.Context) (stop *Termination, err error) {
	c, ok := r.cfg.Compactor.(Consulting)
	if !ok {
		if r.cfg.Compactor != nil {
			r.cfg.Compactor.Consider(ctx, r.thread.id, r.thread.snapshot())
		}
		return nil, nil
	}
	c.ConsiderWith(ctx, r.thread.id, r.thread.snapshot(), func(ctx context.Context, offer *abi.Compaction) (focus, veto string) {
		out, ends, failed := r.fire(ctx, abi.BeforeCompaction, frame{compaction: offer})
		stop, err = ends, failed
		switch {
		case failed != nil:
			return "", failed.Error()
		case out.Veto != nil:
			return "", "plugin " + out.Veto.By + ": " + out.Veto.Detail
		}
		return out.Focus, ""
	})
	return stop, err
}

// compacted fires after_compaction for what ended since it was last called.
func (r *run) compacted(ctx context.Context) (*Termination, error) {
	c, ok := r.cfg.Compactor.(Consulting)
	if !ok {
		return nil, nil
	}
	for _, ended := range c.Ended(r.thread.id) {
		if _, stop, err := r.fire(ctx, abi.AfterCompaction, frame{compaction: &ended}); stop != nil || err != nil {
			return stop, err
		}
	}
	return nil, nil
}
