package background

import (
	"context"
	"errors"
	"fmt"
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

var errPanicked = errors.New("background: the Ledger panicked")

// put commits to the ledger, which may panic.
func (m *Manager) put(ctx context.Context, t *Task, record []byte, n *abi.Notice) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %.256v", errPanicked, p)
		}
	}()
	return m.cfg.Ledger.Commit(ctx, t.spec.Thread, t.info.ID, record, n)
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

// commit queues what comes ahead of the end, then the terminal notification, and sets the status in one step with the
// latter. It tries again until the ledger has taken each, or Close gives up.
func (m *Manager) commit(t *Task, o outcome, op string, ahead ...abi.Notice) {
	t.over.Store(true)   // an Emit that begins gives up
	t.end()              // and one that waits, too
	t.emit <- struct{}{} // the last one is through
	<-t.emit

	m.mu.Lock()
	info := t.info
	m.mu.Unlock()
	info.Status, info.Result, info.Error, info.EndedAt = o.status, o.result, o.err, m.cfg.Now()
	for i := range ahead {
		m.repeat(t, op, nil, &ahead[i])
	}
	n := terminal(&info)
	m.repeat(t, op, &info, &n)
	m.evict(context.WithoutCancel(t.life))
	m.observe(context.WithoutCancel(t.life), EventFinished, info)
}

// repeat attempts to commit a notification until that is decided. The end is set if the notification is that of the task.
func (m *Manager) repeat(t *Task, op string, end *Info, n *abi.Notice) {
	ctx := context.WithoutCancel(t.life)
	for i := 0; ; i++ {
		err := m.attempt(ctx, t, end, n)
		full, last := errors.Is(err, inbox.ErrFull), m.late.Err() != nil
		if err == nil || errors.Is(err, inbox.ErrDropped) {
			return
		}
		if !full {
			m.cfg.Logger.WarnContext(ctx, "end of a task is not committed yet", "task_id", t.info.ID, "task_type", t.spec.Type, "error", err)
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
	defer m.lock(t.spec.Thread)()
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
		m.finish(t, end)
	}
	return err
}

// refused counts an attempt that the ledger did not take, unless it had no room.
func (s *Stats) refused(op string, full, last, end bool) {
	if !full {
		if s.CommitFailures == nil {
			s.CommitFailures = map[string]int{}
		}
		s.CommitFailures[op]++
	}
	switch {
	case last && end:
		s.Unsaved++
	case last:
		s.LostNotices++
	}
}

// finish makes the end visible. The caller holds the lock, and the gate of the thread.
func (m *Manager) finish(t *Task, end *Info) {
	// Only what changes: the id is read without the lock.
	t.info.Status, t.info.Result, t.info.Error, t.info.EndedAt = end.Status, end.Result, end.Error, end.EndedAt
	m.leave(t)
	m.ended = append(m.ended, t)
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
		case t.spec.Thread == thread:
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
	if err := m.cfg.Ledger.Forget(ctx, thread, ids...); err != nil {
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
		room[t.acked]--
		if room[t.acked] >= 0 && (!t.acked || t.spec.Class != Housekeeping) {
			kept = append(kept, t)
			continue
		}
		delete(m.tasks, t.info.ID)
		if t.acked {
			forget[t.spec.Thread] = append(forget[t.spec.Thread], t.info.ID)
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
func terminal(info *Info) abi.Notice {
	n := abi.Notice{TaskID: info.ID, Housekeeping: info.Class == Housekeeping}
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
