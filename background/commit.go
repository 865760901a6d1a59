package background

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// patience is how long the first attempt to hand on an end may take, and readers of the thread may wait for it. An attempt that finds no
// room leaves none for the next; one that fails otherwise doubles it, up to maxPatience: a slow disk gets its time. The first attempt with
// a ledger, which writes, may take ledgerPatience.
const (
	patience       = 20 * time.Millisecond
	ledgerPatience = 250 * time.Millisecond
	maxPatience    = 5 * time.Second
)

// Pauses between attempts double from firstPause up to roomPause when there was no room, and else up to maxPatience.
const (
	firstPause = 5 * time.Millisecond
	roomPause  = 100 * time.Millisecond
)

// maxPanics is how often Deliver may panic over one notification.
const maxPanics = 3

// ending is a task on its way to its terminal status.
type ending struct {
	t     *Task
	info  Info // as it will be
	op    string
	ahead *abi.Notice // what is handed on now, if it is not the end itself
	until time.Time   // when the attempts stop that are made when the Manager is as good as closed; set by the first

	panics int
}

// full is an error that reports that there was no room, as inbox.ErrFull does.
type full interface{ Full() bool }

func isFull(err error) bool {
	var f full
	return errors.As(err, &f) && f.Full()
}

// commit hands on what comes ahead of the end, then the terminal notification, and sets the
// status in one step with the latter. While the owner has no room, or the ledger fails,
// it tries again; it gives up when Deliver refuses for good, or when the Manager is
// closed.
func (m *Manager) commit(t *Task, o outcome, op string, ahead ...abi.Notice) {
	t.over.Store(true)   // an Emit that begins gives up
	t.end()              // and one that waits, too
	t.emit <- struct{}{} // the last one is through
	<-t.emit

	ctx := context.WithoutCancel(t.life)
	m.mu.Lock()
	info := t.info
	m.mu.Unlock()
	info.Status, info.Result, info.Error = o.status, o.result, o.err
	info.EndedAt = m.cfg.Now()
	e := &ending{t: t, info: info, op: op}
	for i := range ahead {
		e.ahead = &ahead[i]
		m.handOn(ctx, e)
	}
	e.ahead = nil
	m.handOn(ctx, e)
	m.evict(ctx)
	m.observe(ctx, EventFinished, info)
}

// handOn makes attempts until it is decided what becomes of the notification, with a pause after each.
func (m *Manager) handOn(ctx context.Context, e *ending) {
	e.panics = 0
	for pause := firstPause; ; pause *= 2 {
		noRoom, decided := m.attempt(ctx, e)
		if decided {
			return
		}
		longest := maxPatience
		if noRoom {
			longest = roomPause
		}
		pause = min(pause, longest)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-m.late.Done():
		}
		timer.Stop()
	}
}

// attempt tries once to hand on the notification. When that is decided, and the notification is the
// end, it makes the end visible. No reader comes between.
func (m *Manager) attempt(ctx context.Context, e *ending) (noRoom, decided bool) {
	th, unlock := m.lock(e.t.spec.Thread)
	defer unlock()
	limit, least := th.patience, patience
	if m.durable(e.t) || e.t.refused {
		least = ledgerPatience
	}
	if limit > 0 {
		limit = max(limit, least)
	}
	late := m.late.Err() != nil
	if late {
		if e.until.IsZero() {
			e.until = time.Now().Add(patience)
		}
		limit = time.Until(e.until)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if !late {
		defer context.AfterFunc(m.late, cancel)() //nolint:contextcheck // that of Close
	}
	err := m.handOnce(ctx, e)
	noRoom = isFull(err)
	switch {
	case noRoom:
		th.patience = 0
	case ctx.Err() != nil:
		th.patience = max(least, min(2*limit, maxPatience))
	}
	if decided = err == nil || m.decided(ctx, e, err); decided && e.ahead == nil {
		m.mu.Lock()
		m.finish(e.t, &e.info)
		m.mu.Unlock()
	}
	return noRoom, decided
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

// decided reports whether an attempt that failed was the last, and counts it.
func (m *Manager) decided(ctx context.Context, e *ending, err error) bool {
	cut, noRoom, last := ctx.Err() != nil, isFull(err), m.late.Err() != nil
	args := []any{"task_id", e.info.ID, "task_type", e.info.Type, "status", string(e.info.Status), "error", err}
	if m.durable(e.t) || e.t.refused {
		waited := cut && noRoom
		if !waited {
			m.cfg.Logger.WarnContext(ctx, "end of a task is not committed yet", args...)
		}
		m.count(func(s *Stats) { s.refused(e, waited, last) })
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
	m.cfg.Logger.ErrorContext(ctx, "notification at the end of a task was lost", append(args, "terminal", e.ahead == nil)...)
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

// finish makes the end visible. The caller holds the lock, and the gate of the thread.
func (m *Manager) finish(t *Task, info *Info) {
	// Only what changes: the id is read without the lock.
	t.info.Status, t.info.Result, t.info.Error, t.info.EndedAt = info.Status, info.Result, info.Error, info.EndedAt
	m.leave(t)
	m.retire(t)
}

// retire puts an ended task where it is forgotten in its turn. The caller holds the lock.
func (m *Manager) retire(t *Task) {
	t.acked = t.acked || !m.durable(t)
	if t.acked {
		m.acked++
	}
	m.ended = append(m.ended, t)
}

// Acknowledge reports that what the tasks reported was used, and is persisted where it
// was used. From then on they may be forgotten, the oldest first. It is for the
// owner of the Ledger; without one a notification that was accepted counts as used.
func (m *Manager) Acknowledge(ctx context.Context, thread string, ids ...string) {
	var gone []string // from memory, because they were not acknowledged for long
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
			m.acked++
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

// unackedPerKeep bounds how many ended tasks stay in memory that are not acknowledged, as a multiple of Keep. What they reported stays
// in the ledger.
const unackedPerKeep = 8

// evict forgets the oldest ended tasks, and never one that has not ended.
func (m *Manager) evict(ctx context.Context) {
	forget := map[string][]string{}
	m.mu.Lock()
	acked, unacked := m.acked-m.cfg.Keep, len(m.ended)-m.acked-unackedPerKeep*m.cfg.Keep
	if acked > 0 || unacked > 0 {
		m.ended = slices.DeleteFunc(m.ended, func(t *Task) bool {
			switch {
			case t.acked && acked > 0:
				acked--
				m.acked--
				if m.durable(t) {
					forget[t.spec.Thread] = append(forget[t.spec.Thread], t.info.ID)
				}
			case !t.acked && unacked > 0:
				unacked--
			default:
				return false
			}
			delete(m.tasks, t.info.ID)
			return true
		})
	}
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
