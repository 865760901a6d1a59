package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/internal/queue"
)

// Submission is what became of a request.
type Submission struct {
	Dispatch string
	Run      string
	Thread   string
	// Running is set when the thread was claimed by this process at once: for the request if it is a foreground
	// one, for what comes first in its queue if not.
	Running bool
	// Repeated is set when it was there already, under the same idempotency key.
	Repeated bool
	// Events are those of the dispatch, see [Mailbox.Attach]. There are none yet of one that is queued in a transaction.
	Events *Feed
	// Superseded were queued, and yielded to a foreground request.
	Superseded []Dispatch
}

// Submit starts a run in the foreground. What the thread does is interrupted; what users have queued for it is superseded, and returned.
// It fails with [ErrBusy], and queues nothing, when the run before does not yield in time. A request that brings nothing but decisions interrupts nothing: it fails with [ErrBusy]
// while the thread is claimed, since the run may be past what they are about, and [Mailbox.Decide] is for a run under way.
func (m *Mailbox) Submit(ctx context.Context, r Request) (Submission, error) {
	r, err := r.complete(m.cfg.NewID)
	if err != nil {
		return Submission{}, err
	}
	e, err := m.entry(r, true)
	if err != nil {
		return Submission{}, err
	}
	if sub, done, err := m.submitted(ctx, e, r); done || err != nil {
		return sub, err
	}
	if err := m.allowed(ctx, r); err != nil {
		return Submission{}, err
	}
	if err := m.judge(ctx, r, &e, true); err != nil {
		return Submission{}, err
	}
	var interrupted queue.Interruption
	if !r.decides() {
		if interrupted, err = m.yield(ctx, r.Thread, e.ID); err != nil {
			return Submission{}, err
		}
	}
	if interrupted.Found { // the same request has come at the same time
		sub, done, err := m.submitted(ctx, e, r)
		if err == nil && !done {
			err = wrap("request for thread", r.Thread, fmt.Errorf("%w: dispatch %.80q", ErrExists, e.ID))
		}
		return sub, err
	}
	claim := m.claimRequest()
	e.Claim, e.Interrupt = &claim, interrupted.ID
	if err := m.reserve(r.Tenant, false); err != nil {
		return Submission{}, err
	}
	ctx, cancel := m.lasting(ctx)
	defer cancel()
	claimed, err := m.queue.Enqueue(ctx, e)
	if err != nil || !claimed.Holds(claim.Token) {
		m.release(r.Tenant)
		if err == nil {
			err = wrap("thread", r.Thread, ErrBusy)
		}
		return Submission{}, err
	}
	if ok, err := m.admitted(ctx, claimed, queue.Settlement{Verdict: queue.Withdraw, Error: ErrFull.Error()}); err != nil || !ok {
		m.release(r.Tenant)
		return Submission{}, wrap("thread", r.Thread, cmp.Or(err, ErrFull))
	}
	m.spawn(claimed) //nolint:contextcheck // see spawn
	sub := m.submission(claimed)
	sub.Running, sub.Superseded = true, interrupted.Superseded
	return sub, nil
}

// submitted returns what became of a request with the same idempotency key before.
func (m *Mailbox) submitted(ctx context.Context, e queue.Entry, r Request) (Submission, bool, error) {
	if r.Key == "" {
		return Submission{}, false, nil
	}
	t, d, found, err := m.queue.DispatchOf(ctx, e.Thread, e.ID)
	if err != nil || !found {
		return Submission{}, false, err
	}
	if err := t.Admits(r.Tenant); err != nil {
		return Submission{}, false, wrap("request with key", r.Key, err)
	}
	if d.Digest != e.Digest {
		return Submission{}, false, wrap("request with key", r.Key, fmt.Errorf("%w, for another request", ErrExists))
	}
	sub := m.submission(queue.State{Dispatch: d, Repeated: true})
	sub.Running = d.Status == Claimed
	return sub, true, nil
}

