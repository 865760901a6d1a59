package queuetest

import (
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

func queueCases() []testCase {
	return []testCase{
		{"enqueue_and_list", enqueueAndList},
		{"claim_returns_queued", claimReturnsQueued},
		{"claim_respects_available_at", claimRespectsAvailableAt},
		{"claim_respects_priority_before_created_at", claimRespectsPriority},
		{"claim_keeps_order_within_a_priority", claimFIFO},
		{"claim_limit_preserves_thread_exclusivity", claimIsExclusive},
		{"claim_dispatch_by_id_ignores_available_at", claimByID},
		{"claim_marks_running", claimMarksRunning},
		{"ack_transitions", ackTransitions},
		{"ack_wrong_token", ackWrongToken},
		{"settle_of_missing_or_unclaimed", settleMissing},
		{"nack_requeues", nackRequeues},
		{"nack_dead_letters_at_max", nackDeadLetters},
		{"retry_keeps_its_place", retryKeepsPlace},
		{"bury_dead_letters", buryDeadLetters},
		{"give_back_costs_no_attempt", giveBack},
		{"result_projection", resultProjection},
		{"dedupe_rejects_duplicate", dedupe},
		{"enqueue_twice_is_once", enqueueTwice},
		{"enqueue_and_claim_at_once", enqueueClaim},
		{"queue_is_bounded", queueBounded},
		{"run_of_another_thread", runOfAnotherThread},
		{"waiting_run_goes_on", waitingRunGoesOn},
	}
}

func enqueueAndList(w *world) {
	d := w.enqueue("t", "d1")
	equal(w.t, "status", d.Status, queue.Queued)
	list, err := w.queue.Dispatches(w.ctx(), queue.DispatchQuery{Thread: "t", Limit: 10})
	must(w.t, err)
	same(w.t, "list", ids(list), "d1")
	got := list[0]
	equal(w.t, "run", got.RunID, "run-d1")
	equal(w.t, "request", len(got.Request), 0)
	equal(w.t, "created", got.CreatedAt, w.clock.Now())
	equal(w.t, "available", got.AvailableAt, w.clock.Now())
	equal(w.t, "completed", got.CompletedAt.IsZero(), true)
	equal(w.t, "run's status", w.run("run-d1").Status, queue.RunCreated)
	equal(w.t, "open run", w.record("t").Open.ID, "run-d1")
	equal(w.t, "queued", w.record("t").Queued, 1)
}

func claimReturnsQueued(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	equal(w.t, "dispatch", k.Dispatch.ID, "d1")
	equal(w.t, "status", k.Dispatch.Status, queue.Claimed)
	equal(w.t, "request", string(k.Dispatch.Request), "request d1")
	equal(w.t, "owner", k.Claim.Owner, "worker")
	equal(w.t, "lease", k.Claim.Until, w.clock.Now().Add(lease))
	equal(w.t, "fence", k.Claim.Fence, 1)
	h := w.record("t")
	equal(w.t, "token of the thread", h.Claim.Token, k.Dispatch.Token)
	equal(w.t, "status as kept", w.load("d1").Status, queue.Claimed)
	w.idle("other")
}

func claimRespectsAvailableAt(w *world) {
	w.enqueue("t", "later", func(e *queue.Entry) { e.AvailableAt = w.clock.Now().Add(time.Second) })
	w.idle("t")
	w.enqueue("t", "now")
	equal(w.t, "dispatch", w.settle(w.claim("t"), queue.Ack).ID, "now")
	w.idle("t")
	w.clock.Add(time.Second)
	equal(w.t, "dispatch", w.claim("t").Dispatch.ID, "later")
}

func claimRespectsPriority(w *world) {
	w.enqueue("t", "low", func(e *queue.Entry) { e.Priority = 200 })
	w.clock.Add(time.Second)
	w.enqueue("t", "high", func(e *queue.Entry) { e.Priority = 0 })
	w.enqueue("t", "middle")
	same(w.t, "order of the list", w.list(queue.DispatchQuery{Thread: "t"}), "high", "middle", "low")
	for _, want := range []string{"high", "middle", "low"} {
		equal(w.t, "dispatch", w.settle(w.claim("t"), queue.Ack).ID, want)
	}
}

func claimFIFO(w *world) {
	// All within one millisecond, and with ids in another order.
	want := []string{"c", "a", "d", "b"}
	for _, id := range want {
		w.enqueue("t", id)
	}
	same(w.t, "order of the list", w.list(queue.DispatchQuery{Thread: "t"}), want...)
	for _, id := range want {
		equal(w.t, "dispatch", w.settle(w.claim("t"), queue.Ack).ID, id)
	}
	w.idle("t")
}

func claimIsExclusive(w *world) {
	w.enqueue("t", "d1")
	w.enqueue("t", "d2")
	k := w.claim("t")
	w.idle("t")
	if _, ok, err := w.queue.ClaimDispatch(w.ctx(), "d2", w.request()); ok || err != nil {
		w.t.Fatalf("claimed a second one of the thread: %v, %v", ok, err)
	}
	w.settle(k, queue.Ack)
	equal(w.t, "dispatch", w.claim("t").Dispatch.ID, "d2")
}

func claimByID(w *world) {
	w.enqueue("t", "d1")
	w.enqueue("t", "d2", func(e *queue.Entry) { e.AvailableAt = w.clock.Now().Add(time.Hour) })
	k, ok, err := w.queue.ClaimDispatch(w.ctx(), "d2", w.request())
	must(w.t, err)
	equal(w.t, "claimed", ok, true)
	equal(w.t, "dispatch", k.Dispatch.ID, "d2")
	equal(w.t, "request", string(k.Dispatch.Request), "request d2")
	w.settle(k, queue.Ack)
	for _, id := range []string{"d2", "nobody"} {
		_, ok, err = w.queue.ClaimDispatch(w.ctx(), id, w.request())
		must(w.t, err)
		equal(w.t, "claimed "+id, ok, false)
	}
}

func claimMarksRunning(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	d, r := w.load("d1"), w.run("run-d1")
	equal(w.t, "instance", d.Instance, k.Dispatch.Instance)
	equal(w.t, "run status of the dispatch", d.RunStatus, queue.RunRunning)
	equal(w.t, "status of the run", r.Status, queue.RunRunning)
	equal(w.t, "session of the run", r.Session, d.Instance)
	equal(w.t, "dispatch of the run", r.Dispatch, "d1")
	equal(w.t, "start of the run", r.StartedAt, w.clock.Now())
	equal(w.t, "status of the open run", w.record("t").Open.Status, queue.RunRunning)
}

func ackTransitions(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	w.clock.Add(time.Second)
	d := w.settle(k, queue.Ack)
	equal(w.t, "status", d.Status, queue.Acked)
	equal(w.t, "completed", w.load("d1").CompletedAt, w.clock.Now())
	if w.record("t").Claim != nil {
		w.t.Error("the thread is still claimed")
	}
	// Whoever did not hear of it asks again.
	equal(w.t, "status", w.settle(k, queue.Ack).Status, queue.Acked)
	w.idle("t")
}

func ackWrongToken(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	h := hold(k)
	h.Token = "stolen"
	_, err := w.queue.Settle(w.ctx(), h, queue.Settlement{Verdict: queue.Ack})
	var conflict *queue.ConflictError
	if !errors.As(err, &conflict) || *conflict != (queue.ConflictError{Expected: 0, Actual: 1}) {
		w.t.Fatalf("a wrong token gives %v", err)
	}
	equal(w.t, "status", w.load("d1").Status, queue.Claimed)
	w.settle(k, queue.Ack)
}

func settleMissing(w *world) {
	h := queue.Hold{Thread: "t", Dispatch: "nobody", Token: "x"}
	result := queue.Settlement{Verdict: queue.Ack, Result: queue.Result{Status: queue.RunDone}}
	if _, err := w.queue.Settle(w.ctx(), h, result); !errors.Is(err, queue.ErrNotFound) {
		w.t.Errorf("settlement of a missing dispatch: %v", err)
	}
	if _, err := w.queue.Extend(w.ctx(), h, lease); !errors.Is(err, queue.ErrNotFound) {
		w.t.Errorf("lease of a missing dispatch: %v", err)
	}
	if err := w.queue.Commit(w.ctx(), h, queue.Commit{ID: "c"}); !errors.Is(err, queue.ErrNotFound) {
		w.t.Errorf("commit of a missing dispatch: %v", err)
	}
	w.enqueue("t", "d1")
	h.Dispatch = "d1"
	if _, err := w.queue.Settle(w.ctx(), h, result); !errors.Is(err, queue.ErrConflict) {
		w.t.Errorf("settlement of a queued dispatch: %v", err)
	}
	if err := w.queue.Commit(w.ctx(), h, queue.Commit{ID: "c"}); !errors.Is(err, queue.ErrConflict) {
		w.t.Errorf("commit of a queued dispatch: %v", err)
	}
	equal(w.t, "status", w.load("d1").RunStatus, "")
}

func nackRequeues(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	at := w.clock.Now().Add(5 * time.Second)
	result := queue.Result{Status: queue.RunDone, Termination: "error", Error: "boom"}
	s := queue.Settlement{Verdict: queue.Retry, RetryAt: at, Error: "boom", Result: result}
	for range 2 { // the second is another process who did not hear of the first
		_, err := w.queue.Settle(w.ctx(), hold(k), s)
		must(w.t, err)
	}
	d := w.load("d1")
	equal(w.t, "status", d.Status, queue.Queued)
	equal(w.t, "attempts", d.Attempts, 1)
	equal(w.t, "last error", d.LastError, "boom")
	equal(w.t, "available", d.AvailableAt, at)
	equal(w.t, "result of a queued dispatch", string(d.RunStatus)+d.Termination+d.RunError, "")
	equal(w.t, "queued", w.record("t").Queued, 1)
	w.idle("t")
	w.clock.Add(5 * time.Second)
	equal(w.t, "fence", w.claim("t").Claim.Fence, 2)
}

func nackDeadLetters(w *world) {
	w.enqueue("t", "d1", func(e *queue.Entry) { e.MaxAttempts = 2 })
	w.settle(w.claim("t"), queue.Retry)
	d := w.settle(w.claim("t"), queue.Retry)
	equal(w.t, "status", d.Status, queue.DeadLetter)
	equal(w.t, "attempts", d.Attempts, 2)
	equal(w.t, "completed", d.CompletedAt, w.clock.Now())
	r := w.run("run-d1")
	equal(w.t, "status of the run", r.Status, queue.RunDone)
	equal(w.t, "termination of the run", r.Termination, queue.TerminationError)
	equal(w.t, "error of the run", r.Error, "boom")
	equal(w.t, "open run", w.record("t").Open.ID, "")
	w.idle("t")
}

func retryKeepsPlace(w *world) {
	w.enqueue("t", "first")
	w.enqueue("t", "second")
	k := w.claim("t")
	_, err := w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Retry, RetryAt: w.clock.Now().Add(time.Second)})
	must(w.t, err)
	w.idle("t")
	w.enqueue("t", "urgent", func(e *queue.Entry) { e.Priority = 1 })
	for _, want := range []string{"urgent", "first", "second"} {
		equal(w.t, "dispatch", w.settle(w.claim("t"), queue.Ack).ID, want)
		w.clock.Add(time.Second)
	}
}

