package pgstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// kept is how many signals are kept at most; the due index tells of the rest.
const kept = 10_000

// signals are threads to look at, each once.
type signals struct {
	mu   sync.Mutex
	list []mailbox.Signal
	has  map[string]bool
	// some has an entry when there may be signals.
	some chan struct{}
}

func newSignals() signals {
	return signals{has: map[string]bool{}, some: make(chan struct{}, 1)}
}

func (q *signals) add(s mailbox.Signal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.has[s.Thread] || len(q.list) >= kept {
		return
	}
	q.has[s.Thread] = true
	q.list = append(q.list, s)
	q.poke()
}

func (q *signals) poke() {
	select {
	case q.some <- struct{}{}:
	default:
	}
}

// take takes some out, limit at most.
func (q *signals) take(limit int) []mailbox.Signal {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(max(limit, 0), len(q.list))
	out := make([]mailbox.Signal, n)
	copy(out, q.list)
	q.list = append(q.list[:0], q.list[n:]...)
	for i := range out {
		delete(q.has, out[i].Thread)
	}
	if len(q.list) > 0 {
		q.poke()
	}
	return out
}

// drop forgets the signal of a thread that has been seen to.
func (q *signals) drop(thread string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.has[thread] {
		delete(q.has, thread)
		q.list = slices.DeleteFunc(q.list, func(s mailbox.Signal) bool { return s.Thread == thread })
	}
}

// changed tells the other processes of a change that has a signal, a little later: a thread that this
// process claims meanwhile is nothing to tell.
func (w *wire) changed(thread string, c mailbox.Change) {
	switch {
	case c.Head == nil:
	case c.Drop, c.Head.Claim != nil, c.Head.DueAt.IsZero():
		w.out.drop(thread)
	case c.Signal:
		w.out.add(mailbox.Signal{Thread: thread, Dispatch: c.Dispatch})
	}
}

// telling sends what there is to tell, a while after the first.
func (w *wire) telling(ctx context.Context) {
	for {
		select {
		case <-w.out.some:
		case <-ctx.Done():
			return
		}
		timer := time.NewTimer(w.s.cfg.Coalesce)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if list := w.out.take(kept); len(list) > 0 {
			if err := w.notify(ctx, packed(list)...); err != nil && ctx.Err() == nil {
				w.s.cfg.Logger.WarnContext(ctx, "pgstore_signals_not_sent", "signals", len(list), "error", err)
			}
		}
	}
}

// packed puts signals into notices of less than 8000 bytes: a byte of a name has 6 in JSON at most.
func packed(list []mailbox.Signal) []notice {
	const most = 7900 / 6
	var out []notice
	size := most + 1
	for i := range list {
		s := [2]string{list[i].Thread, list[i].Dispatch}
		if size += len(s[0]) + len(s[1]) + 2; size > most {
			out, size = append(out, notice{}), len(s[0])+len(s[1])+2
		}
		last := &out[len(out)-1]
		last.Signals = append(last.Signals, s)
	}
	return out
}

// Pull implements mailbox.Signals. Signals of the time in which nothing was heard are lost.
func (s *Store) Pull(ctx context.Context, limit int, wait time.Duration) ([]mailbox.Signal, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if list := s.wire.in.take(limit); len(list) > 0 {
			for i := range list {
				list[i].Receipt = noReceipt{}
			}
			return list, nil
		}
		select {
		case <-s.wire.in.some:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// noReceipt answers for signals that every process got.
type noReceipt struct{}

func (noReceipt) Ack(context.Context) error                 { return nil }
func (noReceipt) Nack(context.Context, time.Duration) error { return nil }
