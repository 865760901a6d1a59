package queue

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// ClaimRequest asks for the lease of a thread.
type ClaimRequest struct {
	// Token is new for each attempt to claim.
	Token string
	Owner string
	Lease time.Duration
	// Instance names the execution.
	Instance string
	// NewRun is the id of the run that a dispatch gets whose own has ended without it; Instance when empty.
	NewRun string
	// After is what this process made of the thread right before, if it did: then the thread is not read again.
	After State
}

// Claim claims a thread for the first dispatch in its queue that is due. It is false when there is none, or the thread is claimed.
func (q *Queue) Claim(ctx context.Context, thread string, r ClaimRequest) (s State, ok bool, err error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpClaim, Thread: thread})
	defer func() { end(!ok, err) }()
	if r.Token == "" || r.Lease <= 0 {
		return State{}, false, wrap("claim of thread", thread, fmt.Errorf("%w: a claim needs a token and a lease", ErrInvalid))
	}
	known, held := r.After.seen, q.held(thread)
	if known == nil {
		known = cmp.Or(held, q.recent.get(thread), new(seen))
	}
	q.holds.Store(thread, known)
	defer func() {
		if !ok && held == nil {
			q.holds.CompareAndDelete(thread, known)
		}
	}()
	n := need{next: true, requests: true}
	for more := true; more; {
		err = q.transition(ctx, thread, known, n, func(t *turn) error {
			var won string
			won, more = claimNext(t, r)
			s, ok = t.state(won), won != ""
			return nil
		})
		if err != nil {
			return State{}, false, err
		}
	}
	return s, ok, nil
}

// claimNext claims the thread for the next dispatch. It returns which, or none; once more is set when it settled one that needs no execution.
func claimNext(t *turn, r ClaimRequest) (claimed string, more bool) {
	if c := t.thread.Claim; c != nil {
		if c.Token == r.Token {
			return c.Dispatch, false
		}
		return "", false
	}
	if t.now.Before(t.thread.ReservedUntil) || !t.thread.PausedAt.IsZero() {
		t.correct()
		return "", false
	}
	ready, _ := t.ready()
	if !ready {
		t.correct()
		return "", false
	}
	switch d := t.dispatches[t.next]; {
	case d.Epoch < t.thread.Epoch:
		t.supersede(d, StaleText)
	case t.ended(d):
		t.acknowledge(d, EndSettled)
	default:
		t.claim(t.revived(d, r), r)
		return d.ID, false
	}
	t.free()
	return "", true
}

// revived gives a dispatch a new run if its own has ended without it, as that of two messages for a run that waited: what it
// brings is not lost, and the run that ended stays as it is.
func (t *turn) revived(d Dispatch, r ClaimRequest) Dispatch {
	id := cmp.Or(r.NewRun, r.Instance)
	old, ok := t.runs[d.RunID]
	if !ok || old.Status != RunDone || id == "" {
		return d
	}
	d.RunID = id
	t.putRun(Run{ID: id, Thread: d.Thread, Agent: old.Agent, Parent: old.Parent, Status: RunCreated, CreatedAt: t.now})
	return d
}

// correct writes when the thread is due, if it was due for nothing.
func (t *turn) correct() {
	if t.thread.DueAt.IsZero() || t.thread.DueAt.After(t.now) {
		return
	}
	due := t.later
	if t.next != "" && t.now.Before(t.thread.ReservedUntil) {
		due = t.thread.ReservedUntil
	}
	t.write(due, rankOf(due, PriorityDefault))
}

// ended reports whether the run of a dispatch came to an end, or to wait, with this dispatch: only the acknowledgement is missing.
func (t *turn) ended(d Dispatch) bool {
	r, ok := t.runs[d.RunID]
	return ok && r.Dispatch == d.ID && (r.Status == RunDone || r.Status == RunWaiting && !r.Ref().Postponed())
}

// acknowledge ends a dispatch whose run came to an end before.
func (t *turn) acknowledge(d Dispatch, end ClaimEnd) {
	r := t.runs[d.RunID]
	d.RunStatus, d.Termination, d.Response, d.RunError = r.Status, r.Termination, r.Output, r.Error
	t.settled(d, Acked, end)
}

// claim gives the thread to a dispatch.
func (t *turn) claim(d Dispatch, r ClaimRequest) {
	if d.Token == "" {
		t.first = d.ID
	}
	t.thread.Fence++
	t.thread.ReservedUntil = time.Time{}
	t.thread.Claim = &Claim{Dispatch: d.ID, Token: r.Token, Fence: t.thread.Fence, Owner: r.Owner, Until: t.now.Add(r.Lease)}
	d.Status, d.Token, d.Fence, d.Owner, d.End = Claimed, r.Token, t.thread.Fence, r.Owner, ""
	d.Instance, d.RunStatus = r.Instance, RunRunning
	d.Termination, d.Response, d.RunError, d.Holding = "", "", "", false
	t.put(d)
	if run, ok := t.runs[d.RunID]; ok {
		run.Status, run.Wait, run.WaitUntil, run.Tickets = RunRunning, "", time.Time{}, nil
		run.Dispatch, run.Session = d.ID, r.Instance
		if run.StartedAt.IsZero() {
			run.StartedAt = t.now
		}
		t.putRun(run)
	}
	t.notify = false
	t.write(time.Time{}, 0)
}