func buryDeadLetters(w *world) {
	w.enqueue("t", "d1")
	d := w.settle(w.claim("t"), queue.Bury)
	equal(w.t, "status", d.Status, queue.DeadLetter)
	equal(w.t, "last error", w.load("d1").LastError, "boom")
	equal(w.t, "error of the run", w.run("run-d1").Error, "boom")
}

func giveBack(w *world) {
	w.enqueue("t", "d1")
	w.enqueue("t", "d2")
	k := w.claim("t")
	d := w.settle(k, queue.GiveBack)
	equal(w.t, "status", d.Status, queue.Queued)
	equal(w.t, "attempts", d.Attempts, 0)
	again := w.claim("t")
	equal(w.t, "dispatch", again.Dispatch.ID, "d1")
	if _, err := w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Ack}); !errors.Is(err, queue.ErrConflict) {
		w.t.Errorf("acknowledged by its former holder: %v", err)
	}
}

func resultProjection(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	w.clock.Add(time.Second)
	_, err := w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Ack, Result: queue.Result{
		Status: queue.RunDone, Termination: "natural", Response: "hello ☃",
	}})
	must(w.t, err)
	d, r := w.load("d1"), w.run("run-d1")
	equal(w.t, "run status", d.RunStatus, queue.RunDone)
	equal(w.t, "termination", d.Termination, "natural")
	equal(w.t, "response", d.Response, "hello ☃")
	equal(w.t, "status of the run", r.Status, queue.RunDone)
	equal(w.t, "output of the run", r.Output, "hello ☃")
	equal(w.t, "end of the run", r.FinishedAt, w.clock.Now())
	equal(w.t, "latest run", w.record("t").Latest.Status, queue.RunDone)
}

