package mailbox

import (
	"cmp"
	"context"
	"time"
)

// Texts of what the queue decides by itself.
const (
	staleText   = "queued dispatch superseded by newer dispatch epoch"
	deadText    = "mailbox dispatch dead-lettered"
	expiredText = "the lease ran out"
)

// verdict is what becomes of a claimed dispatch, as metrics name the operation.
type verdict string

// Verdicts.
const (
	// verdictAck: it is done, however the run came out.
	verdictAck verdict = "ack"
	// verdictRetry: it failed, and may be tried again; after the last attempt it is a dead letter.
	verdictRetry verdict = "nack"
	// verdictBury: it failed and will always fail.
	verdictBury verdict = "dead_letter"
	// Postpone: it cannot be executed before a time, as when a provider has a rate limit. It keeps its place, and costs no attempt.
	verdictPostpone verdict = "postpone"
	// verdictGiveBack: it was not executed and is for another process. It costs no attempt.
	verdictGiveBack verdict = "release"
	// Withdraw: it was cancelled while it was executed.
	verdictWithdraw verdict = "cancel_claimed"
	// verdictSupersede: something newer replaces it.
	verdictSupersede verdict = "supersede_claimed"
)

// settlement ends a claim.
type settlement struct {
	Verdict verdict
	// RetryAt is when a retry is due.
	RetryAt time.Time
	// Error is what went wrong, why it was superseded, or what of it was refused.
	Error  string
	Result Result
}

// settle ends a claim. A claim whose thread was interrupted ends as superseded, and that is an error, too; what the run had come to is
// kept.
func (q *queue) settle(ctx context.Context, h hold, s settlement) (out state, err error) {
	s.RetryAt, s.Result = milli(s.RetryAt), s.Result.storable()
	s.Error, s.Result.Error = clip(s.Error), clip(s.Result.Error)
	o := Operation{Name: string(s.Verdict), Thread: h.Thread, Dispatch: h.Dispatch}
	_, err = q.change(ctx, o, need{next: true}, func(t *turn) (bool, error) {
		err := settle(t, h, s)
		out = t.state(h.Dispatch)
		return true, err
	})
	return out, err
}

// settle ends the claim, and returns an error when nothing was settled.
func settle(t *turn, h hold, s settlement) error {
	if err := t.fitsCommit(s.Result.bytes()); err != nil {
		return err
	}
	d := t.dispatches[h.Dispatch]
	mine := d.Token == h.Token && d.ID != ""
	switch {
	case mine && (d.End == endSettled || d.End == endReleased && s.Verdict == verdictGiveBack): // it was settled before
		if d.Status == Superseded && s.Verdict != verdictSupersede {
			t.stale = &conflictError{expected: d.Epoch, actual: t.thread.Epoch}
		}
		return nil
	case mine && d.End == endExpired && d.Status == Queued && s.Verdict == verdictAck && t.thread.Claim == nil && d.Epoch == t.thread.Epoch:
		// The lease ran out, and no process has begun anew: the work is done.
	default:
		if err := t.held(h); err != nil {
			return err
		}
	}
	t.record(&d, s)
	if d.Epoch < t.thread.Epoch && s.Verdict != verdictSupersede {
		t.stale = &conflictError{expected: d.Epoch, actual: t.thread.Epoch}
		t.supersede(d, cmp.Or(s.Error, staleText))
	} else {
		t.apply(d, s)
	}
	t.free()
	return nil
}

func (t *turn) apply(d Dispatch, s settlement) {
	stop := ""
	if t.thread.Claim != nil {
		stop = t.thread.Claim.Stop
	}
	switch {
	case s.Verdict == verdictAck:
		d.LastError = cmp.Or(s.Error, d.LastError)
		t.settled(d, Acked, endSettled)
	case s.Verdict == verdictSupersede:
		t.supersede(d, s.Error)
	case s.Verdict == verdictWithdraw, stop != "":
		d.LastError = cmp.Or(s.Error, stop)
		t.cancelled(d, endSettled)
	case s.Verdict == verdictGiveBack:
		d.Status, d.End, d.AvailableAt = Queued, endReleased, t.now
		t.put(cleared(d))
		if !t.thread.PausedAt.IsZero() {
			t.suspend(d, WaitPause, time.Time{})
		}
	case s.Verdict == verdictPostpone && d.Postponed < maxPostponed:
		d.Status, d.End, d.AvailableAt, d.Holding, d.LastError = Queued, endSettled, latest(s.RetryAt, t.now), true, s.Error
		d.Postponed++
		t.put(cleared(d))
		t.suspend(d, cmp.Or(s.Result.Wait, WaitRate), d.AvailableAt)
	default:
		t.failed(d, s.Error, s.RetryAt, s.Verdict == verdictBury)
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
		t.settled(d, DeadLetter, endSettled)
		t.finishRun(d, TerminationError, cmp.Or(d.RunError, text, deadText))
		return
	}
	if at.IsZero() {
		at = t.now
	}
	d.Status, d.End, d.AvailableAt, d.Holding = Queued, endSettled, at, true
	t.put(cleared(d))
}

// cleared removes the result of an execution from a dispatch that is queued again.
func cleared(d Dispatch) Dispatch {
	d.RunStatus, d.Termination, d.Response, d.RunError = "", "", "", ""
	d.CompletedAt = time.Time{}
	return d
}

// settled makes a dispatch terminal.
func (t *turn) settled(d Dispatch, status Status, end string) {
	d.Status, d.End, d.CompletedAt, d.Holding = status, end, t.now, false
	t.put(d)
	t.ends = append(t.ends, d.ID)
}

// cancelled cancels a dispatch and its run.
func (t *turn) cancelled(d Dispatch, end string) {
	t.settled(d, Cancelled, end)
	t.finishRun(d, TerminationCancelled, "")
}

// supersede ends a dispatch in favour of a newer one; its run is cancelled.
func (t *turn) supersede(d Dispatch, why string) {
	d.LastError = why
	t.settled(d, Superseded, endSettled)
	t.finishRun(d, TerminationCancelled, "")
}

// record keeps what an execution came to.
func (t *turn) record(d *Dispatch, s settlement) {
	r := s.Result
	if r.Status == "" {
		return
	}
	d.RunStatus, d.Termination, d.Response, d.RunError = r.Status, r.Termination, r.Response, r.Error
	run, ok := t.runs[d.RunID]
	if !ok || run.Status == RunDone || s.Verdict == verdictRetry || s.Verdict == verdictGiveBack || s.Verdict == verdictPostpone {
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
