package mailbox

import "time"

// limits are what the rules go by besides the state and the time.
type limits struct {
	// skew is how long a lease is left alone after its end, since clocks differ.
	skew time.Duration
	// depth is how many dispatches of a thread may be queued.
	depth int
	// request and commit are how many bytes those may have.
	request, commit int
	// rankStep is by how much one step of priority moves a thread in the order of
	// those that are due.
	rankStep time.Duration
}

// turn is one application of a rule: the state, the time, and what is written.
type turn struct {
	limits

	now  time.Time
	s    State
	head Head
	out  Change
	// ends are the dispatches that became terminal.
	ends []string
	// first is the dispatch that was claimed for the first time.
	first string
}

func newTurn(l limits, s State, now time.Time) *turn {
	t := &turn{limits: l, now: now, s: s, head: s.Head}
	if s.Head.Claim != nil {
		c := *s.Head.Claim
		t.head.Claim = &c
	}
	if t.s.Dispatches == nil {
		t.s.Dispatches = map[string]Dispatch{}
	}
	if t.s.Runs == nil {
		t.s.Runs = map[string]Run{}
	}
	return t
}

// endedBefore takes over what an earlier try of the turn made terminal, which was reported as failed.
func (t *turn) endedBefore(before *turn) {
	if t == nil || before == nil || t.out.Head != nil {
		return
	}
	for _, id := range before.ends {
		if d, ok := t.s.Dispatches[id]; ok && d.Status.Terminal() && d.UpdatedAt.Equal(t.now) {
			t.ends = append(t.ends, id)
		}
	}
}

// put writes a dispatch and keeps count.
func (t *turn) put(d Dispatch) {
	if old, ok := t.s.Dispatches[d.ID]; ok && old.Status == Queued {
		t.head.Queued--
	}
	if d.Status == Queued {
		t.head.Queued++
	}
	d.UpdatedAt = t.now
	t.s.Dispatches[d.ID] = d
	for i := range t.out.Dispatches {
		if t.out.Dispatches[i].ID == d.ID {
			t.out.Dispatches[i] = d
			return
		}
	}
	t.out.Dispatches = append(t.out.Dispatches, d)
}

// putRun writes a run and what the head knows of it.
func (t *turn) putRun(r Run) {
	r.UpdatedAt = t.now
	t.s.Runs[r.ID] = r
	t.project(r)
	for i := range t.out.Runs {
		if t.out.Runs[i].ID == r.ID {
			t.out.Runs[i] = r
			return
		}
	}
	t.out.Runs = append(t.out.Runs, r)
}

// project keeps the head's view of a run. A run that only was created does not take
// the place of one that is under way.
func (t *turn) project(r Run) {
	if t.head.Latest.ID == r.ID || r.Status == RunCreated {
		t.head.Latest = r.Ref()
	}
	mine := t.head.Open.ID == r.ID
	switch {
	case r.Status == RunDone && mine:
		t.head.Open = RunRef{}
	case r.Status == RunDone:
	case mine, r.Status != RunCreated, t.head.Open.ID == "":
		t.head.Open = r.Ref()
	}
}

// write returns the change. Without a claim the thread is due at the given time, or
// at the end of a wait; with one it is due at the end of the lease.
func (t *turn) write(due time.Time, rank int64) Change {
	switch {
	case t.head.Claim != nil:
		due = t.head.Claim.Until.Add(t.skew)
		rank = t.rank(due, PriorityDefault)
	case due.Before(t.head.ReservedUntil) && t.now.Before(t.head.ReservedUntil):
		if !due.IsZero() {
			due = t.head.ReservedUntil
		}
	case t.head.Open.Status == RunWaiting && !t.inTime():
		if wait := earliest(due, t.head.Open.WaitUntil); !wait.Equal(due) {
			due, rank = wait, t.rank(wait, PriorityDefault)
		}
	}
	t.head.DueAt, t.head.Rank, t.head.UpdatedAt = due, rank, t.now
	t.out.Head = &t.head
	return t.out
}

// keep returns the change of a turn that makes nothing due earlier than it was.
func (t *turn) keep() Change {
	t.head.UpdatedAt = t.now
	t.out.Head = &t.head
	return t.out
}

func (t *turn) rank(due time.Time, priority uint8) int64 {
	if due.IsZero() {
		return 0
	}
	step := (int64(priority) - int64(PriorityDefault)) * t.rankStep.Milliseconds()
	return due.UnixMilli() + step
}

// free gives the thread up, after what was claimed has been put. Needs State.Next.
// The thread goes to the end of those that are due, so that the others have their turn.
func (t *turn) free() Change {
	t.head.Claim = nil
	ready, priority := t.ready()
	if ready {
		t.out.Signal = true
		return t.write(t.now, t.rank(t.now, priority))
	}
	later := t.s.Later
	for i := range t.out.Dispatches {
		if t.out.Dispatches[i].Status == Queued {
			later = earliest(later, t.out.Dispatches[i].AvailableAt)
		}
	}
	t.out.Signal = !later.IsZero()
	return t.write(later, t.rank(later, PriorityDefault))
}

// inTime says whether something is queued that has come in time for a run that waits: it was due, whatever becomes of it.
func (t *turn) inTime() bool {
	_, held := t.holder()
	return held || t.s.Dispatches[t.s.Next].Status == Queued
}

// ready says whether something can be claimed now, as far as the state tells.
func (t *turn) ready() (bool, uint8) {
	next, ok := t.s.Dispatches[t.s.Next]
	if !ok {
		return false, 0
	}
	if holder, held := t.holder(); held && !before(next, holder) {
		return false, 0
	}
	return true, next.Priority
}

// holder is the dispatch that failed and holds up those behind it, if its time has
// not come.
func (t *turn) holder() (Dispatch, bool) {
	h, ok := t.s.Dispatches[t.s.Holder]
	ok = ok && h.Status == Queued && h.Holding // it may have ended in this turn
	for i := range t.out.Dispatches {
		if d := t.out.Dispatches[i]; d.Status == Queued && d.Holding && (!ok || before(d, h)) {
			h, ok = d, true
		}
	}
	return h, ok && h.AvailableAt.After(t.now)
}

// before says whether a comes before b in the queue of their thread.
func before(a, b Dispatch) bool {
	if a.Priority != b.Priority {
		return a.Priority < b.Priority
	}
	return a.Seq < b.Seq
}

// earliest is the earlier time of those that are not zero.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
