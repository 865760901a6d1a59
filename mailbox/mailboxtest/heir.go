package mailboxtest

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

func heirCases() []testCase {
	return []testCase{
		{"slow_store_and_a_lease_that_ran_out_meanwhile", slowHolder},
	}
}

// slowHolder holds that what a holder asks for while its lease runs out and another one takes the thread is refused when the store gets to
// it: it takes nothing from the other one, and writes nothing.
func slowHolder(w *world) {
	for name, late := range map[string]func(*queue.Queue, queue.State) error{
		"extend": func(q *queue.Queue, k queue.State) error {
			_, err := q.Extend(w.ctx(), hold(k), lease)
			return err
		},
		"commit": func(q *queue.Queue, k queue.State) error {
			return q.Commit(w.ctx(), hold(k), queue.Commit{ID: "late", Append: []queue.Message{message("late", "late")}, Data: []byte("late")})
		},
		"ack": func(q *queue.Queue, k queue.State) error {
			_, err := q.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Ack, Result: queue.Result{Status: queue.RunDone}})
			return err
		},
		"retry": func(q *queue.Queue, k queue.State) error {
			_, err := q.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Retry, Error: "late"})
			return err
		},
	} {
		w.enqueue(name, name)
		k := w.claim(name)
		var heir queue.State
		slow := w.newQueue(&Faulty{Store: w.store, Plan: func(context.Context, string) Fault {
			if heir.Claim == nil { // the store takes its time
				w.clock.Add(lease + time.Second)
				w.expire(name)       //nolint:contextcheck // the test's own
				heir = w.claim(name) //nolint:contextcheck // the test's own
			}
			return FaultNone
		}})
		if err := late(slow, k); !errors.Is(err, queue.ErrConflict) {
			w.t.Errorf("%s when another one holds the thread: %v", name, err)
		}
		h := w.record(name)
		if h.Claim == nil || h.Claim.Token != heir.Claim.Token || !h.Claim.Until.Equal(heir.Claim.Until) || h.Messages != 0 {
			w.t.Errorf("after a late %s the thread is %+v, claimed by %+v; want the claim %+v", name, h, h.Claim, heir.Claim)
		}
		equal(w.t, "data of the run after a late "+name, len(w.run("run-"+name).Data), 0)
		w.settle(heir, queue.Ack)
		equal(w.t, "status", w.load(name).Status, queue.Acked)
	}
}
