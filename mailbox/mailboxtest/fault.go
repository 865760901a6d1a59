package mailboxtest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

func faultCases() []testCase {
	return []testCase{
		{"store_that_is_down_changes_nothing", storeDown},
		{"read_that_fails_is_no_unknown_outcome", readFails},
		{"lost_answers_are_no_second_change", lostAnswers},
	}
}

// readFails holds that only a write can have an outcome that is unknown.
func readFails(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	failing := FaultBefore
	q := w.newQueue(&Faulty{Store: w.store, Plan: func(_ context.Context, operation string) Fault {
		if operation == "read" {
			return failing
		}
		return FaultNone
	}})
	for _, failing = range []Fault{FaultBefore, FaultAfter} {
		_, err := q.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Ack})
		if !errors.Is(err, ErrInjected) || errors.Is(err, queue.ErrUnknownOutcome) || !strings.Contains(err.Error(), `thread "t"`) {
			w.t.Errorf("a read that fails %s: %v", failing, err)
		}
	}
	equal(w.t, "status", w.load("d1").Status, queue.Claimed)
	w.settle(k, queue.Ack)
}

// ledger is an observer that lists what became terminal.
type ledger struct{ settled []string }

func (*ledger) Operation(ctx context.Context, _ queue.Operation) (context.Context, func(string, error)) {
	return ctx, func(string, error) {}
}

func (l *ledger) Settled(_ context.Context, d queue.Dispatch, _ queue.Run) {
	l.settled = append(l.settled, d.ID+" "+string(d.Status))
}

// lostAnswers holds that transitions whose first answer is lost return what they changed, and observers receive it once.
func lostAnswers(w *world) {
	w.enqueue("t", "active")
	w.claim("t")
	w.enqueue("t", "d1")
	w.enqueue("t", "kept", func(e *queue.Entry) { e.Origin = "internal" })
	w.enqueue("held", "d2", func(e *queue.Entry) { e.MaxAttempts = 1 })
	w.claim("held")
	w.waits("waiting", "d3", w.clock.Now().Add(time.Second))
	l, lose := &ledger{}, 0
	lossy := &Faulty{Store: w.store, Plan: func(_ context.Context, operation string) Fault {
		if operation == "apply" && lose > 0 {
			lose--
			return FaultAfter
		}
		return FaultNone
	}}
	q, err := queue.New(queue.Config{Store: lossy, Now: w.clock.Now, Skew: -1, Observers: []queue.Observer{l}})
	must(w.t, err)
	i := queue.Interrupt{ID: "i", Keep: func(d queue.Dispatch) bool { return d.Origin == "internal" }}
	lose = 2
	out, err := q.Interrupt(w.ctx(), "t", i)
	must(w.t, err)
	same(w.t, "superseded", ids(out.Superseded), "d1")
	equal(w.t, "kept", out.Kept, 1)
	equal(w.t, "active", out.Active.ID, "active")
	w.clock.Add(2 * lease)
	lose = 2
	k, ok, err := q.Expire(w.ctx(), "held")
	must(w.t, err)
	equal(w.t, "expired "+k.Dispatch.ID, ok, true)
	lose = 2
	run, err := q.Lapse(w.ctx(), "waiting")
	must(w.t, err)
	equal(w.t, "lapsed", run, "run-d3")
	run, err = q.Lapse(w.ctx(), "waiting")
	must(w.t, err)
	equal(w.t, "lapsed again", run, "")
	same(w.t, "settled", l.settled, "d1 superseded", "d2 dead_letter")
}

func storeDown(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	down := w.newQueue(&Faulty{Store: w.store, Plan: func(context.Context, string) Fault { return FaultBefore }})
	for name, try := range map[string]func() error{
		"enqueue": func() error { _, err := down.Enqueue(w.ctx(), w.entry("t", "d2")); return err },
		"claim":   func() error { _, _, err := down.Claim(w.ctx(), "t", w.request()); return err },
		"settle": func() error {
			_, err := down.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Ack})
			return err
		},
		"extend":    func() error { _, err := down.Extend(w.ctx(), hold(k), lease); return err },
		"commit":    func() error { return down.Commit(w.ctx(), hold(k), queue.Commit{ID: "c"}) },
		"interrupt": func() error { _, err := down.Interrupt(w.ctx(), "t", queue.Interrupt{}); return err },
		"cancel":    func() error { _, _, err := down.Cancel(w.ctx(), "d1", ""); return err },
		"expire":    func() error { _, _, err := down.Expire(w.ctx(), "t"); return err },
		"dispatch":  func() error { _, _, err := down.Dispatch(w.ctx(), "d1"); return err },
		"run":       func() error { _, _, err := down.Run(w.ctx(), "run-d1"); return err },
		"thread":    func() error { _, err := down.Thread(w.ctx(), "t"); return err },
	} {
		if err := try(); !errors.Is(err, ErrInjected) {
			w.t.Errorf("%s on a store that is down: %v", name, err)
		}
	}
	equal(w.t, "status", w.load("d1").Status, queue.Claimed)
	w.settle(k, queue.Ack)
	w.idle("t")
}
