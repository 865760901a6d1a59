package background

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

// attemptTime is how long an attempt to commit an end may take, and readers of the thread may wait for it.
const attemptTime = 5 * time.Second

// Pauses between attempts double from firstPause up to roomPause when there is no room, and else up to maxPause.
const (
	firstPause = 5 * time.Millisecond
	roomPause  = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// put commits to the ledger, which may panic.
func (m *Manager) put(ctx context.Context, t *Task, record []byte, n *abi.Notice) error {
	return guard("Ledger", func() error { return m.cfg.Ledger.Commit(ctx, t.info.Thread, t.info.ID, record, n) })
}

// sleep waits for the pause after attempt n, from 0, or until done is closed.
func sleep(done <-chan struct{}, n int, err error) {
	longest := maxPause
	if errors.Is(err, inbox.ErrFull) {
		longest = roomPause
	}
	timer := time.NewTimer(min(firstPause<<min(n, 16), longest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}

// conclude ends a task, once. It queues what a sub-agent did not read, then the terminal notification, and sets the status in one
// step with the latter. It tries again until the ledger has taken each, or Close gives up.
func (m *Manager) conclude(t *Task, o outcome, op string) {
	defer m.wg.Done()
	defer t.cancel(nil)
	ctx := context.WithoutCancel(t.life)
	result := m.fit(t.life, t, o.result, true)
	m.mu.Lock()
	t.end() // an Emit that waits or begins gives up
	m.places.leave(t)
	end := t.info
	m.mu.Unlock()
	t.emit <- struct{}{} // the last one is through
	<-t.emit

	end.Status, end.Result, end.Error, end.EndedAt = o.status, result, m.cutError(o.err), m.cfg.Now()
	for _, n := range m.unread(t) {
		m.repeat(ctx, t, op, nil, &n)
	}
	m.repeat(ctx, t, op, &end, terminal(&end))
	m.evict(ctx)
	m.observe(ctx, EventFinished, end)
}

// repeat attempts to commit a notification until that is decided. The end is set if the notification is that of the task.
func (m *Manager) repeat(ctx context.Context, t *Task, op string, end *Info, n *abi.Notice) {
	for i := 0; ; i++ {
		err := m.attempt(ctx, t, end, n)
		full, last := errors.Is(err, inbox.ErrFull), m.late.Err() != nil
		if err == nil || errors.Is(err, inbox.ErrDropped) {
			return
		}
		if !full {
			m.cfg.Logger.WarnContext(ctx, "end of a task is not committed yet", "task_id", t.info.ID, "task_type", t.info.Type, "error", err)
		}
		m.count(func(s *Stats) { s.refused(op, full, last, end != nil) })
		if last {
			return
		}
		sleep(m.late.Done(), i, err)
	}
}

// attempt tries once to commit a notification, and makes the end visible when that is decided. No reader comes between.
func (m *Manager) attempt(ctx context.Context, t *Task, end *Info, n *abi.Notice) (err error) {
	t.gate.lock <- struct{}{}
	defer func() { <-t.gate.lock }()
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	defer context.AfterFunc(m.late, cancel)() //nolint:contextcheck // that of Close
	var record []byte
	if end != nil {
		record, err = end.record()
	}
	if err == nil {
		err = m.put(ctx, t, record, n)
	}
	dropped := errors.Is(err, inbox.ErrDropped)
	if end != nil && (err == nil || dropped || m.late.Err() != nil) {
		m.mu.Lock()
		defer m.mu.Unlock()
		t.acked = t.acked || dropped
		// Only what changes: the rest is read without the lock.
		t.info.Status, t.info.Result, t.info.Error, t.info.EndedAt = end.Status, end.Result, end.Error, end.EndedAt
		m.leave(t)
		m.ended = append(m.ended, t)
	}
	return err
}

// Acknowledge reports that what the tasks reported was used, and is persisted where it
// was used. From then on they may be forgotten, the oldest first. It is for the
// owner of the Ledger.
func (m *Manager) Acknowledge(ctx context.Context, thread string, ids ...string) {
	var gone []string // from memory, because they were not acknowledged for long
	m.mu.Lock()
	for _, id := range ids {
		switch t := m.tasks[id]; {
		case t == nil:
			gone = append(gone, id)
		case t.info.Thread == thread:
			t.acked = true
		}
	}
	m.mu.Unlock()
	m.forget(ctx, thread, gone)
	m.evict(ctx)
}

// forget drops records of the ledger. A record that stays is dropped by the next process.
func (m *Manager) forget(ctx context.Context, thread string, ids []string) {
	if len(ids) == 0 {
		return
	}
	if err := guard("Ledger", func() error { return m.cfg.Ledger.Forget(ctx, thread, ids...) }); err != nil {
		m.cfg.Logger.WarnContext(ctx, "records of ended tasks stay in the ledger", "thread_id", thread, "tasks", len(ids), "error", err)
	}
}

// unackedPerKeep bounds how many ended tasks stay in memory that are not acknowledged, as a multiple of Keep. What they reported stays
// in the ledger.
const unackedPerKeep = 8

// evict forgets the oldest ended tasks, and never one that has not ended. Housekeeping is not kept.
func (m *Manager) evict(ctx context.Context) {
	forget := map[string][]string{}
	m.mu.Lock()
	room := map[bool]int{true: m.cfg.Keep, false: unackedPerKeep * m.cfg.Keep} // by whether they are acknowledged
	var kept []*Task
	for _, t := range slices.Backward(m.ended) {
		if !t.acked || t.info.Class != Housekeeping {
			room[t.acked]--
			if room[t.acked] >= 0 {
				kept = append(kept, t)
				continue
			}
		}
		delete(m.tasks, t.info.ID)
		if t.acked {
			forget[t.info.Thread] = append(forget[t.info.Thread], t.info.ID)
		}
	}
	slices.Reverse(kept)
	m.ended = kept
	m.mu.Unlock()
	for thread, ids := range forget {
		m.forget(ctx, thread, ids)
	}
}

// terminal builds the one notification that ends a task.
func terminal(info *Info) *abi.Notice {
	n := &abi.Notice{TaskID: info.ID, Housekeeping: info.Class == Housekeeping}
	switch info.Status {
	case Completed:
		n.Kind, n.Result = abi.NoticeCompleted, info.Result
	case Cancelled:
		n.Kind = abi.NoticeCancelled
	default:
		n.Kind, n.Error = abi.NoticeFailed, info.Error
	}
	return n
}
