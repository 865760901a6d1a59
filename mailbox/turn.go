package mailbox

import (
	"slices"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// bounds are what the rules go by besides the state and the time.
type bounds struct {
	// skew is how long a lease is left alone after its end, since clocks differ.
	skew time.Duration
	// depth is how many dispatches of a thread may be queued.
	depth int
	// request and commit are how many bytes those may have.
	request, commit int
}

// turn is one application of a rule: the state, the time, and what is written.
type turn struct {
	bounds
	loaded
	changes

	now time.Time
}

// loaded is the state of a thread, as far as need has it. A rule changes thread, dispatches and runs.
type loaded struct {
	thread Thread
	// length is the length of the log before the turn.
	length int
	// dispatches and runs are what was read and put, by id; old are the dispatches as they were.
	dispatches, old map[string]Dispatch
	runs            map[string]Run
	// duplicate is the dispatch that has the key of need.dedupe.
	duplicate string
	// next is the first queued dispatch, by priority and then by Seq, that is due, and holder the first queued one that is Holding. later is
	// the earliest AvailableAt of queued ones that are not due. queued are the ids of all queued dispatches, in order.
	next, holder string
	later        time.Time
	queued       []string
	// seen is what need.more selected.
	seen store.Snapshot
}

// changes are what a rule writes.
type changes struct {
	// changed is set when there is something to write, notify when other processes should poll the thread, and recall when the holder of the
	// claim should learn of it at once.
	changed, notify, recall bool
	// putIDs and putRunIDs are the dispatches and runs that were put.
	putIDs, putRunIDs []string
	// messages replace or follow those of the log, image replaces the thread's if it is not nil, and more is what a commit changes besides.
	messages []Message
	image    []byte
	more     store.Batch
	// ends are the dispatches that became terminal, first is one that was claimed for the first time.
	ends  []string
	first string
	// stale is the error of a transition that is written all the same.
	stale error
}

func (q *queue) turn(thread string) *turn {
	return &turn{bounds: q.bounds, loaded: loaded{
		thread: Thread{ID: thread}, dispatches: map[string]Dispatch{}, old: map[string]Dispatch{}, runs: map[string]Run{},
	}}
}

// setNext sets next, holder and later, and returns the ids of the first two.
func (t *turn) setNext(list []queued) []string {
	for _, e := range list {
		if e.Holding && t.holder == "" {
			t.holder = e.ID
		}
		switch {
		case !e.Available.After(t.now):
			if t.next == "" {
				t.next = e.ID
			}
		case t.later.IsZero() || e.Available.Before(t.later):
			t.later = e.Available
		}
	}
	return []string{t.next, t.holder}
}

// put writes a dispatch and keeps count.
func (t *turn) put(d Dispatch) {
	if old, ok := t.dispatches[d.ID]; ok && old.Status == Queued {
		t.thread.Queued--
	}
	if d.Status == Queued {
		t.thread.Queued++
	}
	d.UpdatedAt = t.now
	t.dispatches[d.ID] = d
	t.putIDs = added(t.putIDs, d.ID)
}

// putRun writes a run and what the thread record has of it.
func (t *turn) putRun(r Run) {
	r.UpdatedAt = t.now
	t.runs[r.ID] = r
	t.project(r)
	t.putRunIDs = added(t.putRunIDs, r.ID)
}

func added(list []string, id string) []string {
	if slices.Contains(list, id) {
		return list
	}
	return append(list, id)
}

// project keeps the thread record's view of a run. A run that only was created does not replace one that is under way.
func (t *turn) project(r Run) {
	if t.thread.Latest.ID == r.ID || r.Status == RunCreated {
		t.thread.Latest = r.Ref()
	}
	mine := t.thread.Open.ID == r.ID
	switch {
	case r.Status == RunDone && mine:
		t.thread.Open = RunRef{}
	case r.Status == RunDone:
	case mine, r.Status != RunCreated, t.thread.Open.ID == "":
		t.thread.Open = r.Ref()
	}
}

// write ends the turn. Without a claim the thread is due at the given time, or at the end of a wait, after a reservation, and never while it is
// paused; with one it is due at the end of the lease.
func (t *turn) write(due time.Time, rank int64) {
	switch {
	case t.thread.Claim != nil:
		due = t.thread.Claim.Until.Add(t.skew)
		rank = rankOf(due, priorityDefault)
	case !t.thread.PausedAt.IsZero():
		due, rank = time.Time{}, 0
	default:
		if t.thread.Open.Status == RunWaiting && !t.inTime() {
			if wait := earliest(due, t.thread.Open.WaitUntil); !wait.Equal(due) {
				due, rank = wait, rankOf(wait, priorityDefault)
			}
		}
		if until := t.thread.ReservedUntil; !due.IsZero() && due.Before(until) && t.now.Before(until) {
			due = until
		}
	}
	t.thread.DueAt, t.thread.Rank = due, rank
	t.save()
}

// save ends a turn that makes nothing due earlier than it was.
func (t *turn) save() { t.thread.UpdatedAt, t.changed = t.now, true }

// rankOf moves a thread by rankStep for each step of priority.
func rankOf(due time.Time, priority uint8) int64 {
	if due.IsZero() {
		return 0
	}
	step := (int64(priority) - int64(priorityDefault)) * rankStep.Milliseconds()
	return due.UnixMilli() + step
}

// free ends a turn and the claim of the thread, after what was claimed has been put. It needs need.next.
// The thread moves to the end of those that are due, so that the others have their turn.
func (t *turn) free() {
	t.thread.Claim = nil
	ready, priority := t.ready()
	if ready {
		t.notify = true
		t.write(t.now, rankOf(t.now, priority))
		return
	}
	later := t.later
	for _, id := range t.putIDs {
		if d := t.dispatches[id]; d.Status == Queued {
			later = earliest(later, d.AvailableAt)
		}
	}
	t.notify = !later.IsZero()
	t.write(later, rankOf(later, priorityDefault))
}

// inTime reports whether something is queued that has come in time for a run that waits: it was due, whatever becomes of it.
func (t *turn) inTime() bool {
	_, held := t.holds()
	return held || t.dispatches[t.next].Status == Queued
}

// ready reports whether something can be claimed now, as far as the state shows, and its priority.
func (t *turn) ready() (bool, uint8) {
	next, ok := t.dispatches[t.next]
	if !ok {
		return false, 0
	}
	if holder, held := t.holds(); held && !before(next, holder) {
		return false, 0
	}
	return true, next.Priority
}

// holds returns the dispatch that failed and holds up those behind it, if its time has not come.
func (t *turn) holds() (Dispatch, bool) {
	h, ok := t.dispatches[t.holder]
	ok = ok && h.Status == Queued && h.Holding // it may have ended in this turn
	for _, id := range t.putIDs {
		if d := t.dispatches[id]; d.Status == Queued && d.Holding && (!ok || before(d, h)) {
			h, ok = d, true
		}
	}
	return h, ok && h.AvailableAt.After(t.now)
}

// before reports whether a comes before b in the queue of their thread.
func before(a, b Dispatch) bool {
	if a.Priority != b.Priority {
		return a.Priority < b.Priority
	}
	return a.Seq < b.Seq
}

// earliest returns the earlier time of those that are not zero.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
