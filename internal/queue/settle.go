package queue

import (
	"cmp"
	"context"
	"time"
)

// Texts of what the queue decides by itself.
const (
	StaleText   = "queued dispatch superseded by newer dispatch epoch"
	deadText    = "mailbox dispatch dead-lettered"
	expiredText = "the lease ran out"
)

// Verdict is what becomes of a claimed dispatch, as metrics name the operation.
type Verdict string

// Verdicts.
const (
	// Ack: it is done, however the run came out.
	Ack Verdict = OpAck
	// Retry: it failed, and may be tried again; after the last attempt it is a dead letter.
	Retry Verdict = OpNack
	// Bury: it failed and will always fail.
	Bury Verdict = OpDeadLetter
	// Postpone: it cannot be executed before a time, as when a provider has a rate limit. It keeps its place, and costs no attempt.
	Postpone Verdict = OpPostpone
	// GiveBack: it was not executed and is for another process. It costs no attempt.
	GiveBack Verdict = OpRelease
	// Withdraw: it was cancelled while it was executed.
	Withdraw Verdict = OpWithdraw
	// Supersede: something newer replaces it.
	Supersede Verdict = OpSupersede
)

// Settlement ends a claim.
type Settlement struct {
	Verdict Verdict
	// RetryAt is when a retry is due.
	RetryAt time.Time
	// Error is what went wrong, why it was superseded, or what of it was refused.
	Error  string
	Result Result
}

// Result is what a run came to in an execution. Without a Status the run is left as
// its commits made it.
type Result struct {
	Status      RunStatus
	Termination string
	Response    string
	Error       string
	Wait        string
	WaitUntil   time.Time
	// Tickets are the calls that wait for a decision, the first of them. Totals are those of the run, left as they are if they are zero.
	Tickets []Ticket
	Totals  Totals
}

// Settle ends a claim. A claim whose thread was interrupted ends as superseded, and that is an error, too; what the run had come to is
// kept.
func (q *Queue) Settle(ctx context.Context, h Hold, s Settlement) (out State, err error) {
	s.RetryAt, s.Result = milli(s.RetryAt), s.Result.storable()
	s.Error, s.Result.Error = Clip(s.Error), Clip(s.Result.Error)
	over := false
	o := Operation{Name: string(s.Verdict), Thread: h.Thread, Dispatch: h.Dispatch}
	_, err = q.change(ctx, o, need{next: true}, func(t *turn) (bool, error) {
		err := settle(t, h, s)
		out, over = t.state(h.Dispatch), err == nil || t.held(h) != nil
		return true, err
	})
	if over {
		q.memory.keep(h.Thread, q.memory.get(h.Thread), nowFree)
	}
	return out, err
}

// settle ends the claim, and returns an error when nothing was settled.
func settle(t *turn, h Hold, s Settlement) error {
	if err := t.FitsCommit(s.Result.Bytes()); err != nil {
		return err
	}
	d := t.dispatches[h.Dispatch]
	mine := d.Token == h.Token && d.ID != ""
	switch {
	case mine && (d.End == EndSettled || d.End == EndReleased && s.Verdict == GiveBack): // it was settled before
		if d.Status == Superseded && s.Verdict != Supersede {
			t.stale = &ConflictError{Expected: d.Epoch, Actual: t.thread.Epoch}
		}
		return nil
	case mine && d.End == EndExpired && d.Status == Queued && s.Verdict == Ack && t.thread.Claim == nil && d.Epoch == t.thread.Epoch:
		// The lease ran out, and no process has begun anew: the work is done.
	default:
		if err := t.held(h); err != nil {
			return err
		}
	}
	t.record(&d, s)
	if d.Epoch < t.thread.Epoch && s.Verdict != Supersede {
		t.stale = &ConflictError{Expected: d.Epoch, Actual: t.thread.Epoch}
		t.supersede(d, cmp.Or(s.Error, StaleText))
	} else {
		t.apply(d, s)
	}
	t.free()
	return nil
}

