package mailboxtest

import (
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
	"github.com/mortise-dev/mortise/store"
)

func leaseCases() []testCase {
	return []testCase{
		{"skewed_clock_does_not_take_over_early", skewedClock},
	}
}

func (w *world) expire(thread string) (queue.State, bool) {
	w.t.Helper()
	k, ok, err := w.queue.Expire(w.ctx(), thread)
	must(w.t, err)
	return k, ok
}

// skewedClock is about a store that has no clock of its own.
func skewedClock(w *world) {
	fast, err := queue.New(queue.Config{
		Store: struct{ store.Store }{w.store}, Skew: 5 * time.Second, Now: func() time.Time { return w.clock.Now().Add(3 * time.Second) },
	})
	must(w.t, err)
	w.enqueue("t", "d1")
	k := w.claim("t")
	w.clock.Add(lease + time.Second)
	if _, ok, err := fast.Expire(w.ctx(), "t"); ok || err != nil {
		w.t.Fatalf("a clock that is fast within the bound took the lease: %v, %v", ok, err)
	}
	if _, err := w.queue.Extend(w.ctx(), hold(k), lease); err != nil {
		w.t.Errorf("the holder could not extend: %v", err)
	}
}
