package mailbox

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Mailbox takes requests, and executes them with a [Runtime]. Make one with [New].
type Mailbox struct {
	*queue

	workers
	lifecycle

	cfg Config
	// ownIDs is set if Config.NewID is the default: its ids are random.
	ownIDs bool
	pump   *pump // nil if events are not shared
	// poke asks the loop to poll now.
	poke chan struct{}

	mu      sync.Mutex
	asides  map[string]aside
	pauses  pauses
	collect collected
	// down is why the store cannot be used, since which time.
	down health
}

// workers are what a process executes. The Mailbox's lock guards them.
type workers struct {
	// running are the executions, in the order of their claims; tenants counts them. A thread may have several: those that have lost their
	// leases and have not ended yet, and the last one.
	running []*execution
	tenants map[string]int
	// claims counts the workers that are busy, settling the executions that are over but for their settlement. hungry is set when a worker
	// that becomes free finds more to do.
	claims, settling int
	hungry           bool
	ended            ended
}

// collected is what the collection continues with. The Mailbox's lock guards it.
type collected struct {
	// unwoken are the threads whose runs could not be woken at the start.
	unwoken []Thread
	// retained is up to when the runs of changed threads were counted.
	retained time.Time
}

// New checks the config and makes a Mailbox. It executes nothing before
// [Mailbox.Start], except for foreground requests.
func New(ctx context.Context, cfg Config) (*Mailbox, error) {
	m := &Mailbox{
		ownIDs: cfg.NewID == nil, cfg: cfg, asides: map[string]aside{}, poke: make(chan struct{}, 1),
		workers:   workers{tenants: map[string]int{}},
		lifecycle: lifecycle{changing: make(chan struct{}, 1)},
	}
	if err := m.cfg.complete(); err != nil {
		return nil, err
	}
	m.queue = newQueue(&m.cfg)
	m.base, m.finish = context.WithCancelCause(context.WithoutCancel(ctx))
	m.pump = newPump(m)
	return m, nil
}

func (m *Mailbox) claimRequest() claimRequest {
	return claimRequest{Token: m.cfg.NewID(), Owner: m.cfg.Owner, Lease: m.cfg.Lease.Duration, Instance: m.cfg.NewID()}
}

// executes refuses to execute without a runtime.
func (m *Mailbox) executes() error {
	if m.cfg.Runtime == nil {
		return fmt.Errorf("mailbox: %w: Config.Runtime is nil, so that this process executes nothing; set one, or use SubmitBackground and leave execution to another process", ErrInvalid)
	}
	return nil
}

// reserve takes a worker. A foreground request gets one beyond the bounds, since its caller waits.
func (m *Mailbox) reserve(tenant string, bounded bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closing:
		return fmt.Errorf("mailbox: %w", ErrShutdown)
	case bounded && m.claims >= m.cfg.Limits.Workers:
		m.hungry = true
		return ErrFull
	case bounded && m.cfg.Limits.TenantWorkers > 0 && m.tenants[tenant] >= m.cfg.Limits.TenantWorkers:
		m.hungry = true
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
	m.free(tenant)
	m.work.Done()
}

// free frees a worker. The caller holds the lock.
func (m *Mailbox) free(tenant string) {
	m.claims--
	m.tenants[tenant]--
	if m.tenants[tenant] == 0 {
		delete(m.tenants, tenant)
	}
	if m.hungry || m.cfg.Limits.Claims > 0 || m.cfg.Limits.TenantClaims > 0 {
		m.hungry = false
		m.wake()
	}
}

// execution returns the latest execution of a thread that is under way in this process, or nil.
func (m *Mailbox) execution(thread string) *execution {
	return m.latest(func(h hold) bool { return h.Thread == thread })
}

// executionOf returns the latest execution of a dispatch that is under way in this process, or nil.
func (m *Mailbox) executionOf(dispatch string) *execution {
	return m.latest(func(h hold) bool { return h.Dispatch == dispatch })
}

func (m *Mailbox) latest(of func(hold) bool) *execution {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range slices.Backward(m.running) {
		if of(x.hold) {
			return x
		}
	}
	return nil
}

// streamOf returns the events of that execution, or of one that has ended not long ago, or nil.
func (m *Mailbox) streamOf(dispatch string) *stream {
	if x := m.executionOf(dispatch); x != nil {
		return x.events
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended.find(dispatch)
}

// Await waits until a dispatch is terminal, in whatever process, and returns it as it
// is then. It is [ErrShutdown] once this Mailbox is closed.
func (m *Mailbox) Await(ctx context.Context, dispatch string) (Dispatch, error) {
	for {
		x := m.executionOf(dispatch) // before the dispatch is read: it may end meanwhile
		d, found, err := m.Dispatch(ctx, dispatch)
		switch {
		case err != nil:
			return d, err
		case !found:
			return d, wrap("dispatch", dispatch, ErrNotFound)
		case d.Status.Terminal():
			return d, nil
		}
		if err := m.open(); err != nil {
			return d, err
		}
		var over <-chan struct{}
		if x == nil {
			x = m.executionOf(dispatch)
		}
		if x != nil {
			over = x.done
		}
		if !wait(ctx, m.cfg.Poll, over) {
			return d, context.Cause(ctx)
		}
	}
}

// Executing lists what this process executes, in the order of the claims, also what has lost its lease and has not ended yet.
func (m *Mailbox) Executing() []Dispatch {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Dispatch
	for _, x := range m.running {
		d := x.claimed.Dispatch
		d.Request = nil
		list = append(list, d)
	}
	return list
}
