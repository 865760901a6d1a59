package mailbox

import (
	"context"
	"errors"
	"sync"
	"time"
)

// signalPause is how long to wait after the store failed to give signals.
const signalPause = 250 * time.Millisecond

// changes is a [Store] that notifies of what other processes queue.
type changes interface {
	Changes(ctx context.Context) (<-chan struct{}, error)
}

// watch polls as soon as another process has queued something.
func (m *Mailbox) watch(ctx context.Context, c changes) {
	for ctx.Err() == nil {
		list, err := c.Changes(ctx)
		if err != nil {
			if !wait(ctx, signalPause) {
				return
			}
			continue
		}
		for range list {
			m.wake()
		}
	}
}

// hear takes signals until ctx is done, and waits for those that it has taken.
func (m *Mailbox) hear(ctx context.Context, signals Signals) {
	var handlers sync.WaitGroup
	defer handlers.Wait()
	free := make(chan struct{}, m.cfg.SignalHandlers)
	for ctx.Err() == nil {
		list, err := m.pull(ctx, signals)
		if err != nil {
			if ctx.Err() == nil {
				m.cfg.Logger.WarnContext(ctx, "mailbox_signals_failed", "error", err)
			}
			wait(ctx, signalPause)
			continue
		}
		for _, s := range list {
			free <- struct{}{}
			handlers.Go(func() {
				defer func() { <-free }()
				m.heard(ctx, s)
			})
		}
	}
}

func (m *Mailbox) pull(ctx context.Context, signals Signals) ([]Signal, error) {
	inner, end := m.queue.begin(ctx, Operation{Name: OpSignalPull})
	list, err := signals.Pull(inner, m.cfg.SignalBatch, m.cfg.SignalWait)
	if ctx.Err() != nil && len(list) == 0 {
		err = nil // it was asked to stop
	}
	end(len(list) == 0, err)
	return list, err
}

// heard does what a signal asks for, and answers it.
func (m *Mailbox) heard(ctx context.Context, s Signal) {
	m.tellSignal(ctx, SignalPulled)
	if s.Deliveries > 1 {
		m.tellSignal(ctx, SignalRedelivered)
	}
	// It was taken, and is to be answered also when the Mailbox stops meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.LiveWait)
	defer cancel()
	answer, delay := m.answer(ctx, s)
	name, act := OpSignalAck, s.Receipt.Ack
	if answer != SignalAcked {
		name, act = OpSignalNack, func(ctx context.Context) error { return s.Receipt.Nack(ctx, delay) }
	}
	inner, end := m.queue.begin(ctx, Operation{Name: name, Thread: s.Thread, Dispatch: s.Dispatch})
	err := act(inner)
	end(false, err)
	if err != nil {
		m.cfg.Logger.WarnContext(ctx, "mailbox_signal_not_answered", "thread", s.Thread, "error", err)
		return
	}
	m.tellSignal(ctx, answer)
}

// answer says what becomes of a signal: it is not needed any more, or comes again.
func (m *Mailbox) answer(ctx context.Context, s Signal) (SignalEvent, time.Duration) {
	now := m.queue.now()
	if until := m.asides.until(s.Thread, now); !until.IsZero() {
		return SignalNacked, until.Sub(now)
	}
	if free, _ := m.room(); free == 0 {
		return SignalAcked, 0 // a worker that becomes free polls the due index
	}
	h, err := m.recent(ctx, s.Thread)
	if err != nil {
		return m.failed(ctx, s, err)
	}
	if x := m.execution(s.Thread); x != nil && h.Claim != nil && h.Claim.Token == x.hold.Token {
		return SignalAcked, 0 // its settlement is a signal, if something is queued then
	}
	claimed, err := m.takeOne(ctx, h)
	if err == nil {
		m.asides.well(s.Thread)
	}
	switch {
	case errors.Is(err, errCrowded):
		return SignalDelayed, jitter(2 * m.cfg.NackDelay)
	case err != nil:
		return m.failed(ctx, s, err)
	case claimed, m.handles(s.Thread):
		return SignalAcked, 0
	}
	waits, err := m.waits(ctx, h, s)
	switch {
	case err != nil:
		return m.failed(ctx, s, err)
	case waits:
		return SignalDelayed, NackDelay(m.cfg.NackDelay, m.cfg.MaxNackDelay, s.Deliveries)
	default:
		return SignalAcked, 0
	}
}

// handles reports whether this process claims or executes a thread: what is queued then is looked at when that is over.
func (m *Mailbox) handles(thread string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taking[thread] != nil || m.running[thread] != nil
}

// recaller is a [Store] that knows threads without a read, as far as this process has seen them.
type recaller interface {
	Recall(thread string) (Head, bool)
}

// recent returns the head of a thread as this process knows it, or else reads it. It is for what the store checks again.
func (m *Mailbox) recent(ctx context.Context, thread string) (Head, error) {
	if r, ok := m.cfg.Store.(recaller); ok {
		if h, known := r.Recall(thread); known {
			return h, nil
		}
	}
	return m.queue.Head(ctx, thread)
}

// failed sets the thread of a signal aside, and lets the signal come again when that is over.
func (m *Mailbox) failed(ctx context.Context, s Signal, err error) (SignalEvent, time.Duration) {
	if pause := m.setAside(ctx, s.Thread, err); pause > 0 {
		return SignalNacked, pause
	}
	return SignalNacked, m.cfg.MaxNackDelay
}

// waits says whether what a signal is about is due and could not be claimed.
func (m *Mailbox) waits(ctx context.Context, h Head, s Signal) (bool, error) {
	if s.Dispatch == "" {
		return h.Queued > 0 && h.Claim != nil, nil
	}
	d, found, err := m.queue.Dispatch(ctx, s.Dispatch)
	return found && d.Status == Queued && !d.AvailableAt.After(m.queue.now()), err
}

func (m *Mailbox) tellSignal(ctx context.Context, e SignalEvent) {
	for _, observer := range m.cfg.Observers {
		observer.Signal(ctx, e)
	}
}

// NackDelay is how long a signal of a thread that is claimed stays away after a number
// of deliveries: base, doubled each time, at most the greatest. No delivery counts as one.
func NackDelay(base, most time.Duration, deliveries int) time.Duration {
	return doubled(base, most, deliveries, 16)
}
