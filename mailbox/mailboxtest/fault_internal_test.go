package mailboxtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestFaults holds what a mailbox makes of a store that fails, whatever the store is.
func TestFaults(t *testing.T) {
	t.Parallel()
	runCases(t, inMemory, []testCase{
		{"store_that_is_down_changes_nothing", storeDown},
		{"lost_answers_are_no_second_change", lostAnswers},
		{"answers_that_come_at_last_are_whole", lateAnswers},
	})
}

// losing is a process whose store reports so many of its next changes as failed, after it has made them.
func (w *world) losing(l *ledger, lose *atomic.Int32) *manual {
	w.t.Helper()
	return w.manual(func(c *mailbox.Config) {
		c.Observers = []mailbox.Observer{l}
		c.Store = &Faulty{Store: w.store, Plan: func(_ context.Context, operation string) Fault {
			if operation == "apply" && lose.Add(-1) >= 0 {
				return FaultAfter
			}
			return FaultNone
		}}
	})
}

func inMemory(*testing.T) store.Store { return memstore.New() }

// ledger is an observer that lists what became terminal.
type ledger struct {
	renewals

	settled []string
}

func (l *ledger) Settled(_ context.Context, d mailbox.Dispatch, _ mailbox.Run) {
	l.settled = append(l.settled, d.ID+" "+string(d.Status))
}

// lostAnswers holds that what was changed, and was reported as failed until the caller gave up, is there once when it is repeated, and
// observers receive it once at most.
func lostAnswers(w *world) {
	l := &ledger{renewals: renewals{make(chan struct{}, 8)}}
	var lose atomic.Int32
	m := w.losing(l, &lose)
	const all = 4 // attempts of a write
	lose.Store(all)
	if _, err := m.SubmitBackground(w.ctx(), request("t", "d1")); !errors.Is(err, mailbox.ErrUnknownOutcome) {
		w.t.Errorf("a submit whose answer is lost: %v", err)
	}
	equal(w.t, "it was there", m.queue("t", "d1").Repeated, true)
	x := m.poll()[0]
	c := mailbox.Commit{ID: "c", Append: []mailbox.Message{message("m1", "a")}}
	lose.Store(all)
	if err := x.commit(c); !errors.Is(err, mailbox.ErrUnknownOutcome) {
		w.t.Errorf("a commit whose answer is lost: %v", err)
	}
	must(w.t, x.commit(c))
	same(w.t, "log", w.log("t", 1, 10), "1:m1=a")
	lose.Store(all)
	equal(w.t, "status", m.finish(x, mailbox.Result{}, nil).Status, mailbox.Acked)
	equal(w.t, "attempts", w.load("d1").Attempts, 0)
	m.queue("t", "d2")
	lose.Store(all)
	if _, err := m.Interrupt(w.ctx(), "t"); !errors.Is(err, mailbox.ErrUnknownOutcome) {
		w.t.Errorf("an interrupt whose answer is lost: %v", err)
	}
	equal(w.t, "status", w.load("d2").Status, mailbox.Superseded)
	m.finish(m.begin("u", "d3"), mailbox.Result{}, nil)
	if len(l.settled) != len(slices.Compact(slices.Clone(l.settled))) || !slices.Contains(l.settled, "d3 acked") {
		w.t.Errorf("settled: %q", l.settled)
	}
}

// lateAnswers holds that a change whose first answers are lost, and which is recovered in the same call, has its whole answer, and that observers
// receive what it ended, once.
func lateAnswers(w *world) {
	l := &ledger{renewals: renewals{make(chan struct{}, 8)}}
	var lose atomic.Int32
	m := w.losing(l, &lose)
	x := m.begin("t", "active")
	m.queue("t", "d1")
	m.queue("u", "d2")
	lose.Store(2)
	out, err := m.Interrupt(w.ctx(), "t")
	must(w.t, err)
	same(w.t, "superseded", ids(out.Superseded), "d1")
	if out.Active == nil || out.Active.ID != "active" {
		w.t.Errorf("the active execution is %+v", out.Active)
	}
	lose.Store(2)
	ok, err := m.Cancel(w.ctx(), "d2")
	must(w.t, err)
	equal(w.t, "cancelled", ok, true)
	same(w.t, "settled", l.settled, "d1 superseded", "d2 cancelled")
	m.finish(x, mailbox.Result{}, nil)
}

func storeDown(w *world) {
	var isDown atomic.Bool
	m := w.manual(func(c *mailbox.Config) {
		c.Store = &Faulty{Store: w.store, Plan: func(context.Context, string) Fault {
			if isDown.Load() {
				return FaultBefore
			}
			return FaultNone
		}}
	})
	x := m.begin("t", "d1")
	isDown.Store(true)
	for name, try := range map[string]func() error{
		"submit":    func() error { _, err := m.SubmitBackground(w.ctx(), request("t", "d2")); return err },
		"poll":      func() error { _, err := m.Poll(w.ctx()); return err },
		"commit":    func() error { return x.commit(mailbox.Commit{ID: "c"}) },
		"interrupt": func() error { _, err := m.Interrupt(w.ctx(), "t"); return err },
		"cancel":    func() error { _, err := m.Cancel(w.ctx(), "d1"); return err },
		"pause":     func() error { _, err := m.PauseThread(w.ctx(), "t"); return err },
		"drop":      func() error { return m.Drop(w.ctx(), "t") },
		"collect":   func() error { return m.GC(w.ctx()) },
		"dispatch":  func() error { _, _, err := m.Mailbox.Dispatch(w.ctx(), "d1"); return err },
		"run":       func() error { _, _, err := m.Run(w.ctx(), "run-d1"); return err },
		"thread":    func() error { _, err := m.Thread(w.ctx(), "t"); return err },
	} {
		err := try()
		if !errors.Is(err, ErrInjected) {
			w.t.Errorf("%s on a store that is down: %v", name, err)
		}
		if read := name == "dispatch" || name == "run" || name == "thread"; read && errors.Is(err, mailbox.ErrUnknownOutcome) {
			w.t.Errorf("%s changes nothing, and has an unknown outcome: %v", name, err)
		}
		if name == "thread" && !strings.Contains(err.Error(), `thread "t"`) {
			w.t.Errorf("the error does not name the thread: %v", err)
		}
	}
	isDown.Store(false)
	equal(w.t, "status", w.load("d1").Status, mailbox.Claimed)
	equal(w.t, "status", m.finish(x, mailbox.Result{}, nil).Status, mailbox.Acked)
	same(w.t, "dispatches", w.list(mailbox.DispatchQuery{}), "d1")
}
