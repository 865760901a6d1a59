package memstore

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/mailbox"
)

// answerTime is how long whoever got a signal has for the answer. Then it comes again.
const answerTime = 30 * time.Second

// bells are the signals that nobody has acknowledged, one for each thread at most.
type bells struct {
	mu sync.Mutex
	of map[string]*bell
	// times has them by when they are to be given out next.
	times *btree.BTreeG[*bell]
	// more is closed when there is a new one.
	more chan struct{}
}

// bell is one signal.
type bell struct {
	thread, dispatch string
	at               time.Time
	deliveries       int
	// round tells an answer to this signal from one to the signal before.
	round int
}

func newBells() bells {
	return bells{of: map[string]*bell{}, more: make(chan struct{}), times: sorted(func(a, b *bell) bool {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.thread, b.thread)) < 0
	})}
}

// ring makes a signal, in place of an older one of the thread.
func (s *bells) ring(thread, dispatch string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.of[thread]
	if b == nil {
		b = &bell{thread: thread}
		s.of[thread] = b
	}
	s.times.Delete(b)
	b.dispatch, b.at, b.deliveries = dispatch, time.Now(), 0
	b.round++
	s.times.Set(b)
	s.woken()
}

func (s *bells) woken() {
	close(s.more)
	s.more = make(chan struct{})
}

// drop forgets the signal of a thread.
func (s *bells) drop(thread string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.of[thread]; b != nil {
		s.times.Delete(b)
		delete(s.of, thread)
	}
}

// take gives out what is due, and says how long to wait when there is nothing.
func (s *bells) take(limit int) (out []mailbox.Signal, pause time.Duration, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	pause = answerTime
	for len(out) < limit {
		b, ok := s.times.Min()
		if !ok {
			break
		}
		if b.at.After(now) {
			pause = b.at.Sub(now)
			break
		}
		s.times.Delete(b)
		b.at = now.Add(answerTime)
		b.deliveries++
		s.times.Set(b)
		out = append(out, mailbox.Signal{
			Thread: b.thread, Dispatch: b.dispatch, Deliveries: b.deliveries, Receipt: receipt{bells: s, bell: b, round: b.round},
		})
	}
	return out, pause, s.more
}

// Pull implements mailbox.Signals.
func (s *Store) Pull(ctx context.Context, limit int, wait time.Duration) ([]mailbox.Signal, error) {
	end := time.Now().Add(wait)
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		out, pause, more := s.bells.take(limit)
		left := time.Until(end)
		if len(out) > 0 || left <= 0 {
			return out, nil
		}
		timer := time.NewTimer(min(pause, left))
		select {
		case <-more:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// receipt is that of one signal.
type receipt struct {
	bells *bells
	bell  *bell
	round int
}

// current says whether the signal is the latest of its thread. The caller holds the lock.
func (r receipt) current() bool {
	return r.bells.of[r.bell.thread] == r.bell && r.bell.round == r.round
}

// Ack implements mailbox.Receipt.
func (r receipt) Ack(context.Context) error {
	r.bells.mu.Lock()
	defer r.bells.mu.Unlock()
	if r.current() {
		r.bells.times.Delete(r.bell)
		delete(r.bells.of, r.bell.thread)
	}
	return nil
}

// Nack implements mailbox.Receipt.
func (r receipt) Nack(_ context.Context, delay time.Duration) error {
	r.bells.mu.Lock()
	defer r.bells.mu.Unlock()
	if r.current() {
		r.bells.times.Delete(r.bell)
		r.bell.at = time.Now().Add(delay)
		r.bells.times.Set(r.bell)
		r.bells.woken()
	}
	return nil
}
