package mailbox

import (
	"context"
	"fmt"
)

// acceptable refuses what a thread would not take, however free it were: a request of another tenant, or for a run that it cannot
// have.
func (m *Mailbox) acceptable(ctx context.Context, r Request) error {
	m.mu.Lock()
	closing := m.closing
	m.mu.Unlock()
	if closing {
		return fmt.Errorf("mailbox: %w", ErrShutdown)
	}
	s, err := m.queue.load(ctx, r.Thread, Need{Runs: named(r.Run)})
	if err != nil {
		return err
	}
	if err := s.Head.admits(r.Tenant); err != nil {
		return wrap("request for thread", r.Thread, err)
	}
	if r.DispatchIDHint != "" {
		if _, found, err := m.queue.find(ctx, KindDispatch, r.DispatchIDHint); err != nil || found {
			return wrap("dispatch", r.DispatchIDHint, orExists(err))
		}
	}
	run, found := s.Runs[r.Run]
	switch {
	case !found:
		return m.unused(ctx, named(r.Run, r.NewRun)...)
	case run.Status == RunDone, run.Status != RunWaiting && len(r.Messages) > 0:
		// The interrupt would end the run that is to go on, under way or queued.
		return wrap("request for thread", r.Thread, fmt.Errorf("%w: run_id '%.80s' is not open for dispatch", ErrInvalid, r.Run))
	}
	return nil
}

// unused refuses ids of new runs that some thread has.
func (m *Mailbox) unused(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		if _, found, err := m.queue.find(ctx, KindRun, id); err != nil || found {
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

// named leaves out the ids that are empty.
func named(ids ...string) (list []string) {
	for _, id := range ids {
		if id != "" {
			list = append(list, id)
		}
	}
	return list
}
