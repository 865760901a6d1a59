package background

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// errClaimed reports that another process has taken over a task.
var errClaimed = errors.New("another process has resumed the task")

// Orphaned is the error of a task that was running when the process ended.
const Orphaned = "task orphaned: runtime restarted while running"

// Recover takes over what the Ledger kept of processes that have ended: tasks that had
// ended stay readable, the others are resumed if Config.Resume has a body for
// them, and else end as failed, with a notification; housekeeping is forgotten. A record that cannot be read is
// reported in the error; the others are recovered all the same. Call it
// before the first Spawn, and again when another process has ended. When several processes
// recover at once, one of them resumes a task. What the Manager knows already stays as it is.
func (m *Manager) Recover(ctx context.Context) error {
	alive, err := m.cfg.Ledger.Alive(ctx)
	if err != nil {
		return fmt.Errorf("background: recover: %w", err)
	}
	threads, err := m.cfg.Ledger.Threads(ctx)
	if err != nil {
		return fmt.Errorf("background: recover: %w", err)
	}
	var errs []error
	for _, thread := range threads {
		if err := m.recoverThread(ctx, thread, alive); err != nil {
			errs = append(errs, fmt.Errorf("background: recover thread %s: %w", thread, err))
		}
	}
	return errors.Join(errs...)
}

// recoverThread takes over the tasks of a thread that do not run in a process that is alive.
func (m *Manager) recoverThread(ctx context.Context, thread string, alive map[string]bool) error {
	records, err := m.cfg.Ledger.Records(ctx, thread)
	if err != nil {
		return err
	}
	unread, err := m.cfg.Ledger.Unread(ctx, thread)
	if err != nil {
		return err
	}
	var errs []error
	var used []string
	var infos []Info
	for id, data := range records {
		info := Info{}
		if err := json.Unmarshal(data, &info); err != nil {
			errs = append(errs, fmt.Errorf("task %.80q: %w", id, err))
			continue
		}
		info.ID, info.Thread = id, thread
		ended, own := info.Status.Terminal(), info.Owner != "" && info.Owner == m.cfg.Ledger.Owner()
		switch {
		case !ended && (own || alive[info.Owner]):
			continue
		case ended && !slices.Contains(unread, id), !ended && info.Class == Housekeeping:
			used = append(used, id)
		}
		if ended || info.Class != Housekeeping {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for i := range infos {
		if err := m.restore(ctx, infos[i], records[infos[i].ID]); err != nil {
			errs = append(errs, fmt.Errorf("task %.80q: %w", infos[i].ID, err))
		}
	}
	m.Acknowledge(ctx, thread, used...)
	return errors.Join(errs...)
}

// restore takes over one task. Record is what the ledger has of it.
func (m *Manager) restore(ctx context.Context, info Info, record []byte) error {
	if err := info.validate(); err != nil {
		return err
	}
	t := &Task{m: m, info: info, job: job{was: record}}
	if !info.Status.Terminal() && m.cfg.Resume != nil && info.Attempt < m.cfg.MaxAttempts {
		t.work = m.cfg.Resume(info)
	}
	if t.work != nil {
		t.info.Attempt++
		t.info.Owner, t.info.Status = m.cfg.Ledger.Owner(), Queued
	}
	err := m.register(ctx, t, true)
	switch {
	case errors.Is(err, errTaken):
		return nil // it is known
	case err != nil, info.Status.Terminal():
		return err
	case t.work == nil:
		go m.run(t) //nolint:contextcheck // the end outlives the restore; the task has a context made of this one
		return nil
	}
	if err = m.launch(ctx, t); errors.Is(err, errClaimed) {
		return nil
	}
	return err
}
