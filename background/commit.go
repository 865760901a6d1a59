package background

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// patience is how long the first attempt to commit an end may take when a reader
// waits; the next one may take twice as long, up to maxPatience, unless it was
// for want of room. The pauses after attempts that failed grow alike. lastPatience is
// for an attempt that begins when the Manager is as good as closed.
const (
	patience     = 20 * time.Millisecond
	maxPatience  = 5 * time.Second
	lastPatience = 20 * time.Millisecond
)

// maxPanics is how often Deliver may panic over one notice.
const maxPanics = 3

// ending is a task on its way to its terminal status.
type ending struct {
	t     *Task
	o     outcome
	info  Info // as it will be
	op    string
	until time.Time   // when the attempts stop that are made when it is late; set by the first
	ahead *abi.Notice // what is handed on now, if it is not the end itself

	panics   int
	patience time.Duration // of the next attempt
	pause    time.Duration // after the next that fails
}

// full is an error that reports that there was no room, as inbox.ErrFull does.
type full interface{ Full() bool }

func isFull(err error) bool {
	var f full
	return errors.As(err, &f) && f.Full()
}

// commit hands on what comes ahead of the end, then the terminal notice, and sets the
// status in one step with the latter. While the owner has no room, or the ledger fails,
// it tries again; it gives up when Deliver refuses for good, or when the Manager is
// closed.
func (m *Manager) commit(t *Task, o outcome, op string, ahead ...abi.Notice) {
	t.over.Store(true)   // an Emit that begins gives up
	t.end()              // and one that waits, too
	t.emit <- struct{}{} // the last one is through
	<-t.emit

	ctx := context.WithoutCancel(t.life)
	e := &ending{t: t, o: o, op: op}
	for i := range ahead {
		e.ahead = &ahead[i]
		m.handOn(ctx, e)
	}
	e.ahead = nil
	m.handOn(ctx, e)
	m.evict(ctx)
	m.observe(ctx, EventFinished, e.info)
}

// handOn makes attempts until it is decided what becomes of the notice, with a pause
// after one that was not cut short.
func (m *Manager) handOn(ctx context.Context, e *ending) {
	e.panics, e.patience, e.pause = 0, patience, patience
	for decided := false; !decided; {
		ctx, cancel := context.WithCancel(ctx)
		if decided = m.attempt(ctx, e, cancel); !decided && ctx.Err() == nil {
			m.pause(e)
		}
		cancel()
	}
}

// pause waits before the next attempt.
func (m *Manager) pause(e *ending) {
	timer := time.NewTimer(e.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.late:
	}
	e.pause = min(2*e.pause, maxPatience)
}

// attempt tries once to hand on the notice. When that is decided, and the notice is the
// end, it makes the end visible. No reader comes between.
func (m *Manager) attempt(ctx context.Context, e *ending, cancel context.CancelFunc) (decided bool) {
	thread := e.t.spec.Thread
	m.mu.Lock()
	a := m.begin(thread, e.patience, cancel)
	if m.isLate() {
		if e.until.IsZero() {
			e.until = time.Now().Add(lastPatience)
		}
		defer time.AfterFunc(time.Until(e.until), cancel).Stop()
	}
	e.info = m.ended(e.t, e.o)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if decided && e.ahead == nil {
			m.finish(e.t, &e.info)
		}
		m.over(thread, a)
	}()
	err := m.handOnce(ctx, e)
	return err == nil || m.decided(ctx, e, err)
}

func (m *Manager) handOnce(ctx context.Context, e *ending) error {
	if e.ahead != nil {
		return m.hand(ctx, e.t, nil, e.ahead)
	}
	record, err := m.record(e.t, &e.info)
	if err != nil {
		return err
	}
	n := terminal(&e.info)
	return m.hand(ctx, e.t, record, &n)
}

// isLate reports whether owners get no more time.
func (m *Manager) isLate() bool {
	select {
	case <-m.late:
		return true
	default:
		return false
	}
}

// decided reports whether an attempt that failed was the last, and counts it.
func (m *Manager) decided(ctx context.Context, e *ending, err error) bool {
	cut, noRoom, last := ctx.Err() != nil, isFull(err), m.isLate()
	switch {
	case noRoom:
		e.patience = 0
	case cut:
		e.patience = max(patience, min(2*e.patience, maxPatience))
	}
	args := []any{"task_id", e.info.ID, "task_type", e.info.Type, "status", string(e.info.Status), "error", err}
	if m.durable(e.t) || e.t.refused {
		if !cut {
			m.cfg.Logger.WarnContext(ctx, "end of a task was not kept, trying again", args...)
		}
		m.count(func(s *Stats) { s.refused(e, cut && noRoom, last) })
		return last
	}
	if errors.Is(err, errPanicked) {
		e.panics++
	}
	if !last && (cut || noRoom || e.panics > 0 && e.panics < maxPanics) {
		return false
	}
	if m.cfg.Ledger != nil {
		e.t.refused = true // the next attempt commits it
		return false
	}
	m.cfg.Logger.ErrorContext(ctx, "notice at the end of a task was lost", append(args, "terminal", e.ahead == nil)...)
	m.count(func(s *Stats) { s.LostNotices++ })
	return true
}

// refused counts an attempt that the ledger did not take, unless it only waited for room.
func (s *Stats) refused(e *ending, waited, last bool) {
	if !waited {
		if s.CommitFailures == nil {
			s.CommitFailures = map[string]int{}
		}
		s.CommitFailures[e.op]++
	}
	switch {
	case last && e.ahead == nil:
		s.Unsaved++
	case last:
		s.LostNotices++
	}
}

// durable reports whether the ledger has a task.
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

// ended returns what a task will be when it has ended. The caller holds the lock.
func (m *Manager) ended(t *Task, o outcome) Info {
	info := t.info
	info.Status, info.Result, info.Error = o.status, o.result, o.err
	if info.EndedAt.IsZero() {
		info.EndedAt = m.cfg.Now()
	}
	return info
}

// finish makes the end visible. The caller holds the lock, and an attempt keeps
// readers out.
func (m *Manager) finish(t *Task, info *Info) {
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

// Acknowledge reports that what the tasks reported was used, and is persisted where it
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
