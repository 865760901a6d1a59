package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-dev/mortise/internal/queue"
	"github.com/mortise-dev/mortise/store"
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
	r, e, err := m.background(ctx, r)
	if err != nil {
		return Submission{}, err
	}
	var t *claiming
	if m.Running() {
		t = m.beginClaim(r.Thread) // before the loop learns of the dispatch: it would read what this call knows
	}
	if m.offers(r) {
		claim := m.claimRequest()
		e.Offer = &claim
	}
	queued, err := m.queue.Enqueue(ctx, e)
	claimed := e.Offer != nil && m.offered(ctx, e, queued, err)
	sub := m.submission(queued)
	switch d := queued.Dispatch; {
	case err != nil:
		sub = Submission{}
	case claimed:
		sub.Running = true
	case d.Status != Queued:
		sub.Running = d.Status == Claimed
	case queued.Thread.Claim == nil && !d.AvailableAt.After(m.queue.Now()):
		sub.Running = m.dispatchNow(ctx, queued, t)
		sub.Events.follow()
		t = nil
	}
	if t != nil {
		m.endClaim(r.Thread, t, claimed)
	}
	if err == nil && queued.Dispatch.Status == Queued {
		m.wake()
	}
	return sub, err
}

// offers reserves a worker for a request, so that it is queued and claimed by one transition if its thread is free.
func (m *Mailbox) offers(r Request) bool {
	return !m.shared() && m.Running() && !m.pauses.has(r.Tenant) && !r.At.After(m.queue.Now()) && m.reserve(r.Tenant, true) == nil
}

// offered executes what was claimed as it was queued, and reports whether it was. If the answer of the store was lost, the claim may have been
// made: it is given back in the background, since no process executes it otherwise until its lease is over.
func (m *Mailbox) offered(ctx context.Context, e queue.Entry, queued queue.State, err error) bool {
	if err == nil && queued.Holds(e.Offer.Token) {
		m.spawn(queued) //nolint:contextcheck // see spawn
		return true
	}
	if errors.Is(err, ErrUnknownOutcome) || err != nil && ctx.Err() != nil {
		giving, cancel := m.lasting(ctx)
		m.work.Go(func() {
			defer cancel()
			h := queue.Hold{Thread: e.Thread, Dispatch: e.ID, Token: e.Offer.Token}
			_, err := m.queue.Settle(giving, h, queue.Settlement{Verdict: queue.GiveBack})
			m.cfg.Logger.DebugContext(giving, "mailbox_claim_given_back", "thread", e.Thread, "dispatch", e.ID, "error", err)
		})
	}
	m.release(e.Tenant)
	return false
}

// background makes the entry of a request that is queued in the background.
func (m *Mailbox) background(ctx context.Context, r Request) (Request, queue.Entry, error) {
	r, err := r.complete(m.cfg.NewID)
	if err != nil {
		return r, queue.Entry{}, err
	}
	e, err := m.entry(r, false)
	if err == nil {
		err = m.judge(ctx, r, &e, false)
	}
	return r, e, err
}

// dispatchNow claims a thread if a worker is free, or waits for the goroutine that does, and reports whether it is executed here. What fails is
// left to the loop. It ends the claim that was begun for the thread, if there is one.
func (m *Mailbox) dispatchNow(ctx context.Context, after queue.State, t *claiming) bool {
	thread := after.Thread.ID
	if t == nil && m.Running() {
		t = m.beginClaim(thread)
	}
	if t != nil {
		ok, err := m.takeOne(ctx, after)
		m.endClaim(thread, t, ok)
		if ok || err != nil {
			return ok
		}
	}
	m.mu.Lock()
	t = m.claiming[thread]
	m.mu.Unlock()
	switch {
	case !m.Running():
		return false
	case t != nil:
		select {
		case <-t.over:
			return t.done
		case <-ctx.Done():
			return false
		}
	case m.execution(thread) != nil:
		return true
	}
	return m.streamOf(after.Dispatch.ID) != nil // another goroutine may have been first, and the execution may be over
}

// SubmitWithin queues a request through another view of the store, as of a transaction that the caller has begun: see pgstore.Store.Within.
// It is executed when that is committed, and never existed if it is rolled back. Nothing is executed before, so that the Submission is not
// Running. After an error the caller rolls back.
func (m *Mailbox) SubmitWithin(ctx context.Context, s store.Store, r Request) (Submission, error) {
	_, e, err := m.background(ctx, r)
	if err != nil {
		return Submission{}, err
	}
	queued, err := m.queue.Within(s).Enqueue(ctx, e)
	if err != nil {
		return Submission{}, err
	}
	sub := m.submission(queued)
	sub.Events = nil
	return sub, nil
}

// Submitted is what became of one request of several.
type Submitted struct {
	Submission
	Err error
}

// submitters is how many threads requests are queued for at once.
const submitters = 16

// SubmitBatch queues requests as [Mailbox.SubmitBackground] does, many at a time, those of a thread in their order. It returns what became
// of each, in their order: one that is refused does not keep the others back.
func (m *Mailbox) SubmitBatch(ctx context.Context, list []Request) []Submitted {
	out := make([]Submitted, len(list))
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
				out[i].Submission, out[i].Err = m.SubmitBackground(ctx, list[i])
			}
		})
	}
	work.Wait()
	return out
}
