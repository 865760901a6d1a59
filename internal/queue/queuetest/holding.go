package queuetest

import (
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

func holdingCases() []testCase {
	return []testCase{
		{"cancelled_holder_frees_those_behind", cancelHolder},
		{"superseded_holder_frees_those_behind", supersedeHolder},
		{"finished_holder_frees_those_behind", finishHolder},
	}
}

// holds makes a dispatch that failed and waits for its retry, and one behind it.
func (w *world) holds() {
	w.enqueue("t", "d1")
	w.enqueue("t", "d2", func(e *queue.Entry) { e.Origin = "internal" })
	_, err := w.queue.Settle(w.ctx(), hold(w.claim("t")), queue.Settlement{Verdict: queue.Retry, RetryAt: w.clock.Now().Add(time.Minute)})
	must(w.t, err)
	same(w.t, "due while the first one waits", w.due())
}

func cancelHolder(w *world) {
	w.holds()
	w.cancel("d1")
	same(w.t, "due", w.due(), "t")
	equal(w.t, "dispatch", w.claim("t").Dispatch.ID, "d2")
}

func supersedeHolder(w *world) {
	w.holds()
	_, err := w.queue.Interrupt(w.ctx(), "t", queue.Interrupt{Keep: func(d queue.Dispatch) bool { return d.Origin == "internal" }})
	must(w.t, err)
	same(w.t, "due", w.due(), "t")
	equal(w.t, "dispatch", w.claim("t").Dispatch.ID, "d2")
}

// A run whose end was written is only acknowledged when its dispatch is claimed again.
func finishHolder(w *world) {
	w.enqueue("t", "d1")
	w.enqueue("t", "d2")
	k := w.claim("t")
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c", Result: queue.Result{Status: queue.RunDone}}))
	_, err := w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Retry, RetryAt: w.clock.Now().Add(time.Minute)})
	must(w.t, err)
	_, ok, err := w.queue.ClaimDispatch(w.ctx(), "d1", w.request())
	must(w.t, err)
	equal(w.t, "claimed what was done", ok, false)
	equal(w.t, "status", w.load("d1").Status, queue.Acked)
	same(w.t, "due", w.due(), "t")
	equal(w.t, "dispatch", w.claim("t").Dispatch.ID, "d2")
}
