package queuetest

import (
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

func controlCases() []testCase {
	return []testCase{
		{"cancel_queued", cancelQueued},
		{"cancel_claimed_asks_to_stop", cancelClaimed},
		{"cancel_waiting_run", cancelWaitingRun},
		{"interrupt_keeps_what_it_is_told_to", interruptKeeps},
		{"interrupt_reserves_the_thread", interruptReserves},
		{"replay_and_discard", replayDiscard},
		{"wait_lapses_although_something_is_queued_for_later", waitLapsesAlone},
		{"wait_lapses_when_what_came_in_time_is_cancelled", waitLapsesAgain},
		{"drop_forgets_a_thread", dropForgets},
	}
}

func (w *world) cancel(id string) (queue.State, bool) {
	w.t.Helper()
	k, ok, err := w.queue.Cancel(w.ctx(), id, "no more")
	must(w.t, err)
	return k, ok
}

func cancelQueued(w *world) {
	w.enqueue("t", "d1")
	for range 2 {
		k, ok := w.cancel("d1")
		equal(w.t, "cancelled", ok, true)
		equal(w.t, "status", k.Dispatch.Status, queue.Cancelled)
	}
	r := w.run("run-d1")
	equal(w.t, "status of the run", r.Status, queue.RunDone)
	equal(w.t, "termination of the run", r.Termination, queue.TerminationCancelled)
	equal(w.t, "end of the run", r.FinishedAt, w.clock.Now())
	equal(w.t, "queued", w.record("t").Queued, 0)
	w.idle("t")
	_, ok := w.cancel("nobody")
	equal(w.t, "cancelled what is not there", ok, false)
}

func cancelClaimed(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	still, ok := w.cancel("d1")
	equal(w.t, "will be cancelled", ok, true)
	equal(w.t, "status", still.Dispatch.Status, queue.Claimed)
	c, err := w.queue.Extend(w.ctx(), hold(k), lease)
	must(w.t, err)
	equal(w.t, "what the holder is told", c.Stop, "no more")
	w.settle(k, queue.Ack)
	_, ok = w.cancel("d1")
	equal(w.t, "cancelled after the end", ok, false)
	equal(w.t, "status", w.load("d1").Status, queue.Acked)
}

// waits makes a run that waits for a permission.
func (w *world) waits(thread, id string, until time.Time) {
	w.t.Helper()
	w.enqueue(thread, id)
	_, err := w.queue.Settle(w.ctx(), hold(w.claim(thread)), queue.Settlement{Verdict: queue.Ack, Result: queue.Result{
		Status: queue.RunWaiting, Wait: "tool_permission", WaitUntil: until,
	}})
	must(w.t, err)
}

func cancelWaitingRun(w *world) {
	w.waits("t", "d1", time.Time{})
	for range 2 {
		ok, err := w.queue.CancelRun(w.ctx(), "t", "run-d1", "no more")
		must(w.t, err)
		equal(w.t, "cancelled", ok, true)
	}
	equal(w.t, "termination", w.run("run-d1").Termination, queue.TerminationCancelled)
	equal(w.t, "open run", w.record("t").Open.ID, "")
	ok, err := w.queue.CancelRun(w.ctx(), "t", "nobody", "no more")
	must(w.t, err)
	equal(w.t, "cancelled what is not there", ok, false)
}

func interruptKeeps(w *world) {
	w.enqueue("t", "mine")
	w.enqueue("t", "theirs", func(e *queue.Entry) { e.Origin = "internal" })
	out, err := w.queue.Interrupt(w.ctx(), "t", queue.Interrupt{Keep: func(d queue.Dispatch) bool { return d.Origin == "internal" }})
	must(w.t, err)
	same(w.t, "superseded", ids(out.Superseded), "mine")
	equal(w.t, "kept", out.Kept, 1)
	equal(w.t, "dispatch", w.claim("t").Dispatch.ID, "theirs")
}

func interruptReserves(w *world) {
	w.enqueue("t", "kept", func(e *queue.Entry) { e.Origin = "internal" })
	out, err := w.queue.Interrupt(w.ctx(), "t", queue.Interrupt{
		Keep: func(queue.Dispatch) bool { return true }, Reserve: time.Second,
	})
	must(w.t, err)
	w.idle("t")
	same(w.t, "due while reserved", w.due())
	claim := w.request()
	e := w.entry("t", "d1")
	e.Claim = &claim
	if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, queue.ErrBusy) {
		w.t.Errorf("a stranger got a reserved thread: %v", err)
	}
	e.Interrupt = out.ID
	k, err := w.queue.Enqueue(w.ctx(), e)
	must(w.t, err)
	w.settle(k, queue.Ack)
	equal(w.t, "dispatch", w.settle(w.claim("t"), queue.Ack).ID, "kept")

	w.enqueue("t", "later")
	_, err = w.queue.Interrupt(w.ctx(), "t", queue.Interrupt{
		Keep: func(queue.Dispatch) bool { return true }, Reserve: time.Second,
	})
	must(w.t, err)
	w.idle("t")
	w.clock.Add(time.Second)
	same(w.t, "due when nobody came", w.due(), "t")
	w.claim("t")
}