func (t *turn) apply(d Dispatch, s Settlement) {
	stop := ""
	if t.thread.Claim != nil {
		stop = t.thread.Claim.Stop
	}
	switch {
	case s.Verdict == Ack:
		d.LastError = cmp.Or(s.Error, d.LastError)
		t.settled(d, Acked, EndSettled)
	case s.Verdict == Supersede:
		t.supersede(d, s.Error)
	case s.Verdict == Withdraw, stop != "":
		d.LastError = cmp.Or(s.Error, stop)
		t.cancelled(d, EndSettled)
	case s.Verdict == GiveBack:
		d.Status, d.End, d.AvailableAt = Queued, EndReleased, t.now
		t.put(cleared(d))
		if !t.thread.PausedAt.IsZero() {
			t.suspend(d, WaitPause, time.Time{})
		}
	case s.Verdict == Postpone && d.Postponed < maxPostponed:
		d.Status, d.End, d.AvailableAt, d.Holding, d.LastError = Queued, EndSettled, latest(s.RetryAt, t.now), true, s.Error
		d.Postponed++
		t.put(cleared(d))
		t.suspend(d, cmp.Or(s.Result.Wait, WaitRate), d.AvailableAt)
	default:
		t.failed(d, s.Error, s.RetryAt, s.Verdict == Bury)
	}
}

// maxPostponed is how often a dispatch may be postponed in a row. After that it counts as failed.
const maxPostponed = 100

// suspend lets the run of a dispatch that is queued again wait.
func (t *turn) suspend(d Dispatch, reason string, until time.Time) {
	if run, ok := t.runs[d.RunID]; ok && run.Status == RunRunning {
		run.Status, run.Wait, run.WaitUntil = RunWaiting, reason, until
		t.putRun(run)
	}
}

// latest returns the later one of two times.
func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// failed counts an attempt that failed: the dispatch is queued again, or is a dead letter.
func (t *turn) failed(d Dispatch, text string, at time.Time, final bool) {
	d.Attempts++
	d.Postponed = 0
	d.LastError = text
	if final || d.Attempts >= d.MaxAttempts {
		t.settled(d, DeadLetter, EndSettled)
		t.finishRun(d, TerminationError, cmp.Or(d.RunError, text, deadText))
		return
	}
	if at.IsZero() {
		at = t.now
	}
	d.Status, d.End, d.AvailableAt, d.Holding = Queued, EndSettled, at, true
	t.put(cleared(d))
}

// cleared removes the result of an execution from a dispatch that is queued again.
func cleared(d Dispatch) Dispatch {
	d.RunStatus, d.Termination, d.Response, d.RunError = "", "", "", ""
	d.CompletedAt = time.Time{}
	return d
}

// settled makes a dispatch terminal.
func (t *turn) settled(d Dispatch, status Status, end ClaimEnd) {
	d.Status, d.End, d.CompletedAt, d.Holding = status, end, t.now, false
	t.put(d)
	t.ends = append(t.ends, d.ID)
}

// cancelled cancels a dispatch and its run.
func (t *turn) cancelled(d Dispatch, end ClaimEnd) {
	t.settled(d, Cancelled, end)
	t.finishRun(d, TerminationCancelled, "")
}

// supersede ends a dispatch in favour of a newer one; its run is cancelled.
func (t *turn) supersede(d Dispatch, why string) {
	d.LastError = why
	t.settled(d, Superseded, EndSettled)
	t.finishRun(d, TerminationCancelled, "")
}

// record keeps what an execution came to.
func (t *turn) record(d *Dispatch, s Settlement) {
	r := s.Result
	if r.Status == "" {
		return
	}
	d.RunStatus, d.Termination, d.Response, d.RunError = r.Status, r.Termination, r.Response, r.Error
	run, ok := t.runs[d.RunID]
	if !ok || run.Status == RunDone || s.Verdict == Retry || s.Verdict == GiveBack || s.Verdict == Postpone {
		return
	}
	t.standing(run, r)
}

// finishRun ends the run of a dispatch, if it has not ended.
func (t *turn) finishRun(d Dispatch, termination, failure string) {
	run, ok := t.runs[d.RunID]
	if !ok || run.Status == RunDone || run.Status == RunWaiting && run.Dispatch != d.ID {
		return // it has ended, or waits since an earlier dispatch and continues to wait
	}
	run.Status, run.Termination, run.Error = RunDone, termination, failure
	run.Wait, run.WaitUntil, run.Tickets, run.FinishedAt = "", time.Time{}, nil, t.now
	run.Dispatch = d.ID
	run.Session = cmp.Or(d.Instance, run.Session)
	t.putRun(run)
}
