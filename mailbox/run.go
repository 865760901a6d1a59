package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
)

// execution is a dispatch that this process executes.
type execution struct {
	box       *Mailbox
	claimed   state
	hold      hold
	events    *stream
	end       context.CancelCauseFunc
	suspended atomic.Bool
	// renewing is set while its lease is kept.
	renewing atomic.Bool
	// settling is set when its worker is free already. The Mailbox's lock guards it.
	settling bool
	// abandoned is set when its mailbox was closed without it.
	abandoned atomic.Bool
	renew     chan struct{}
	done      chan struct{}
}

// spawn executes a claimed dispatch. A worker was reserved for it. The execution
// outlives the call that led to it, and ends with the Mailbox.
func (m *Mailbox) spawn(k state) {
	x := &execution{
		box: m, claimed: k, hold: k.hold(),
		renew: make(chan struct{}, 1), done: make(chan struct{}),
		events: newStream(m.cfg.Events, m.pump, k.Dispatch.ID, k.Dispatch.Fence, k.First),
	}
	ctx, cancel := context.WithCancelCause(m.base)
	x.end = cancel
	m.mu.Lock()
	m.running = append(m.running, x)
	m.mu.Unlock()
	go x.work(ctx)
}

// work goes from the claim to the settlement.
func (x *execution) work(ctx context.Context) {
	defer x.leave()
	stopListening := x.listen(ctx)
	x.renewing.Store(true)
	over := x.expire()
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		x.keepLease(ctx, over)
	}()
	s := x.execute(ctx)
	x.freeWorker()
	x.share(context.WithoutCancel(ctx))
	stopListening()
	x.cancel(nil)
	<-renewed
	x.settle(context.WithoutCancel(ctx), s)
}

// cancel ends the context of the execution, and its lease is not renewed any more.
func (x *execution) cancel(cause error) {
	x.renewing.Store(false)
	x.end(cause)
}

// share lets other processes read what was sent so far, so that it is there before the end is.
func (x *execution) share(ctx context.Context) {
	if p := x.box.pump; p != nil && x.events.left() {
		ctx, cancel := context.WithTimeout(ctx, min(x.box.cfg.Waits.Live, x.box.cfg.Lease.Duration/2))
		defer cancel()
		p.flush(ctx, x.events)
	}
}

// freeWorker lets another execution begin while this one is settled, unless as many as there are workers are.
func (x *execution) freeWorker() {
	m := x.box
	m.mu.Lock()
	defer m.mu.Unlock()
	if x.settling = m.settling < m.cfg.Limits.Workers; x.settling {
		m.settling++
		m.free(x.claimed.Thread.Tenant)
	}
}

// leave frees the thread and the worker.
func (x *execution) leave() {
	m := x.box
	x.cancel(nil)
	m.mu.Lock()
	m.running = slices.DeleteFunc(m.running, func(o *execution) bool { return o == x })
	x.events.end()
	m.ended.add(x.events)
	if x.settling {
		m.settling--
	} else {
		m.free(x.claimed.Thread.Tenant)
	}
	m.mu.Unlock()
	close(x.done)
	m.work.Done()
}

// execute runs it, unless the thread was interrupted since the claim, and returns how to settle.
func (x *execution) execute(ctx context.Context) settlement {
	request, err := decodeRequest(x.claimed.Dispatch.Request, &x.claimed.Thread)
	if err != nil {
		return x.verdict(ctx, Result{}, err)
	}
	// Commands of other processes since the claim reach the listener; this is for those of this process.
	switch t := x.box.seenThread(ctx, x.hold.Thread); {
	case t.Epoch > x.claimed.Dispatch.Epoch:
		return settlement{Verdict: verdictSupersede, Error: staleText}
	case t.Claim != nil && t.Claim.Token == x.hold.Token && t.Claim.Stop != "":
		return settlement{Verdict: verdictWithdraw, Error: t.Claim.Stop}
	}
	j := &Job{
		Dispatch: x.claimed.Dispatch, Run: x.claimed.Run, Request: request, Fence: x.claimed.Claim.Fence, StartedAt: x.box.now(),
		Attempt: x.claimed.Dispatch.Attempts + 1, Messages: x.claimed.Thread.Messages, x: x,
	}
	inner, end := x.box.observed(ctx, j)
	if request.Timeout > 0 {
		limited, cancel := context.WithTimeoutCause(inner, request.Timeout, fmt.Errorf("%w: %v", ErrTimeout, request.Timeout))
		defer cancel()
		inner = limited
	}
	result, err := x.call(inner, j)
	if err != nil && ctx.Err() == nil {
		err = caused(inner, err)
	}
	if large := x.box.fitsCommit(result.bytes()); large != nil {
		result, err = Result{}, cmp.Or(err, fmt.Errorf("mailbox: result of dispatch %.80q: %w", x.hold.Dispatch, large))
	}
	s := x.verdict(ctx, result, err)
	end(outcomeBy(s.Verdict, err), caused(ctx, err))
	return s
}

