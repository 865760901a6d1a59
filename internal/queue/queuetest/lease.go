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
		{"extend_lease_wrong_token", extendWrongToken},
		{"extend_lease_rejects_stale_claim_after_interrupt", extendStale},
		{"settle_rejects_stale_claim_after_interrupt", settleStale},
		{"reclaim_requeues", reclaimRequeues},
		{"reclaim_dead_letters_at_max", reclaimDeadLetters},
		{"reclaim_of_expired_stale_claim_supersedes", reclaimStale},
		{"reclaim_of_a_finished_run_acknowledges", reclaimFinished},
		{"late_ack_counts_until_somebody_begins", lateAck},
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

func extendWrongToken(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	h := hold(k)
	h.Token = "stolen"
	if _, err := w.queue.Extend(w.ctx(), h, time.Hour); !errors.Is(err, queue.ErrConflict) {
		w.t.Fatalf("extended with a wrong token: %v", err)
	}
	equal(w.t, "lease", w.record("t").Claim.Until, k.Claim.Until)
	w.settle(k, queue.Ack)
	if _, err := w.queue.Extend(w.ctx(), hold(k), lease); !errors.Is(err, queue.ErrConflict) {
		w.t.Fatalf("extended after the end: %v", err)
	}
}

func (w *world) interrupt(thread string) queue.Interruption {
	w.t.Helper()
	out, err := w.queue.Interrupt(w.ctx(), thread, queue.Interrupt{})
	must(w.t, err)
	return out
}

func extendStale(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	w.interrupt("t")
	var conflict *queue.ConflictError
	if _, err := w.queue.Extend(w.ctx(), hold(k), lease); !errors.As(err, &conflict) || *conflict != (queue.ConflictError{Expected: 0, Actual: 1}) {
		w.t.Fatalf("extended a stale claim: %v", err)
	}
	equal(w.t, "lease", w.record("t").Claim.Until, k.Claim.Until)
	// What it had come to can still be kept.
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c", Append: []queue.Message{{ID: "m", Data: []byte("partial")}}}))
}

func settleStale(w *world) {
	for _, v := range []queue.Verdict{queue.Ack, queue.Retry, queue.Bury} {
		thread := "t-" + string(v)
		w.enqueue(thread, "d-"+string(v))
		k := w.claim(thread)
		w.interrupt(thread)
		for range 2 {
			if _, err := w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: v}); !errors.Is(err, queue.ErrConflict) {
				w.t.Errorf("%s of a stale claim: %v", v, err)
			}
		}
		equal(w.t, "status after "+string(v), w.load(k.Dispatch.ID).Status, queue.Superseded)
		equal(w.t, "run after "+string(v), w.run(k.Dispatch.RunID).Termination, queue.TerminationCancelled)
	}
}

func (w *world) expire(thread string) (queue.State, bool) {
	w.t.Helper()
	k, ok, err := w.queue.Expire(w.ctx(), thread)
	must(w.t, err)
	return k, ok
}

func reclaimRequeues(w *world) {
	w.enqueue("t", "d1", func(e *queue.Entry) { e.AvailableAt = w.clock.Now().Add(time.Hour) })
	k, ok, err := w.queue.ClaimDispatch(w.ctx(), "d1", w.request())
	must(w.t, err)
	equal(w.t, "claimed", ok, true)
	if _, ok := w.expire("t"); ok {
		w.t.Fatal("taken before the lease was over")
	}
	w.clock.Add(lease)
	if _, ok := w.expire("t"); ok {
		w.t.Fatal("taken at the moment at which the lease ends")
	}
	w.clock.Add(time.Millisecond)
	again, ok := w.expire("t")
	equal(w.t, "expired", ok, true)
	equal(w.t, "status", again.Dispatch.Status, queue.Queued)
	equal(w.t, "attempts", again.Dispatch.Attempts, 1)
	equal(w.t, "available", again.Dispatch.AvailableAt, w.clock.Now())
	same(w.t, "due", w.due(), "t")
	if _, ok := w.expire("t"); ok {
		w.t.Error("expired twice")
	}
	next := w.claim("t")
	equal(w.t, "dispatch", next.Dispatch.ID, "d1")
	equal(w.t, "fence is greater", next.Claim.Fence > k.Claim.Fence, true)
}

func reclaimDeadLetters(w *world) {
	w.enqueue("t", "d1", func(e *queue.Entry) { e.MaxAttempts = 1 })
	w.claim("t")
	w.clock.Add(lease + time.Second)
	k, ok := w.expire("t")
	equal(w.t, "expired", ok, true)
	equal(w.t, "status", k.Dispatch.Status, queue.DeadLetter)
	equal(w.t, "termination of the run", w.run("run-d1").Termination, queue.TerminationError)
	w.idle("t")
}

func reclaimStale(w *world) {
	w.enqueue("t", "d1")
	w.claim("t")
	w.interrupt("t")
	w.clock.Add(lease + time.Second)
	k, ok := w.expire("t")
	equal(w.t, "expired", ok, true)
	equal(w.t, "status", k.Dispatch.Status, queue.Superseded)
	equal(w.t, "attempts", k.Dispatch.Attempts, 0)
	equal(w.t, "termination of the run", w.run("run-d1").Termination, queue.TerminationCancelled)
	w.idle("t")
}

// A worker that dies between its last commit and the acknowledgement has done the work.
func reclaimFinished(w *world) {
	for _, status := range []queue.RunStatus{queue.RunDone, queue.RunWaiting} {
		thread := "t-" + string(status)
		w.enqueue(thread, "d-"+string(status))
		k := w.claim(thread)
		must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c", Result: queue.Result{Status: status, Response: "hello"}}))
		w.clock.Add(lease + time.Second)
		again, ok := w.expire(thread)
		equal(w.t, "expired", ok, true)
		equal(w.t, "status of the dispatch of a run that is "+string(status), again.Dispatch.Status, queue.Acked)
		equal(w.t, "response of the dispatch", again.Dispatch.Response, "hello")
		equal(w.t, "status of the run", w.run(k.Dispatch.RunID).Status, status)
		w.idle(thread)
	}
}

func lateAck(w *world) {
	w.enqueue("t", "d1")
	first := w.claim("t")
	w.clock.Add(lease + time.Second)
	w.expire("t")
	equal(w.t, "status", w.settle(first, queue.Ack).Status, queue.Acked)
	w.idle("t")

	w.enqueue("t", "d2")
	slow := w.claim("t")
	w.clock.Add(lease + time.Second)
	w.expire("t")
	second := w.claim("t")
	if _, err := w.queue.Settle(w.ctx(), hold(slow), queue.Settlement{Verdict: queue.Ack}); !errors.Is(err, queue.ErrConflict) {
		w.t.Errorf("acknowledged after another process else began: %v", err)
	}
	w.settle(second, queue.Ack)
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
