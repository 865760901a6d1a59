package background

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Bounds of one attempt to hand on a terminal notice. Readers of the thread's
// status wait that long at most.
const (
	firstAttempt = 20 * time.Millisecond
	lastAttempt  = 5 * time.Second
)

// maxPanics is how often Deliver may panic over one notice.
const maxPanics = 3

// ending is a task on its way to its terminal status.
type ending struct {
	t       *Task
	o       outcome
	info    Info // as it will be
	op      string
	panics  int
	giveUp  <-chan time.Time // set when the Manager closes
	last    bool
	expired bool // the last attempt used all its time
}

// commit hands on the terminal notice and sets the status in one step. While the
// owner has no room, or the ledger fails, it lets readers look in between
// attempts; it gives up when Deliver refuses for good, or when the Manager has
// been closing for the grace period.
func (m *Manager) commit(t *Task, o outcome, op string) {
	t.end() // an Emit that still waits gives up
	t.emit.lock()
	t.over = true
	t.emit.unlock()

	ctx := context.WithoutCancel(t.life)
	e := &ending{t: t, o: o, op: op}
	for wait := firstAttempt; !m.attempt(ctx, e, wait); wait = min(2*wait, lastAttempt) {
		m.pause(e, wait)
	}
	m.evict(ctx)
	m.observe(ctx, EventFinished, e.info)
}

// pause waits before the next attempt, unless the last one took its time.
func (m *Manager) pause(e *ending, wait time.Duration) {
	if e.expired {
		wait = 0
	}
	stop := m.stop
	if e.giveUp != nil {
		stop = nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-stop:
		e.giveUp = time.After(m.cfg.Grace)
	case <-e.giveUp:
		e.last = true
	case <-timer.C:
	}
}

// attempt tries once to hand on the notice and, when that is decided, makes the
// end visible.
func (m *Manager) attempt(ctx context.Context, e *ending, wait time.Duration) bool {
	g := m.gate(e.t.spec.Thread)
	g.lock()
	defer g.unlock()
	e.info = m.ended(e.t, e.o)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	record, err := m.record(e.t, &e.info)
	if err == nil {
		n := terminal(&e.info)
		err = m.hand(ctx, e.t, record, &n)
	}
	e.expired = ctx.Err() != nil
	if err != nil && !m.decided(ctx, e, err) {
		return false
	}
	m.finish(e.t, &e.info)
	return true
}

// decided says whether an attempt that failed was the last, and counts it.
func (m *Manager) decided(ctx context.Context, e *ending, err error) bool {
	args := []any{"task_id", e.info.ID, "task_type", e.info.Type, "status", string(e.info.Status), "error", err}
	if m.durable(e.t) {
		if !e.expired {
			m.cfg.Logger.WarnContext(ctx, "end of a task was not kept, trying again", args...)
		}
		m.count(func(s *Stats) {
			if s.CommitFailures == nil {
				s.CommitFailures = map[string]int{}
			}
			s.CommitFailures[e.op]++
			if e.last {
				s.Unsaved++
			}
		})
		return e.last
	}
	if errors.Is(err, errPanicked) {
		e.panics++
	}
	if !e.last && (e.expired || e.panics > 0 && e.panics < maxPanics) {
		return false
	}
	m.cfg.Logger.ErrorContext(ctx, "terminal notice of a task was lost", args...)
	m.count(func(s *Stats) { s.LostNotices++ })
	return true
}

// durable says whether the ledger has a task.
func (m *Manager) durable(t *Task) bool {
	return m.cfg.Ledger != nil && (m.cfg.Deliver == nil || t.spec.Class != Housekeeping)
}

// record is what the ledger keeps, nothing if it does not have the task.
func (m *Manager) record(t *Task, info *Info) ([]byte, error) {
	if !m.durable(t) {
		return nil, nil
	}
	return json.Marshal(info)
}

// ended returns what a task will be when it has ended.
func (m *Manager) ended(t *Task, o outcome) Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	info := t.info
	info.Status, info.Result, info.Error = o.status, o.result, o.err
	if info.EndedAt.IsZero() {
		info.EndedAt = m.cfg.Now()
	}
	return info
}

// finish makes the end visible. The caller holds the thread's gate.
func (m *Manager) finish(t *Task, info *Info) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Only what changes: the id is read without the lock.
	t.info.Status, t.info.Result, t.info.Error, t.info.EndedAt = info.Status, info.Result, info.Error, info.EndedAt
	m.leave(t)
	m.retire(t)
}

// retire puts an ended task where it will be forgotten in its turn. The caller
// holds the lock.
func (m *Manager) retire(t *Task) {
	if !m.durable(t) || t.acked {
		t.acked = true
		m.acked = append(m.acked, t.info.ID)
		return
	}
	m.unacked = append(m.unacked, t.info.ID)
}

// Acknowledge says that what the tasks reported has been used, and kept where it
// was used. From then on they may be forgotten, the oldest first. It is for the
// owner of the Ledger; without one a notice that was accepted counts as used.
func (m *Manager) Acknowledge(ctx context.Context, thread string, ids ...string) {
	var gone []string // from memory, because nobody acknowledged them for long
	m.mu.Lock()
	for _, id := range ids {
		t := m.tasks[id]
		if t == nil {
			gone = append(gone, id)
		}
		if t == nil || t.acked || t.spec.Thread != thread {
			continue
		}
		if t.acked = true; t.info.Status.Terminal() {
			m.acked = append(m.acked, id)
		}
	}
	m.mu.Unlock()
	m.forget(ctx, thread, gone)
	m.evict(ctx)
}

// forget drops records from the ledger.
func (m *Manager) forget(ctx context.Context, thread string, ids []string) {
	if m.cfg.Ledger == nil || len(ids) == 0 {
		return
	}
	if err := m.cfg.Ledger.Forget(ctx, thread, ids...); err != nil {
		m.cfg.Logger.WarnContext(ctx, "records of ended tasks stay in the ledger", "thread_id", thread, "tasks", len(ids), "error", err)
	}
}

// unackedPerKeep bounds how many ended tasks stay in memory that nobody
// acknowledges, as a multiple of Keep. What they reported stays in the ledger.
const unackedPerKeep = 8

// evict forgets the oldest ended tasks. It never takes one that has not ended.
func (m *Manager) evict(ctx context.Context) {
	forget := map[string][]string{}
	m.mu.Lock()
	for len(m.acked) > m.cfg.Keep {
		id := m.acked[0]
		m.acked[0], m.acked = "", m.acked[1:]
		if t := m.tasks[id]; t != nil {
			delete(m.tasks, id)
			if m.durable(t) {
				forget[t.spec.Thread] = append(forget[t.spec.Thread], id)
			}
		}
	}
	if len(m.unacked) > unackedPerKeep*m.cfg.Keep {
		m.trimUnacked()
	}
	m.mu.Unlock()
	for thread, ids := range forget {
		m.forget(ctx, thread, ids)
	}
}

// trimUnacked drops what was acknowledged from the list, and from memory the
// oldest half of what was not if that is still too much. The caller holds the lock.
func (m *Manager) trimUnacked() {
	var still []string
	for _, id := range m.unacked {
		if t := m.tasks[id]; t != nil && !t.acked {
			still = append(still, id)
		}
	}
	if len(still) > unackedPerKeep*m.cfg.Keep/2 {
		half := len(still) / 2
		for _, id := range still[:half] {
			delete(m.tasks, id)
		}
		still = still[half:]
	}
	m.unacked = still
}

// terminal builds the one notice that ends a task.
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
