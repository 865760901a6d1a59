package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Mailbox takes requests, and carries them out with a [Runtime]. Make one with [New].
type Mailbox struct {
	cfg   Config
	queue *Queue

	mu sync.Mutex
	// running are the executions of this process by thread; tenants counts them, and streams
	// are their events.
	running map[string]*execution
	// taking are the threads that are being claimed.
	taking  map[string]*taking
	tenants map[string]int
	streams streams
	pump    *pump // nil if events are not shared
	asides  asides
	// unwoken are the threads whose runs could not be woken at the start.
	unwoken []Head
	claims  int
	closing bool
	// life is set while the loops are at work, latest from the first start on.
	life, latest *life

	// changing has an entry while a start or a stop is under way. poke asks the loop to look
	// now. work are the executions.
	changing chan struct{}
	poke     chan struct{}
	work     sync.WaitGroup
	base     context.Context //nolint:containedctx // executions outlive whoever asked for them
	finish   context.CancelCauseFunc
}

// New checks the config and makes a Mailbox. It carries out nothing before
// [Mailbox.Start], except for foreground requests.
func New(ctx context.Context, cfg Config) (*Mailbox, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	queue, err := NewQueue(cfg.Queue)
	if err != nil {
		return nil, err
	}
	m := &Mailbox{
		cfg: cfg, queue: queue, running: map[string]*execution{}, taking: map[string]*taking{}, tenants: map[string]int{},
		streams: streams{open: map[string]*Stream{}, most: keep{events: cfg.Streams, bytes: cfg.StreamBytes}}, changing: make(chan struct{}, 1), poke: make(chan struct{}, 1),
	}
	m.base, m.finish = context.WithCancelCause(context.WithoutCancel(ctx))
	m.pump = newPump(m)
	return m, nil
}

// Queue returns the queue below, for listings and for what the Mailbox has no words for.
func (m *Mailbox) Queue() *Queue { return m.queue }

// Submission is what became of a request.
type Submission struct {
	Dispatch string
	Run      string
	Thread   string
	// Running says that the thread was claimed by this process at once: for the request if it is a foreground
	// one, for what comes first in its queue if not.
	Running bool
	// Repeated says that it was there already, under the same idempotency key: submitted before, or
	// by a try that had been reported as failed.
	Repeated bool
	// Events are those of the dispatch, if this process carries it out; see also [Mailbox.Attach].
	Events *Stream
	// Superseded were queued, and gave way to a foreground request.
	Superseded []Dispatch
}

// Submit starts a run in the foreground. What the thread does is interrupted; what
// users have queued for it is superseded, and told. It fails with [ErrBusy], and queues nothing, when
// the run before does not give way in time. A request that brings nothing but decisions interrupts nothing: it fails with [ErrBusy]
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
	var interrupted Interruption
	if !r.decides() {
		if interrupted, err = m.giveWay(ctx, r.Thread, e.ID); err != nil {
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
	taken, err := m.queue.Enqueue(ctx, e)
	if err != nil || !taken.Holds(claim.Token) {
		m.release(r.Tenant)
		if err == nil {
			err = wrap("thread", r.Thread, ErrBusy)
		}
		return Submission{}, err
	}
	if ok, err := m.admitted(ctx, taken, Settlement{Verdict: Withdraw, Error: ErrFull.Error()}); err != nil || !ok {
		m.release(r.Tenant)
		return Submission{}, wrap("thread", r.Thread, cmp.Or(err, ErrFull))
	}
	x := m.spawn(taken) //nolint:contextcheck // see spawn
	sub := submission(taken.Dispatch)
	sub.Running, sub.Events, sub.Superseded = true, x.events, interrupted.Superseded
	return sub, nil
}

// submitted says what became of a request with the same idempotency key before.
func (m *Mailbox) submitted(ctx context.Context, e Entry, r Request) (Submission, bool, error) {
	if r.Key == "" {
		return Submission{}, false, nil
	}
	s, err := m.queue.load(ctx, e.Thread, Need{Dispatches: []string{e.ID}})
	d, found := s.Dispatches[e.ID]
	if err != nil || !found {
		return Submission{}, false, err
	}
	if err := s.Head.admits(r.Tenant); err != nil {
		return Submission{}, false, wrap("request with key", r.Key, err)
	}
	if d.Digest != e.Digest {
		return Submission{}, false, wrap("request with key", r.Key, fmt.Errorf("%w, for another request", ErrExists))
	}
	sub := submission(d)
	sub.Repeated, sub.Running = true, d.Status == Claimed
	sub.Events, _ = m.Events(d.ID)
	return sub, true, nil
}

func submission(d Dispatch) Submission {
	return Submission{Dispatch: d.ID, Run: d.RunID, Thread: d.Thread}
}

// SubmitBackground queues a run. It is carried out when the thread is free and
// the time has come, by this process or another one.
func (m *Mailbox) SubmitBackground(ctx context.Context, r Request) (Submission, error) {
	r, err := r.complete(m.cfg.NewID)
	if err != nil {
		return Submission{}, err
	}
	e, err := m.entry(r, false)
	if err != nil {
		return Submission{}, err
	}
	if err := m.judge(ctx, r, &e, false); err != nil {
		return Submission{}, err
	}
	taken, err := m.queue.Enqueue(ctx, e)
	if err != nil {
		return Submission{}, err
	}
	sub := submission(taken.Dispatch)
	sub.Repeated = taken.Repeated
	if taken.Dispatch.Status != Queued {
		sub.Running = taken.Dispatch.Status == Claimed
		sub.Events, _ = m.Events(sub.Dispatch)
		return sub, nil
	}
	if taken.Head.Claim == nil && !e.AvailableAt.After(m.queue.now()) {
		sub.Running = m.dispatchNow(ctx, taken.Head)
	}
	m.wake()
	if sub.Events, _ = m.Events(sub.Dispatch); sub.Events != nil && !taken.Repeated {
		sub.Running = true // the loop may have been first, and the execution may be over
	}
	return sub, nil
}

// dispatchNow claims a thread if a worker is free, or waits for the loop that does, and says whether it is carried out here. What
// goes wrong is left to the loop.
func (m *Mailbox) dispatchNow(ctx context.Context, h Head) bool {
	if !m.Running() {
		return false
	}
	if ok, err := m.takeOne(ctx, h); ok || err != nil {
		return ok
	}
	m.mu.Lock()
	t := m.taking[h.Thread]
	m.mu.Unlock()
	if t != nil {
		select {
		case <-t.over:
		case <-ctx.Done():
		}
	}
	return m.execution(h.Thread) != nil
}

func (m *Mailbox) claimRequest() ClaimRequest {
	return ClaimRequest{Token: m.cfg.NewID(), Owner: m.cfg.Owner, Lease: m.cfg.Lease, Instance: m.cfg.NewID()}
}

// reserve takes a worker. A foreground request gets one beyond the bounds, since somebody waits.
func (m *Mailbox) reserve(tenant string, bounded bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closing:
		return fmt.Errorf("mailbox: %w", ErrShutdown)
	case bounded && m.claims >= m.cfg.Workers:
		return ErrFull
	case bounded && m.cfg.TenantWorkers > 0 && m.tenants[tenant] >= m.cfg.TenantWorkers:
		return ErrFull
	}
	m.claims++
	m.tenants[tenant]++
	m.work.Add(1)
	return nil
}