func replayDiscard(w *world) {
	w.enqueue("t", "d1")
	w.settle(w.claim("t"), queue.Bury)
	w.enqueue("t", "d2")
	w.settle(w.claim("t"), queue.Bury)
	for range 2 {
		k, err := w.queue.Replay(w.ctx(), "d1", "run-again")
		must(w.t, err)
		equal(w.t, "status", k.Dispatch.Status, queue.Queued)
	}
	k := w.claim("t")
	equal(w.t, "run", k.Dispatch.RunID, "run-again")
	equal(w.t, "attempts", k.Dispatch.Attempts, 0)
	equal(w.t, "request", string(k.Dispatch.Request), "request d1")
	equal(w.t, "status", w.settle(k, queue.Ack).Status, queue.Acked)
	if _, err := w.queue.Replay(w.ctx(), "d1", "run-more"); !errors.Is(err, queue.ErrConflict) {
		w.t.Errorf("replayed what is no dead letter: %v", err)
	}
	must(w.t, w.queue.Discard(w.ctx(), "d2"))
	must(w.t, w.queue.Discard(w.ctx(), "d2"))
	equal(w.t, "status", w.load("d2").Status, queue.Cancelled)
	if err := w.queue.Discard(w.ctx(), "d1"); !errors.Is(err, queue.ErrConflict) {
		w.t.Errorf("discarded what is no dead letter: %v", err)
	}
	if err := w.queue.Discard(w.ctx(), "nobody"); !errors.Is(err, queue.ErrNotFound) {
		w.t.Errorf("discarded what is not there: %v", err)
	}
}

// waitLapsesAlone holds that what is queued for later is no reason to wait longer, and makes the thread due when it is due itself;
// and that what came in time is, although it has to be tried again.
func waitLapsesAlone(w *world) {
	end := w.clock.Now().Add(time.Minute)
	for _, thread := range []string{"later", "retried"} {
		w.waits(thread, thread+"1", end)
		w.enqueue(thread, thread+"2", func(e *queue.Entry) {
			if thread == "later" {
				e.AvailableAt = end.Add(time.Hour)
			}
		})
	}
	k := w.claim("retried")
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c", Result: queue.Result{Status: queue.RunWaiting, Wait: "permission", WaitUntil: end}}))
	_, err := w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Retry, RetryAt: end.Add(time.Hour), Error: "later"})
	must(w.t, err)
	w.clock.Add(time.Minute)
	same(w.t, "due", w.due(), "later")
	for thread, want := range map[string]string{"later": "run-later1", "retried": ""} {
		run, err := w.queue.Lapse(w.ctx(), thread)
		must(w.t, err)
		equal(w.t, "run that lapsed", run, want)
	}
	w.idle("later")
	same(w.t, "due after the look", w.due())
	w.clock.Add(time.Hour)
	same(w.t, "due an hour later", w.due(), "later", "retried")
	equal(w.t, "claimed", w.claim("later").Dispatch.ID, "later2")
}

// waitLapsesAgain holds that a run waits as long as it would have without what came in time, once that is cancelled.
func waitLapsesAgain(w *world) {
	end := w.clock.Now().Add(time.Minute)
	w.enqueue("t", "first", func(e *queue.Entry) { e.Priority = 0 })
	_, err := w.queue.Settle(w.ctx(), hold(w.claim("t")), queue.Settlement{Verdict: queue.Retry, RetryAt: end.Add(time.Hour), Error: "later"})
	must(w.t, err)
	second, claim := w.entry("t", "second"), w.request()
	second.Claim = &claim
	k, err := w.queue.Enqueue(w.ctx(), second)
	must(w.t, err)
	_, err = w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Ack, Result: queue.Result{Status: queue.RunWaiting, Wait: "permission", WaitUntil: end}})
	must(w.t, err)
	w.clock.Add(time.Minute)
	same(w.t, "due", w.due())
	w.cancel("first")
	same(w.t, "due", w.due(), "t")
	run, err := w.queue.Lapse(w.ctx(), "t")
	must(w.t, err)
	equal(w.t, "run that lapsed", run, "run-second")
}

func dropForgets(w *world) {
	w.enqueue("t", "d1", func(e *queue.Entry) { e.Dedupe, e.Tenant = "k", "acme" })
	w.enqueue("other", "d2")
	k := w.claim("t")
	if err := w.queue.Drop(w.ctx(), "t"); !errors.Is(err, queue.ErrBusy) {
		w.t.Fatalf("dropped a thread that is claimed: %v", err)
	}
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c", Append: []queue.Message{message("m", "a")}, Image: []byte("i")}))
	w.settle(k, queue.Retry)
	must(w.t, w.queue.Drop(w.ctx(), "t"))
	must(w.t, w.queue.Drop(w.ctx(), "t"))
	same(w.t, "threads", w.threads(queue.ThreadQuery{}), "other")
	same(w.t, "dispatches", w.list(queue.DispatchQuery{}), "d2")
	same(w.t, "log", w.log("t", 1, 10))
	same(w.t, "due", w.due(), "other")
	equal(w.t, "head", w.record("t"), queue.Thread{ID: "t", Fence: k.Claim.Fence})
	if _, found, err := w.queue.Run(w.ctx(), "run-d1"); found || err != nil {
		w.t.Errorf("its run is there: %v, %v", found, err)
	}
	c, err := w.queue.Count(w.ctx())
	must(w.t, err)
	equal(w.t, "queued", c[queue.Queued], 1)
	// The names can be used again, by another tenant too.
	w.enqueue("t", "d1", func(e *queue.Entry) { e.Dedupe = "k" })
	next := w.claim("t")
	equal(w.t, "length of the log", next.Thread.Messages, 0)
	equal(w.t, "fence", next.Claim.Fence, k.Claim.Fence+1)
	same(w.t, "threads", w.threads(queue.ThreadQuery{}), "other", "t")
}
