package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-dev/mortise/store"
)

// Submission is what became of a request.
type Submission struct {
	Dispatch string
	Run      string
	Thread   string
	// Running is set when this process has claimed the thread for the request at once.
	Running bool
	// Repeated is set when it was there already, under the same idempotency key.
	Repeated bool
	// Events are those of the dispatch, see [Mailbox.Attach]. There are none yet of one that is queued in a transaction.
	Events *Feed
	// Superseded were queued, and yielded to a foreground request.
	Superseded []Dispatch
	// Err is why one of several requests was refused, in the answer of [Mailbox.SubmitBatch] alone: other calls return the error.
	Err error
}

// Submit starts a run in the foreground. What the thread does is interrupted; what users have queued for it is superseded, and returned.
// It fails with [ErrBusy], and queues nothing, when the run before does not yield in time. A request that brings nothing but decisions interrupts nothing: it fails with [ErrBusy]
// while the thread is claimed, since the run may be past what they are about, and [Mailbox.Decide] is for a run under way.
func (m *Mailbox) Submit(ctx context.Context, r Request) (Submission, error) {
	if err := cmp.Or(m.executes(), m.open()); err != nil {
		return Submission{}, err
	}
	r, err := r.complete(m.cfg.NewID)
	if err != nil {
		return Submission{}, err
	}
	e, err := m.entry(r, true)
	if err != nil {
		return Submission{}, err
	}
	if sub, done, err := m.submitted(ctx, e); done || err != nil {
		return sub, err
	}
	if err := m.allowed(ctx, r); err != nil {
		return Submission{}, err
	}
	if err := m.judge(ctx, &e); err != nil {
		return Submission{}, err
	}
	var interrupted Interruption
	if !r.decides() {
		if interrupted, err = m.yield(ctx, r.Thread, e.ID); err != nil {
			return Submission{}, err
		}
	}
	if interrupted.Found { // the same request has come at the same time
		sub, done, err := m.submitted(ctx, e)
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
	claimed, running, err := m.enqueue(ctx, e, settlement{Verdict: verdictWithdraw, Error: ErrFull.Error()})
	switch {
	case running:
		sub := m.submission(claimed)
		sub.Running, sub.Superseded = true, interrupted.Superseded
		return sub, nil
	case err == nil && claimed.Repeated:
		err = wrap("thread", r.Thread, ErrBusy)
	case err == nil:
		err = wrap("thread", r.Thread, ErrFull)
	}
	return Submission{}, err
}

// enqueue queues an entry, and executes it if it was claimed in the same transition, with the worker that was reserved for it. One that is one
// execution too many is settled otherwise.
func (m *Mailbox) enqueue(ctx context.Context, e entry, otherwise settlement) (s state, running bool, err error) {
	claim := cmp.Or(e.Claim, e.Offer)
	s, err = m.enqueueEntry(ctx, e)
	if claim == nil {
		return s, false, err
	}
	unknown := errors.Is(err, ErrUnknownOutcome) || ctx.Err() != nil && err != nil
	if running = err == nil && s.Holds(claim.Token); running {
		running, err = m.admitted(ctx, s, otherwise)
	}
	if running {
		m.spawn(s) //nolint:contextcheck // see spawn
		return s, true, nil
	}
	m.release(e.Tenant)
	if unknown {
		m.giveBack(ctx, hold{Thread: e.Thread, Dispatch: e.ID, Token: claim.Token})
	}
	return s, false, err
}

// submitted returns what became of a request with the same idempotency key before.
func (m *Mailbox) submitted(ctx context.Context, e entry) (Submission, bool, error) {
	if e.Key == "" {
		return Submission{}, false, nil
	}
	t, d, found, err := m.dispatchOf(ctx, e.Thread, e.ID)
	if err != nil || !found {
		return Submission{}, false, err
	}
	if err := t.admits(e.Tenant); err != nil {
		return Submission{}, false, wrap("request with key", e.Key, err)
	}
	if d.Digest != e.Digest {
		return Submission{}, false, wrap("request with key", e.Key, fmt.Errorf("%w, for another request", ErrExists))
	}
	sub := m.submission(state{Dispatch: d, Repeated: true})
	sub.Running = d.Status == Claimed
	return sub, true, nil
}

func (m *Mailbox) submission(s state) Submission {
	return Submission{Dispatch: s.Dispatch.ID, Run: s.Dispatch.RunID, Thread: s.Dispatch.Thread, Repeated: s.Repeated, Events: m.feed(s.Dispatch.ID)}
}

// SubmitBackground queues a run. It is executed when the thread is free and the time has come, by this process or another one: by this one
// at once if a worker is free and nothing else is queued.
func (m *Mailbox) SubmitBackground(ctx context.Context, r Request) (Submission, error) {
	e, err := m.background(ctx, r)
	if err != nil {
		return Submission{}, err
	}
	e.Offer = m.offer(ctx, &e.Request)
	queued, running, err := m.enqueue(ctx, e, settlement{Verdict: verdictGiveBack})
	if queued.Dispatch.ID == "" { // else it is queued, and what failed is left to the loop
		return Submission{}, err
	}
	if !running && queued.Dispatch.Status == Queued {
		m.wake()
	}
	sub := m.submission(queued)
	sub.Running = running || queued.Repeated && queued.Dispatch.Status == Claimed
	return sub, nil
}

// background makes the entry of a request that is queued in the background.
func (m *Mailbox) background(ctx context.Context, r Request) (entry, error) {
	if err := m.open(); err != nil {
		return entry{}, err
	}
	r, err := r.complete(m.cfg.NewID)
	if err != nil {
		return entry{}, err
	}
	e, err := m.entry(r, false)
	if err == nil {
		err = m.judge(ctx, &e)
	}
	return e, err
}

// offer reserves a worker for a request, so that it is queued and claimed by one transition if its thread is free; nil if there is none.
func (m *Mailbox) offer(ctx context.Context, r *Request) *claimRequest {
	if !m.Running() || m.pauses.has(r.Tenant) || r.At.After(m.now()) {
		return nil
	}
	if claims, total, err := m.held(ctx); err != nil || m.over(claims, total, r.Tenant, 1) || m.reserve(r.Tenant, true) != nil {
		return nil
	}
	claim := m.claimRequest()
	return &claim
}

// giveBack returns a claim that may have been made, in the background: otherwise no process executes it until its lease is over.
func (m *Mailbox) giveBack(ctx context.Context, h hold) {
	ctx, cancel := m.lasting(ctx)
	m.work.Go(func() {
		defer cancel()
		_, err := m.settle(ctx, h, settlement{Verdict: verdictGiveBack})
		m.cfg.Logger.DebugContext(ctx, "mailbox_claim_given_back", "thread", h.Thread, "dispatch", h.Dispatch, "error", err)
	})
}

// SubmitWithin queues a request through another view of the store, as of a transaction that the caller has begun: see pgstore.Store.Within.
// It is executed when that is committed, and never existed if it is rolled back. Nothing is executed before, so that the Submission is not
// Running. After an error the caller rolls back.
func (m *Mailbox) SubmitWithin(ctx context.Context, s store.Store, r Request) (Submission, error) {
	e, err := m.background(ctx, r)
	if err != nil {
		return Submission{}, err
	}
	queued, err := m.within(s).enqueueEntry(ctx, e)
	if err != nil {
		return Submission{}, err
	}
	sub := m.submission(queued)
	sub.Events = nil
	return sub, nil
}

// submitters is how many threads requests are queued for at once.
const submitters = 16

// SubmitBatch queues requests as [Mailbox.SubmitBackground] does, many at a time, those of a thread in their order. It returns what became
// of each, in their order: one that is refused does not keep the others back.
func (m *Mailbox) SubmitBatch(ctx context.Context, list []Request) []Submission {
	out := make([]Submission, len(list))
	threads := map[string][]int{}
	for i := range list {
		thread := "thread " + list[i].Thread
		if list[i].Thread == "" {
			thread = fmt.Sprint(i) // each makes its own
		}
		threads[thread] = append(threads[thread], i)
	}
	var work sync.WaitGroup
	free := make(chan struct{}, submitters)
	for _, places := range threads {
		free <- struct{}{}
		work.Go(func() {
			defer func() { <-free }()
			for _, i := range places {
				sub, err := m.SubmitBackground(ctx, list[i])
				sub.Err = err
				out[i] = sub
			}
		})
	}
	work.Wait()
	return out
}