func dedupe(w *world) {
	key := func(e *queue.Entry) { e.Dedupe = "key" }
	w.enqueue("t", "d1", key)
	e := w.entry("t", "d2")
	key(&e)
	if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, queue.ErrExists) {
		w.t.Fatalf("a second one with the key: %v", err)
	}
	w.enqueue("other", "d3", key)
	k := w.claim("t")
	if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, queue.ErrExists) {
		w.t.Fatalf("a second one while the first is claimed: %v", err)
	}
	w.settle(k, queue.Ack)
	w.enqueue("t", "d2", key)
}

func enqueueTwice(w *world) {
	first := w.enqueue("t", "d1")
	second := w.enqueue("t", "d1")
	equal(w.t, "seq", second.Seq, first.Seq)
	same(w.t, "list", w.list(queue.DispatchQuery{Thread: "t"}), "d1")
	other := w.entry("t", "d1")
	other.Digest = "another request"
	if _, err := w.queue.Enqueue(w.ctx(), other); !errors.Is(err, queue.ErrExists) {
		w.t.Errorf("another request under the same id: %v", err)
	}
	strange := w.entry("elsewhere", "d1")
	if _, err := w.queue.Enqueue(w.ctx(), strange); !errors.Is(err, queue.ErrExists) {
		w.t.Errorf("the same id in another thread: %v", err)
	}
	equal(w.t, "queued elsewhere", w.record("elsewhere").Queued, 0)
	w.settle(w.claim("t"), queue.Ack)
	equal(w.t, "status of an old one", w.enqueue("t", "d1").Status, queue.Acked)
}

