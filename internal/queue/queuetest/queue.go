package queuetest

import (
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

func queueCases() []testCase {
	return []testCase{
		{"claim_returns_queued", claimReturnsQueued},
		{"claim_marks_running", claimMarksRunning},
		{"ack_wrong_token", ackWrongToken},
		{"nack_requeues", nackRequeues},
		{"result_projection", resultProjection},
		{"enqueue_twice_is_once", enqueueTwice},
		{"queue_is_bounded", queueBounded},
		{"run_of_another_thread", runOfAnotherThread},
		{"waiting_run_goes_on", waitingRunGoesOn},
	}
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
