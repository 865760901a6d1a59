package mailbox

import (
	"strings"
	"time"
)

// Interrupt says how a thread is interrupted.
type Interrupt struct {
	// ID names it; made when empty.
	ID string
	// Keep says what of the queue stays; nil keeps nothing.
	Keep func(Dispatch) bool
	// Reserve keeps the thread free that long for an entry with the same Interrupt id.
	Reserve time.Duration
	// Unless is the id of a dispatch: when the thread has it, nothing is interrupted.
	Unless string
}

// Interruption is what an interrupt came to.
type Interruption struct {
	ID string
	// Epoch is the thread's new one.
	Epoch uint64
	// Active is what the thread is claimed for; it is stale now.
	Active *Taken
	// Superseded were queued, and Kept still are.
	Superseded []Dispatch
	Kept       int
	// Found says that nothing was interrupted, since the dispatch of Interrupt.Unless is there.
	Found bool
}

func (i Interrupt) need() Need {
	return Need{Claimed: true, Queued: true, RunsOf: true, Dispatches: named(i.Unless)}
}

// interrupt makes what is claimed stale and supersedes what is queued, except for what
// is to be kept. The same interrupt may come twice: what it superseded is found by its epoch then.
func interrupt(t *turn, i Interrupt) (_ Change, out Interruption, again bool) {
	out.ID, again = i.ID, t.head.Interrupt == i.ID
	if _, out.Found = t.s.Dispatches[i.Unless]; out.Found && i.Unless != "" && !again {
		out.Epoch = t.head.Epoch
		return Change{}, out, false
	}
	out.Found = false
	if c := t.head.Claim; c != nil && (!again || t.s.Dispatches[c.Dispatch].Epoch < t.head.Epoch) {
		active := t.taken(c.Dispatch)
		out.Active = &active
	}
	if again {
		out.Epoch, out.Kept = t.head.Epoch, t.head.Queued
		return Change{}, out, true
	}
	t.head.Epoch++
	t.head.Interrupt, t.head.ReservedUntil = i.ID, time.Time{}
	if i.Reserve > 0 {
		t.head.ReservedUntil = t.now.Add(i.Reserve)
	}
	out.Epoch = t.head.Epoch
	held := false
	for _, queued := range t.s.Queued {
		d := t.s.Dispatches[queued]
		if i.Keep != nil && i.Keep(d) {
			d.Epoch = t.head.Epoch
			t.put(d)
			out.Kept++
			continue
		}
		held = held || d.Holding
		d.Epoch = t.head.Epoch
		t.supersede(d, staleText)
		out.Superseded = append(out.Superseded, t.s.Dispatches[queued])
	}
	switch {
	case held && out.Kept > 0:
		return t.released(), out, false
	case out.Kept > 0 || t.head.Claim != nil:
		return t.keep(), out, false
	}
	return t.write(t.s.Later, 0), out, false
}

// released returns the change of a turn that ended a dispatch which held up those behind it: somebody should look
// at the thread now.
func (t *turn) released() Change {
	switch {
	case t.head.Claim != nil:
		return t.keep()
	case t.head.Queued == 0:
		// A run that waits may have been in time because of it, and is not any more.
		t.out.Signal = true
		return t.write(t.head.DueAt, t.head.Rank)
	}
	t.out.Signal = true
	return t.write(t.now, t.rank(t.now, PriorityDefault))
}

// cancel ends a dispatch that is queued, and asks the holder of a claimed one to
// stop. It says whether one of both is so now.
func cancel(t *turn, id, why string) (Change, Taken, bool) {
	d, ok := t.s.Dispatches[id]
	if !ok {
		return Change{}, Taken{}, false
	}
	switch d.Status {
	case Cancelled:
		return Change{}, t.taken(id), true
	case Queued:
		held := d.Holding
		d.LastError = why
		t.settled(d, Cancelled, EndSettled)
		t.finishRun(d, TerminationCancelled, "")
		if held {
			return t.released(), t.taken(id), true
		}
		return t.keep(), t.taken(id), true
	case Claimed:
		if t.head.Claim == nil || t.head.Claim.Dispatch != id {
			return Change{}, t.taken(id), false
		}
		if t.head.Claim.Stop != "" {
			return Change{}, t.taken(id), true
		}
		t.head.Claim.Stop = why
		return t.keep(), t.taken(id), true
	default:
		return Change{}, t.taken(id), false
	}
}