func enqueueClaim(w *world) {
	w.enqueue("t", "waits")
	r := w.request()
	e := w.entry("t", "d1")
	e.Claim = &r
	for range 2 {
		k, err := w.queue.Enqueue(w.ctx(), e)
		must(w.t, err)
		equal(w.t, "held", k.Holds(r.Token), true)
		equal(w.t, "status", k.Dispatch.Status, queue.Claimed)
	}
	other := w.request()
	e = w.entry("t", "d2")
	e.Claim = &other
	if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, queue.ErrBusy) {
		w.t.Fatalf("claimed a busy thread: %v", err)
	}
	same(w.t, "list", w.list(queue.DispatchQuery{Thread: "t"}), "waits", "d1")
	if _, found, err := w.queue.Run(w.ctx(), "run-d2"); found || err != nil {
		w.t.Errorf("a run was made: %v, %v", found, err)
	}
}

func queueBounded(w *world) {
	q, err := queue.New(queue.Config{Store: w.store, Now: w.clock.Now, Skew: -1, Depth: 2})
	must(w.t, err)
	w.queue = q
	w.enqueue("t", "d1")
	w.enqueue("t", "d2")
	if _, err := q.Enqueue(w.ctx(), w.entry("t", "d3")); !errors.Is(err, queue.ErrFull) {
		w.t.Fatalf("a third one of two: %v", err)
	}
	w.claim("t")
	w.enqueue("t", "d3")
}

func runOfAnotherThread(w *world) {
	w.enqueue("a", "d1")
	e := w.entry("b", "d2")
	e.Run = "run-d1"
	if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, queue.ErrExists) {
		w.t.Fatalf("a run of another thread: %v", err)
	}
	equal(w.t, "thread of the run", w.run("run-d1").Thread, "a")
	same(w.t, "list", w.list(queue.DispatchQuery{Thread: "b"}))
}

func waitingRunGoesOn(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	_, err := w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Ack, Result: queue.Result{
		Status: queue.RunWaiting, Wait: "tool_permission",
	}})
	must(w.t, err)
	equal(w.t, "wait of the open run", w.record("t").Open.Wait, "tool_permission")
	d := w.enqueue("t", "d2")
	equal(w.t, "run", d.RunID, "run-d1")
	w.claim("t")
	r := w.run("run-d1")
	equal(w.t, "status", r.Status, queue.RunRunning)
	equal(w.t, "wait", r.Wait, "")
}
