package queuetest

import (
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
	"github.com/mortise-dev/mortise/store"
)

func leaseCases() []testCase {
	return []testCase{
		{"extend_lease_success", extendLease},
		{"fencing_of_a_former_holder", fencing},
		{"skewed_clock_does_not_take_over_early", skewedClock},
	}
}

func extendLease(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	w.clock.Add(20 * time.Second)
	c, err := w.queue.Extend(w.ctx(), hold(k), lease)
	must(w.t, err)
	equal(w.t, "lease", c.Until, w.clock.Now().Add(lease))
	equal(w.t, "lease as kept", w.record("t").Claim.Until, w.clock.Now().Add(lease))
	w.clock.Add(lease)
	_, expired, err := w.queue.Expire(w.ctx(), "t")
	must(w.t, err)
	equal(w.t, "expired in time", expired, false)
}

func (w *world) interrupt(thread string) queue.Interruption {
	w.t.Helper()
	out, err := w.queue.Interrupt(w.ctx(), thread, queue.Interrupt{})
	must(w.t, err)
	return out
}

func (w *world) expire(thread string) (queue.State, bool) {
	w.t.Helper()
	k, ok, err := w.queue.Expire(w.ctx(), thread)
	must(w.t, err)
	return k, ok
}

func fencing(w *world) {
	w.enqueue("t", "d1")
	zombie := w.claim("t")
	must(w.t, w.queue.Commit(w.ctx(), hold(zombie), queue.Commit{ID: "c1", Append: []queue.Message{{ID: "m1", Data: []byte("one")}}}))
	w.clock.Add(lease + time.Second)
	w.expire("t")
	late := queue.Commit{ID: "c2", From: 1, Append: []queue.Message{{ID: "m2"}}, Data: []byte("late"), Image: []byte("late")}
	if err := w.queue.Commit(w.ctx(), hold(zombie), late); !errors.Is(err, queue.ErrConflict) {
		w.t.Errorf("written after the lease was taken: %v", err)
	}
	heir := w.claim("t")
	if err := w.queue.Commit(w.ctx(), hold(zombie), late); !errors.Is(err, queue.ErrConflict) {
		w.t.Errorf("written beside the heir: %v", err)
	}
	if _, err := w.queue.Extend(w.ctx(), hold(zombie), lease); !errors.Is(err, queue.ErrConflict) {
		w.t.Errorf("extended beside the heir: %v", err)
	}
	for _, v := range []queue.Verdict{queue.Ack, queue.Retry, queue.Bury, queue.GiveBack, queue.Supersede} {
		if _, err := w.queue.Settle(w.ctx(), hold(zombie), queue.Settlement{Verdict: v}); !errors.Is(err, queue.ErrConflict) {
			w.t.Errorf("%s beside the heir: %v", v, err)
		}
	}
	equal(w.t, "messages", w.record("t").Messages, 1)
	equal(w.t, "data of the run", len(w.run("run-d1").Data), 0)
	w.settle(heir, queue.Ack)
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
