package mailboxtest

import (
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

func queueCases() []testCase {
	return []testCase{
		{"claim_marks_running", claimMarksRunning},
		{"result_projection", resultProjection},
		{"enqueue_twice_is_once", enqueueTwice},
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
