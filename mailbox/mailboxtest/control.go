package mailboxtest

import (
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

func controlCases() []testCase {
	return []testCase{
		{"interrupt_reserves_the_thread", interruptReserves},
	}
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
	same(w.t, "due when the reservation is over", w.due(), "t")
	w.claim("t")
}
