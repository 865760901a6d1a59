package mailbox

import (
	"context"
	"fmt"
	"time"
)

// acceptable refuses what a thread would not accept, however free it were: a request of another tenant, or for a run that it cannot
// have.
func (m *Mailbox) acceptable(ctx context.Context, r Request) error {
	m.mu.Lock()
	closing := m.closing
	m.mu.Unlock()
	if closing {
		return fmt.Errorf("mailbox: %w", ErrShutdown)
	}
	t, run, found, err := m.queue.RunOf(ctx, r.Thread, r.Run)
	if err != nil {
		return err
	}
	if err := t.Admits(r.Tenant); err != nil {
		return wrap("request for thread", r.Thread, err)
	}
	if !t.PausedAt.IsZero() {
		return wrap("thread", r.Thread, fmt.Errorf("%w since %s; resume it, or submit in the background", ErrPaused, t.PausedAt.Format(time.RFC3339)))
	}
	if m.pauses.has(r.Tenant) {
		return wrap("thread", r.Thread, fmt.Errorf("%w: its tenant, or the whole mailbox; resume that, or submit in the background", ErrPaused))
	}
	if err := unused(ctx, "dispatch", r.DispatchIDHint, m.queue.HasDispatch); err != nil {
		return err
	}
	switch {
	case !found:
		if err := unused(ctx, "run", r.Run, m.queue.HasRun); err != nil {
			return err
		}
		return unused(ctx, "run", r.NewRun, m.queue.HasRun)
	case run.Status == RunDone, run.Status != RunWaiting && len(r.Messages) > 0:
		// The interrupt would end the run that is to continue, under way or queued.
		return wrap("request for thread", r.Thread, fmt.Errorf("%w: run_id '%.80s' is not open for dispatch", ErrInvalid, r.Run))
	}
	return nil
}

// unused refuses an id that some thread has.
func unused(ctx context.Context, what, id string, has func(context.Context, string) (bool, error)) error {
	found, err := has(ctx, id)
	if err == nil && found {
		err = ErrExists
	}
	return wrap(what, id, err)
}