// cancelRun ends a run that waits, and says whether it has ended so.
func cancelRun(t *turn, id, why string) (Change, bool) {
	run, ok := t.s.Runs[id]
	if !ok || run.Status != RunWaiting {
		return Change{}, ok && run.Status == RunDone && run.Termination == TerminationCancelled
	}
	t.finishRun(Dispatch{ID: run.Dispatch, RunID: id}, TerminationCancelled, why)
	return t.keep(), true
}

// lapse ends a run whose time to wait is over. What is queued for later came too late for it; what is due, or was and is to be tried
// again, came in time.
func lapse(t *turn) (Change, string) {
	if !t.head.lapsed(t.now) || t.inTime() {
		return Change{}, ""
	}
	open := t.head.Open
	run, ok := t.s.Runs[open.ID]
	if !ok {
		return Change{}, ""
	}
	t.finishRun(Dispatch{ID: run.Dispatch, RunID: open.ID}, TerminationCancelled, lapsedText+run.Wait)
	return t.write(t.s.Later, t.rank(t.s.Later, PriorityDefault)), open.ID
}

const lapsedText = "nothing came in time for which it waited: "

// lapsed says whether an earlier try of this lapse ended a run.
func (t *turn) lapsed(run string) bool {
	r, ok := t.s.Runs[run]
	return ok && r.Status == RunDone && strings.HasPrefix(r.Error, lapsedText) && r.FinishedAt.Equal(t.now)
}

// lapsed says whether the open run has waited long enough, unless something came in time.
func (h *Head) lapsed(now time.Time) bool {
	open := &h.Open
	return h.Claim == nil && open.Status == RunWaiting && !open.WaitUntil.IsZero() && !open.WaitUntil.After(now)
}

// replay queues a dead letter again, for a new run.
func replay(t *turn, id, newRun string) (Change, Taken, error) {
	d, ok := t.s.Dispatches[id]
	switch {
	case !ok:
		return Change{}, Taken{}, wrap("dispatch", id, ErrNotFound)
	case d.RunID == newRun:
		return Change{}, t.taken(id), nil
	case d.Status != DeadLetter:
		return Change{}, Taken{}, wrap("dispatch", id, &ConflictError{Expected: 0, Actual: 1})
	case t.head.Queued >= t.depth:
		return Change{}, Taken{}, wrap("thread", t.head.Thread, ErrFull)
	case t.s.Duplicate != "":
		return Change{}, Taken{}, wrap("dispatch", id, ErrExists)
	}
	old := t.s.Runs[d.RunID]
	d.Status, d.Attempts, d.Epoch, d.RunID, d.End = Queued, 0, t.head.Epoch, newRun, ""
	d.AvailableAt, d.Holding = t.now, false
	t.putRun(Run{
		ID: newRun, Thread: d.Thread, Agent: old.Agent, Parent: old.Parent, Status: RunCreated, Input: old.Input, CreatedAt: t.now,
	})
	t.put(cleared(d))
	t.out.Dispatch, t.out.Signal = id, true
	return t.sooner(d), t.taken(id), nil
}

// discard makes a dead letter a cancelled dispatch, which is dropped like others.
func discard(t *turn, id string) (Change, error) {
	d, ok := t.s.Dispatches[id]
	switch {
	case !ok:
		return Change{}, wrap("dispatch", id, ErrNotFound)
	case d.Status == Cancelled:
		return Change{}, nil
	case d.Status != DeadLetter:
		return Change{}, wrap("dispatch", id, &ConflictError{Expected: 0, Actual: 1})
	}
	d.Status = Cancelled
	t.put(d)
	return t.keep(), nil
}
