package mailbox

import (
	"cmp"
	"context"
	"time"
)

// interruptRequest describes how a thread is interrupted.
type interruptRequest struct {
	// ID names it and is new for each; made when empty.
	ID string
	// Keep reports what of the queue stays; nil keeps nothing.
	Keep func(Dispatch) bool
	// Reserve keeps the thread free that long for an entry with the same Interrupt id.
	Reserve time.Duration
	// Unless is the id of a dispatch: when the thread has it, nothing is interrupted.
	Unless string
}

// Interruption is what an interrupt came to.
type Interruption struct {
	// ID names the interrupt, Epoch is the thread's new one.
	ID    string
	Epoch uint64
	// Active is what the thread is claimed for; it is stale now.
	Active *Dispatch
	// Superseded were queued, and Kept still are.
	Superseded []Dispatch
	Kept       int
	// Found is set when nothing was interrupted, since the thread had the request already.
	Found bool
}

// interruptThread makes what a thread is claimed for stale, and supersedes what is queued for it.
func (q *queue) interruptThread(ctx context.Context, thread string, i interruptRequest) (out Interruption, err error) {
	i.ID = cmp.Or(i.ID, q.newID())
	n := need{queued: true, dispatches: []string{i.Unless}}
	_, err = q.change(ctx, Operation{Name: "interrupt", Thread: thread}, n, func(t *turn) (bool, error) {
		if t.thread.Interrupt != i.ID { // else it was made, and its answer lost: out is what it came to
			out = interrupt(t, i)
		}
		return true, nil
	})
	return out, err
}

// interrupt makes what is claimed stale and supersedes what is queued, except for what is to be kept.
func interrupt(t *turn, i interruptRequest) (out Interruption) {
	out.ID = i.ID
	if _, found := t.dispatches[i.Unless]; found {
		out.Epoch, out.Found = t.thread.Epoch, true
		return out
	}
	if c := t.thread.Claim; c != nil {
		active := t.dispatches[c.Dispatch]
		out.Active = &active
	}
	reserved := t.now.Before(t.thread.ReservedUntil)
	t.thread.Epoch++
	t.recall = true
	t.thread.Interrupt, t.thread.ReservedUntil = i.ID, time.Time{}
	if i.Reserve > 0 {
		t.thread.ReservedUntil = t.now.Add(i.Reserve)
	}
	out.Epoch = t.thread.Epoch
	t.clear(i.Keep, reserved, &out)
	return out
}

// clear supersedes what is queued, except for what is to be kept. Held is set if that had to wait for a reservation.
func (t *turn) clear(keep func(Dispatch) bool, held bool, out *Interruption) {
	for _, id := range t.queued {
		d := t.dispatches[id]
		d.Epoch = t.thread.Epoch
		if keep != nil && keep(d) {
			t.put(d)
			out.Kept++
			continue
		}
		held = held || d.Holding
		t.supersede(d, staleText)
		out.Superseded = append(out.Superseded, t.dispatches[id])
	}
	switch {
	case held && out.Kept > 0:
		t.released()
	case out.Kept > 0 || t.thread.Claim != nil:
		t.save()
	default:
		t.write(t.later, 0)
	}
}

// released ends a turn that ended a dispatch which held up those behind it: the thread is to be polled now.
func (t *turn) released() {
	switch {
	case t.thread.Claim != nil:
		t.save()
	case t.thread.Queued == 0:
		// A run that waits may have been in time because of it, and is not any more.
		t.notify = true
		t.write(t.thread.DueAt, t.thread.Rank)
	default:
		t.notify = true
		t.write(t.now, rankOf(t.now, priorityDefault))
	}
}
