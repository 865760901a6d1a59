package mailbox

import (
	"cmp"
	"time"
)

// Texts of what the mailbox decides by itself.
const (
	staleText   = "queued dispatch superseded by newer dispatch epoch"
	deadText    = "mailbox dispatch dead-lettered"
	expiredText = "the lease ran out"
)

// Verdict is what becomes of a claimed dispatch.
type Verdict string

// Verdicts.
const (
	// Ack: it is done, however the run came out.
	Ack Verdict = "ack"
	// Retry: it failed, and may be tried again; after the last attempt it is a dead letter.
	Retry Verdict = "retry"
	// Bury: it failed and will always fail.
	Bury Verdict = "dead_letter"
	// GiveBack: it was not carried out and is for somebody else. It costs no attempt.
	GiveBack Verdict = "release"
	// Withdraw: it was cancelled while it was carried out.
	Withdraw Verdict = "cancel"
	// Supersede: something newer takes its place.
	Supersede Verdict = "supersede"
)

// Settlement ends a claim.
type Settlement struct {
	Verdict Verdict
	// RetryAt is when a retry is due.
	RetryAt time.Time
	// Error says what went wrong, why it was superseded, or what of it was refused.
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
}

func settleNeed(h Hold, now time.Time) Need {
	return Need{Dispatches: []string{h.Dispatch}, Next: true, Now: now, RunsOf: true}
}

// settle ends a claim. A claim whose thread was interrupted ends as superseded, and
// that is an error, too; what the run had come to is kept.
func settle(t *turn, h Hold, s Settlement) (Change, Taken, error) {
	d, ok := t.s.Dispatches[h.Dispatch]
	switch {
	case !ok:
		return Change{}, Taken{}, wrap("dispatch", h.Dispatch, ErrNotFound)
	case d.Token == h.Token && d.End == EndSettled || d.Token == h.Token && d.End == EndReleased && s.Verdict == GiveBack:
		return Change{}, t.taken(d.ID), t.staleness(d, s)
	case d.Token == h.Token && d.End == EndExpired && d.Status == Queued && s.Verdict == Ack && t.head.Claim == nil && d.Epoch == t.head.Epoch:
		// The lease ran out, and nobody has begun anew: the work is done.
	default:
		if err := t.holds(h); err != nil {
			return Change{}, t.taken(d.ID), err
		}
	}
	t.record(&d, s)
	if d.Epoch < t.head.Epoch && s.Verdict != Supersede {
		t.supersede(d, cmp.Or(s.Error, staleText))
		return t.free(), t.taken(d.ID), &ConflictError{Expected: d.Epoch, Actual: t.head.Epoch}
	}
	t.apply(d, s)
	return t.free(), t.taken(d.ID), nil
}

// staleness is the error that a settlement got the first time.
func (t *turn) staleness(d Dispatch, s Settlement) error {
	if d.Status == Superseded && s.Verdict != Supersede {
		return &ConflictError{Expected: d.Epoch, Actual: t.head.Epoch}
	}
	return nil
}

func (t *turn) apply(d Dispatch, s Settlement) {
	stop := ""
	if t.head.Claim != nil {
		stop = t.head.Claim.Stop
	}
	switch {
	case s.Verdict == Ack:
		d.LastError = cmp.Or(s.Error, d.LastError)
		t.settled(d, Acked, EndSettled)
	case s.Verdict == Supersede:
		t.supersede(d, s.Error)
	case s.Verdict == Withdraw, stop != "":
		d.LastError = cmp.Or(s.Error, stop)
		t.settled(d, Cancelled, EndSettled)
		t.finishRun(d, TerminationCancelled, "")
	case s.Verdict == GiveBack:
		d.Status, d.End, d.AvailableAt = Queued, EndReleased, t.now
		t.put(cleared(d))
	default:
		t.failed(d, s.Error, s.RetryAt, s.Verdict == Bury)
	}
}

// failed counts an attempt that failed: the dispatch is queued again, or is a dead letter.
func (t *turn) failed(d Dispatch, text string, at time.Time, final bool) {
	d.Attempts++
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

// cleared takes the result of an execution off a dispatch that is queued again.
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
	run, ok := t.s.Runs[d.RunID]
	if !ok || run.Status == RunDone || s.Verdict == Retry || s.Verdict == GiveBack {
		return
	}
	t.standing(run, r)
}

// finishRun ends the run of a dispatch, if it has not ended.
func (t *turn) finishRun(d Dispatch, termination, failure string) {
	run, ok := t.s.Runs[d.RunID]
	if !ok || run.Status == RunDone || run.Status == RunWaiting && run.Dispatch != d.ID {
		return // it has ended, or waits since an earlier dispatch and goes on waiting
	}
	run.Status, run.Termination, run.Error = RunDone, termination, failure
	run.Wait, run.WaitUntil, run.FinishedAt = "", time.Time{}, t.now
	run.Dispatch = d.ID
	run.Session = cmp.Or(d.Instance, run.Session)
	t.putRun(run)
}

// expired is the dispatch of a claim, if an earlier try of this expiry ended it.
func (t *turn) expired(c Claim) string {
	d, ok := t.s.Dispatches[c.Dispatch]
	if !ok || c.Token == "" || d.Token != c.Token || d.Status == Claimed || !d.UpdatedAt.Equal(t.now) {
		return ""
	}
	return d.ID
}

// expire takes the thread from a holder whose lease is over. It says whether it did,
// for which dispatch.
func expire(t *turn) (out Change, expired string) {
	c := t.head.Claim
	if c == nil || !t.now.After(c.Until.Add(t.skew)) {
		return Change{}, ""
	}
	d, ok := t.s.Dispatches[c.Dispatch]
	if !ok {
		// It cannot be: claimed dispatches are never dropped.
		return t.free(), ""
	}
	switch {
	case t.ended(d):
		t.acknowledge(d, EndExpired)
	case d.Epoch < t.head.Epoch:
		t.supersede(d, staleText)
	case c.Stop != "":
		d.LastError = c.Stop
		t.settled(d, Cancelled, EndExpired)
		t.finishRun(d, TerminationCancelled, "")
	default:
		t.failed(d, expiredText, t.now, false)
		d = t.s.Dispatches[d.ID]
		d.End = EndExpired
		t.put(d)
	}
	return t.free(), d.ID
}
