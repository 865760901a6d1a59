package mailbox

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// claimRequest asks for the lease of a thread.
type claimRequest struct {
	// Token is new for each attempt to claim.
	Token string
	Owner string
	Lease time.Duration
	// Instance names the execution.
	Instance string
	// NewRun is the id of the run that a dispatch gets whose own has ended without it; Instance when empty.
	NewRun string
}

// claim claims a thread for the first dispatch in its queue that is due. It is false when there is none, or the thread is claimed.
func (q *queue) claim(ctx context.Context, thread string, r claimRequest) (s state, ok bool, err error) {
	if r.Token == "" || r.Lease <= 0 {
		return state{}, false, wrap("claim of thread", thread, fmt.Errorf("%w: a claim needs a token and a lease", ErrInvalid))
	}
	ctx, end := q.observe(ctx, Operation{Name: "claim", Thread: thread})
	defer func() { end(!ok, err) }()
	known := cmp.Or(q.memory.get(thread), new(seen))
	defer func() { q.memory.keep(thread, known) }()
	for more := true; more && err == nil; {
		err = q.transition(ctx, thread, need{next: true, requests: true, known: known}, func(t *turn) error {
			var won string
			won, more = claimNext(t, r)
			s, ok = t.state(won), won != ""
			return nil
		})
	}
	return s, ok && err == nil, err
}

// claimNext claims the thread for the next dispatch. It returns which, or none; once more is set when it settled one that needs no execution.
func claimNext(t *turn, r claimRequest) (claimed string, more bool) {
	if c := t.thread.Claim; c != nil {
		if c.Token == r.Token {
			return c.Dispatch, false
		}
		return "", false
	}
	ready, _ := t.ready()
	if !ready || t.now.Before(t.thread.ReservedUntil) || !t.thread.PausedAt.IsZero() {
		t.correct()
		return "", false
	}
	switch d := t.dispatches[t.next]; {
	case d.Epoch < t.thread.Epoch:
		t.supersede(d, staleText)
	case t.ended(d):
		t.acknowledge(d, endSettled)
	case t.late(d):
		d.LastError = lateText
		t.acknowledge(d, endSettled)
	default:
		t.claim(t.revived(d, r), r)
		return d.ID, false
	}
	t.free()
	return "", true
}

// lateText is recorded with decisions that come after the end of their run.
const lateText = "refused: the run had ended before the decision came to it"

// late reports whether a dispatch brings nothing but decisions for a run that has ended: no other run waits for them.
func (t *turn) late(d Dispatch) bool {
	if t.runs[d.RunID].Status != RunDone {
		return false
	}
	r, err := decodeRequest(d.Request, &t.thread)
	return err == nil && r.decides()
}

// revived gives a dispatch a new run if its own has ended without it, as that of two messages for a run that waited: what it
// brings is not lost, and the run that ended stays as it is.
func (t *turn) revived(d Dispatch, r claimRequest) Dispatch {
	id := cmp.Or(r.NewRun, r.Instance)
	old, ok := t.runs[d.RunID]
	if !ok || old.Status != RunDone || id == "" {
		return d
	}
	d.RunID = id
	t.putRun(Run{ID: id, Thread: d.Thread, Agent: old.Agent, Parent: old.Parent, Result: Result{Status: RunCreated}, RunTimes: RunTimes{CreatedAt: t.now}})
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
	t.write(due, rankOf(due, priorityDefault))
}

// ended reports whether the run of a dispatch came to an end, or to wait, with this dispatch: only the acknowledgement is missing.
func (t *turn) ended(d Dispatch) bool {
	r, ok := t.runs[d.RunID]
	return ok && r.Dispatch == d.ID && (r.Status == RunDone || r.Status == RunWaiting && !r.Ref().Postponed())
}

// acknowledge ends a dispatch whose run came to an end before.
func (t *turn) acknowledge(d Dispatch, end string) {
	r := t.runs[d.RunID]
	d.RunStatus, d.Termination, d.Response, d.RunError = r.Status, r.Termination, r.Response, r.Error
	t.settled(d, Acked, end)
}

