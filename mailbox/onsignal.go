package mailbox

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/tidwall/btree"
)

const (
	// answerTime is how long a receiver of a signal has for the answer. Then the signal comes again.
	answerTime = 30 * time.Second
	// mostBells bounds the signals of a process that no loop receives. The due index has what was left out.
	mostBells = 10_000
)

// bells are the signals of this process that were not acknowledged, one for each thread at most.
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
	return bells{of: map[string]*bell{}, more: make(chan struct{}), times: btree.NewBTreeGOptions(func(a, b *bell) bool {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.thread, b.thread)) < 0
	}, btree.Options{NoLocks: true})}
}

// ring makes a signal, which replaces an older one of the thread.
func (s *bells) ring(thread, dispatch string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.of[thread]
	if b == nil {
		if len(s.of) >= mostBells {
			return
		}
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

// take returns what is due, and how long to wait when there is nothing.
func (s *bells) take(limit int) (out []Signal, pause time.Duration, more <-chan struct{}) {
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
		out = append(out, Signal{
			Thread: b.thread, Dispatch: b.dispatch, Deliveries: b.deliveries, Receipt: receipt{bells: s, bell: b, round: b.round},
		})
	}
	return out, pause, s.more
}

// Pull implements Signals.
func (r *Records) Pull(ctx context.Context, limit int, wait time.Duration) ([]Signal, error) {
	end := time.Now().Add(wait)
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		out, pause, more := r.bells.take(limit)
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

// current reports whether the signal is the latest of its thread. The caller holds the lock.
func (r receipt) current() bool {
	return r.bells.of[r.bell.thread] == r.bell && r.bell.round == r.round
}

// Ack implements Receipt.
func (r receipt) Ack(context.Context) error {
	r.bells.mu.Lock()
	defer r.bells.mu.Unlock()
	if r.current() {
		r.bells.times.Delete(r.bell)
		delete(r.bells.of, r.bell.thread)
	}
	return nil
}

// Nack implements Receipt.
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

// topicDue is notified with each change that other processes should look at.
const topicDue = "mailbox:due"

// Changes returns a channel that receives when a process has queued something. It is closed when ctx is done.
func (r *Records) Changes(ctx context.Context) (<-chan struct{}, error) {
	return r.store.Watch(ctx, topicDue)
}

// rang rings for a change of this process.
func (r *Records) rang(thread string, c Change) {
	switch {
	case c.Drop:
		r.bells.drop(thread)
	case c.Signal:
		r.bells.ring(thread, c.Dispatch)
	}
}