// caused adds to the error of an execution why it had to end, if it had to.
func caused(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// call runs the runtime; a panic is an error.
func (x *execution) call(ctx context.Context, j *Job) (result Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			x.box.cfg.Logger.ErrorContext(ctx, "mailbox_runtime_panicked", "dispatch", x.hold.Dispatch, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("mailbox: dispatch %.80q: runtime panicked: %v", x.hold.Dispatch, p)
		}
	}()
	return x.box.cfg.Runtime.Run(ctx, j)
}

// Classify reports whether an error is worth another attempt: any is, unless it is
// [ErrPermanent] or [ErrInvalid]. [ErrRefused] is no failure.
func Classify(err error) Outcome {
	switch {
	case err == nil, errors.Is(err, ErrRefused):
		return outcomeCompleted
	case errors.Is(err, ErrPermanent), errors.Is(err, ErrInvalid):
		return outcomePermanentError
	default:
		return outcomeTransientError
	}
}

// verdict returns how to settle what an execution came to.
func (x *execution) verdict(ctx context.Context, result Result, err error) settlement {
	cause := context.Cause(ctx)
	if err != nil && (errors.Is(cause, ErrShutdown) || errors.Is(cause, ErrPaused)) {
		return settlement{Verdict: verdictGiveBack}
	}
	s := settlement{Verdict: verdictAck, Result: result}
	s.Result.Status = cmp.Or(s.Result.Status, RunDone)
	if errors.Is(cause, ErrStopped) && (err != nil || result.Termination == TerminationCancelled) {
		s.Verdict, s.Error = verdictWithdraw, cause.Error()
		s.Result.Termination = cmp.Or(result.Termination, TerminationCancelled)
		return s
	}
	if err == nil {
		return s
	}
	if errors.Is(err, ErrRefused) {
		s.Error = err.Error()
		x.events.send(EventRefused, []byte(s.Error))
		return s
	}
	s.Error, s.Result.Error = err.Error(), err.Error()
	x.events.send(EventFailed, []byte(s.Error))
	var later *postponed
	if errors.As(err, &later) && !later.counts && x.box.polled() {
		return settlement{Verdict: verdictPostpone, RetryAt: later.at, Error: s.Error, Result: Result{Status: RunWaiting, Wait: later.wait}}
	}
	if Classify(err) == outcomePermanentError {
		s.Verdict, s.Result.Status, s.Result.Termination = verdictBury, RunDone, TerminationError
		return s
	}
	s.Verdict = verdictRetry
	s.RetryAt = x.box.now().Add(doubled(x.box.cfg.Retry.Delay, x.box.cfg.Retry.MaxDelay, x.claimed.Dispatch.Attempts, 6))
	if later != nil {
		s.RetryAt = later.at
	}
	return s
}

// settle ends the claim, and tries until it has or its lease is over.
func (x *execution) settle(ctx context.Context, s settlement) {
	m := x.box
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Lease.Duration)
	defer cancel()
	for attempt := 1; ; attempt++ {
		k, err := m.settle(ctx, x.hold, s)
		if err == nil || errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound) {
			if d := k.Dispatch; d.Token == x.hold.Token && d.Status.Terminal() {
				x.events.send(EventSettled, []byte(d.Status)) // another process that had it afterwards sends the end itself
			}
			if err != nil && k.Dispatch.Status != Superseded {
				m.cfg.Logger.WarnContext(ctx, "mailbox_settlement_refused", "thread", x.hold.Thread, "dispatch", x.hold.Dispatch, "error", err)
			}
			if err != nil || !k.Thread.DueAt.IsZero() {
				m.wake()
			}
			return
		}
		m.warn(ctx, "mailbox_settlement_failed", err, "thread", x.hold.Thread, "dispatch", x.hold.Dispatch, "attempt", attempt)
		if !wait(ctx, doubled(m.cfg.Retry.Delay, m.cfg.Lease.Renew, attempt, 16)) {
			return // the lease runs out, and another process finds what the run came to
		}
	}
}

// wait waits, or less if the channel receives, and reports whether ctx was not done.
func wait(ctx context.Context, d time.Duration, early ...<-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-append(early, nil)[0]:
	case <-ctx.Done():
		return false
	}
	return true
}