func (m *Mailbox) release(tenant string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claims--
	m.tenants[tenant]--
	if m.tenants[tenant] == 0 {
		delete(m.tenants, tenant)
	}
	m.work.Done()
}

// giveWay interrupts a thread and waits until it is free, unless it has the dispatch for which it is asked.
func (m *Mailbox) giveWay(ctx context.Context, thread, dispatch string) (Interruption, error) {
	out, err := m.interrupt(ctx, thread, Interrupt{Reserve: 2 * m.cfg.StopWait, Unless: dispatch})
	if err != nil || out.Active == nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.StopWait)
	defer cancel()
	for {
		if err := m.pause(ctx, thread, out.Active.Dispatch.ID); err != nil {
			return out, wrap("thread", thread, errors.Join(ErrBusy, err))
		}
		h, err := m.queue.Head(ctx, thread)
		switch {
		case err != nil && ctx.Err() != nil:
			return out, wrap("thread", thread, errors.Join(ErrBusy, err))
		case err != nil:
			return out, err
		case h.Claim == nil || h.Claim.Token != out.Active.Claim.Token:
			return out, nil
		case h.Claim.Until.Before(m.queue.now()):
			if _, _, err := m.queue.Expire(ctx, thread); err != nil {
				return out, err
			}
		}
	}
}

// pause waits until an execution of this process has ended, or a little while if
// another one has it.
func (m *Mailbox) pause(ctx context.Context, thread, dispatch string) error {
	var done <-chan struct{}
	if x := m.execution(thread); x != nil && x.taken.Dispatch.ID == dispatch {
		done = x.done
	}
	timer := time.NewTimer(stopPoll)
	defer timer.Stop()
	var tick <-chan time.Time
	if done == nil {
		tick = timer.C
	}
	select {
	case <-done:
	case <-tick:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// stopPoll is how often to look whether another process has given way.
const stopPoll = 25 * time.Millisecond

// Interrupt stops what a thread does and supersedes what users have queued for it.
// What the program itself has queued, such as the results of tasks, stays.
func (m *Mailbox) Interrupt(ctx context.Context, thread string) (Interruption, error) {
	return m.interrupt(ctx, thread, Interrupt{})
}

func (m *Mailbox) interrupt(ctx context.Context, thread string, i Interrupt) (Interruption, error) {
	i.Keep = func(d Dispatch) bool { return d.Origin == OriginInternal }
	out, err := m.queue.Interrupt(ctx, thread, i)
	if err != nil {
		return out, err
	}
	for i := range out.Superseded {
		m.settled(out.Superseded[i])
	}
	if out.Active != nil {
		m.stopRun(ctx, *out.Active, "interrupted")
	}
	m.wake()
	return out, nil
}

// stopRun asks whoever carries a dispatch out to stop.
func (m *Mailbox) stopRun(ctx context.Context, k Taken, why string) {
	if x := m.execution(k.Dispatch.Thread); x != nil && x.taken.Dispatch.ID == k.Dispatch.ID {
		x.cancel(fmt.Errorf("%w: %s", ErrStopped, why))
		return
	}
	_, err := m.deliver(ctx, k.Dispatch, Command{Kind: CommandCancel, ID: m.cfg.NewID(), Payload: []byte(why)})
	if err != nil {
		m.cfg.Logger.WarnContext(ctx, "mailbox_stop_not_delivered", "thread", k.Dispatch.Thread, "dispatch", k.Dispatch.ID, "error", err)
	}
}

func (m *Mailbox) execution(thread string) *execution {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running[thread]
}

// Executing lists what this process carries out, in no order.
func (m *Mailbox) Executing() []Dispatch {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Dispatch
	for _, x := range m.running {
		d := x.taken.Dispatch
		d.Request = nil
		list = append(list, d)
	}
	return list
}