func (m *Mailbox) submission(s queue.State) Submission {
	return Submission{Dispatch: s.Dispatch.ID, Run: s.Dispatch.RunID, Thread: s.Dispatch.Thread, Repeated: s.Repeated, Events: m.feed(s.Dispatch.ID)}
}

// SubmitBackground queues a run. It is executed when the thread is free and
// the time has come, by this process or another one.
func (m *Mailbox) SubmitBackground(ctx context.Context, r Request) (Submission, error) {
	offer := m.offer(r)
	queued, err := m.enqueue(ctx, m.queue, r, offer)
	if err == nil && offer != nil && queued.Holds(offer.Token) {
		m.spawn(queued) //nolint:contextcheck // see spawn
		sub := m.submission(queued)
		sub.Running = true
		return sub, nil
	}
	if offer != nil {
		m.release(r.Tenant)
	}
	if err != nil {
		return Submission{}, err
	}
	sub := m.submission(queued)
	if queued.Dispatch.Status != Queued {
		sub.Running = queued.Dispatch.Status == Claimed
		return sub, nil
	}
	if queued.Thread.Claim == nil && !queued.Dispatch.AvailableAt.After(m.queue.Now()) {
		sub.Running = m.dispatchNow(ctx, queued)
		sub.Events.follow()
	}
	m.wake()
	return sub, nil
}

// offer reserves a worker for a request, so that it is queued and claimed by one transition if its thread is free; nil if there is none.
func (m *Mailbox) offer(r Request) *queue.ClaimRequest {
	if m.shared() || !m.Running() || m.pauses.has(r.Tenant) || r.At.After(m.queue.Now()) || m.reserve(r.Tenant, true) != nil {
		return nil
	}
	claim := m.claimRequest()
	return &claim
}

// enqueue queues a request in the background.
func (m *Mailbox) enqueue(ctx context.Context, q *queue.Queue, r Request, offer *queue.ClaimRequest) (queue.State, error) {
	r, err := r.complete(m.cfg.NewID)
	if err != nil {
		return queue.State{}, err
	}
	e, err := m.entry(r, false)
	if err != nil {
		return queue.State{}, err
	}
	if err := m.judge(ctx, r, &e, false); err != nil {
		return queue.State{}, err
	}
	e.Offer = offer
	s, err := q.Enqueue(ctx, e)
	if offer != nil && (errors.Is(err, ErrUnknownOutcome) || ctx.Err() != nil && err != nil) {
		m.giveBack(ctx, queue.Hold{Thread: e.Thread, Dispatch: e.ID, Token: offer.Token})
	}
	return s, err
}

// giveBack returns a claim that may have been made, in the background: otherwise no process executes it until its lease is over.
func (m *Mailbox) giveBack(ctx context.Context, h queue.Hold) {
	ctx, cancel := m.lasting(ctx)
	m.work.Go(func() {
		defer cancel()
		_, err := m.queue.Settle(ctx, h, queue.Settlement{Verdict: queue.GiveBack})
		m.cfg.Logger.DebugContext(ctx, "mailbox_claim_given_back", "thread", h.Thread, "dispatch", h.Dispatch, "error", err)
	})
}

// dispatchNow claims a thread if a worker is free, or waits for the loop that does, and reports whether it is executed here. What fails is left to
// the loop.
func (m *Mailbox) dispatchNow(ctx context.Context, after queue.State) bool {
	if !m.Running() {
		return false
	}
	if ok, err := m.takeOne(ctx, after); ok || err != nil {
		return ok
	}
	m.mu.Lock()
	t := m.claiming[after.Thread.ID]
	m.mu.Unlock()
	if t != nil {
		select {
		case <-t.over:
			return t.done
		case <-ctx.Done():
			return false
		}
	}
	return m.execution(after.Thread.ID) != nil || m.streamOf(after.Dispatch.ID) != nil // the loop may have been first, and the execution may be over
}
