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
	if r.DispatchIDHint != "" {
		if found, err := m.queue.HasDispatch(ctx, r.DispatchIDHint); err != nil || found {
			return wrap("dispatch", r.DispatchIDHint, orExists(err))
		}
	}
	switch {
	case !found:
		return m.unused(ctx, r.Run, r.NewRun)
	case run.Status == RunDone, run.Status != RunWaiting && len(r.Messages) > 0:
		// The interrupt would end the run that is to continue, under way or queued.
		return wrap("request for thread", r.Thread, fmt.Errorf("%w: run_id '%.80s' is not open for dispatch", ErrInvalid, r.Run))
	}
	return nil
}

// unused refuses ids of new runs that some thread has.
func (m *Mailbox) unused(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		if found, err := m.queue.HasRun(ctx, id); err != nil || found {
			return wrap("run", id, orExists(err))
		}
	}
	return nil
}

func orExists(err error) error {
	if err == nil {
		return ErrExists
	}
	return err
}