// claim gives the thread to a dispatch.
func (t *turn) claim(d Dispatch, r claimRequest) {
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

// extend moves the end of a lease to lease from now. A claim whose thread was interrupted is not extended; its holder may still write and
// settle until the lease is over.
func (q *queue) extend(ctx context.Context, h hold, lease time.Duration) (c Claim, err error) {
	_, err = q.change(ctx, Operation{Name: "lease_renewal", Thread: h.Thread, Dispatch: h.Dispatch}, need{}, func(t *turn) (_ bool, err error) {
		c, err = extend(t, h, lease)
		return true, err
	})
	return c, err
}

func extend(t *turn, h hold, lease time.Duration) (Claim, error) {
	if err := t.held(h); err != nil {
		return Claim{}, err
	}
	if d := t.dispatches[h.Dispatch]; d.Epoch < t.thread.Epoch {
		return *t.thread.Claim, &conflictError{expected: d.Epoch, actual: t.thread.Epoch}
	}
	t.thread.Claim.Until = t.now.Add(lease)
	t.write(time.Time{}, 0)
	c := *t.thread.Claim
	c.Paused = !t.thread.PausedAt.IsZero()
	return c, nil
}

// held refuses a claim that is not that of the thread.
func (t *turn) held(h hold) error {
	if _, ok := t.dispatches[h.Dispatch]; !ok {
		return about(h.Dispatch, ErrNotFound)
	}
	if c := t.thread.Claim; c == nil || c.Token != h.Token || c.Dispatch != h.Dispatch {
		return about(h.Dispatch, wrongToken())
	}
	return nil
}

// about names the dispatch in an error of a rule.
func about(dispatch string, err error) error { return fmt.Errorf("dispatch %.80q: %w", dispatch, err) }

// expire takes a thread from a holder whose lease is over. It returns the dispatch, as it is now, or false.
func (q *queue) expire(ctx context.Context, thread string) (s state, ok bool, err error) {
	ok, err = q.change(ctx, Operation{Name: "reclaim_dispatch", Thread: thread}, need{next: true}, func(t *turn) (bool, error) {
		id := expire(t)
		s = t.state(id)
		return id != "", nil
	})
	return s, ok, err
}

// expire returns the dispatch of the claim that is over.
func expire(t *turn) string {
	c := t.thread.Claim
	if c == nil || !t.now.After(c.Until.Add(t.skew)) {
		return ""
	}
	d, ok := t.dispatches[c.Dispatch]
	switch {
	case !ok: // it cannot be: claimed dispatches are never dropped
	case t.ended(d):
		t.acknowledge(d, endExpired)
	case d.Epoch < t.thread.Epoch:
		t.supersede(d, staleText)
	case c.Stop != "":
		d.LastError = c.Stop
		t.cancelled(d, endExpired)
	default:
		t.failed(d, expiredText, t.now, false)
		d = t.dispatches[d.ID]
		d.End = endExpired
		t.put(d)
	}
	t.free()
	return d.ID
}

// lapse ends the run of a thread whose time to wait is over. It returns the run, or nothing.
func (q *queue) lapse(ctx context.Context, thread string) (run string, err error) {
	_, err = q.change(ctx, Operation{Name: "lapse", Thread: thread}, need{next: true}, func(t *turn) (bool, error) {
		run = lapse(t)
		return run != "", nil
	})
	return run, err
}

// lapse ends a run whose time to wait is over. What is queued for later came too late for it; what is due, or was and is to be tried
// again, came in time.
func lapse(t *turn) string {
	run, ok := t.runs[t.thread.Open.ID]
	if !ok || !t.thread.lapsed(t.now) || t.inTime() {
		return ""
	}
	t.finishRun(Dispatch{ID: run.Dispatch, RunID: run.ID}, TerminationCancelled, lapsedText+run.Wait)
	t.write(t.later, rankOf(t.later, priorityDefault))
	return run.ID
}

const lapsedText = "nothing came in time for which it waited: "

// lapsed reports whether the open run has waited long enough, unless something came in time. A request for which the thread is reserved may be
// what it waits for.
func (t *Thread) lapsed(now time.Time) bool {
	open := &t.Open
	return t.Claim == nil && t.PausedAt.IsZero() && !now.Before(t.ReservedUntil) && open.Status == RunWaiting && !open.WaitUntil.IsZero() && !open.WaitUntil.After(now)
}
