package mailboxtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// TestHeir holds that of two processes one has a thread, however late the other one learns of it.
func TestHeir(t *testing.T) {
	t.Parallel()
	runCases(t, inMemory, []testCase{
		{"slow_store_and_a_lease_that_ran_out_meanwhile", slowHolder},
		{"process_that_is_its_own_heir", ownHeir},
		{"skewed_clock_does_not_take_over_early", skewedClock},
	})
}

// slowHolder holds that what a holder asks for while its lease runs out and another one takes the thread is refused when the store gets to
// it: it takes nothing from the other one, and writes nothing.
func slowHolder(w *world) {
	heir := w.manual(func(c *mailbox.Config) { c.Owner = "heir" })
	for name, late := range map[string]func(*manual, *hand){
		"commit": func(_ *manual, x *hand) {
			err := x.commit(mailbox.Commit{ID: "late", Append: []mailbox.Message{message("late", "late")}, Data: []byte("late")})
			if !errors.Is(err, mailbox.ErrConflict) {
				w.t.Errorf("a late commit: %v", err)
			}
		},
		"ack":   func(m *manual, x *hand) { m.finish(x, mailbox.Result{Response: "late"}, nil) },
		"retry": func(m *manual, x *hand) { m.finish(x, mailbox.Result{}, errors.New("late")) },
		"renewal": func(_ *manual, x *hand) {
			x.Suspended(false)
			<-x.ctx.Done()
			if err := context.Cause(x.ctx); !errors.Is(err, mailbox.ErrLeaseLost) {
				w.t.Errorf("after a late renewal: %v", err)
			}
		},
	} {
		var slow atomic.Bool
		var next *hand
		m := w.manual(func(c *mailbox.Config) {
			c.Store = &Faulty{Store: w.store, Plan: func(_ context.Context, operation string) Fault {
				if operation == "apply" && slow.Swap(false) { // the store takes its time
					w.clock.Add(lease + time.Second)
					heir.poll()           //nolint:contextcheck // the test's own
					next = heir.poll()[0] //nolint:contextcheck // the test's own
				}
				return FaultNone
			}}
		})
		x := m.begin(name, name)
		slow.Store(true)
		late(m, x)
		h := w.record(name)
		if h.Claim == nil || h.Claim.Token != next.Dispatch.Token || !h.Claim.Until.Equal(w.clock.Now().Add(lease)) || h.Messages != 0 {
			w.t.Errorf("after a late %s the thread is %+v, claimed by %+v", name, h, h.Claim)
		}
		equal(w.t, "data of the run after a late "+name, len(w.run("run-"+name).Data), 0)
		d := heir.finish(next, mailbox.Result{}, nil)
		equal(w.t, "dispatch after a late "+name, string(d.Status)+d.Response, "acked")
	}
}

// ownHeir holds that a process which has claimed a thread again knows of its former execution, for as long as that continues.
func ownHeir(w *world) {
	m, other := w.manual(), w.manual()
	former := m.begin("t", "d1")
	w.clock.Add(lease + time.Second)
	other.poll() // finds that the lease is over
	next := m.poll()
	equal(w.t, "executions that have begun", len(next), 1)
	equal(w.t, "executions", len(m.Executing()), 2)
	if ok, err := m.Cancel(w.t.Context(), "d1"); !ok || err != nil {
		w.t.Errorf("cancel: %v, %v", ok, err)
	}
	select {
	case <-next[0].ctx.Done():
	case <-time.After(modelStuck):
		w.t.Error("the former execution was asked to end instead of the one that has the thread")
	}
	if err := context.Cause(former.ctx); err != nil && !errors.Is(err, mailbox.ErrLeaseLost) { // which it may have learned meanwhile
		w.t.Errorf("the former one ends because of %v", err)
	}
	m.finish(former, mailbox.Result{Response: "late"}, nil)
	equal(w.t, "executions after the end of the former one", len(m.Executing()), 1)
	equal(w.t, "status", w.load("d1").Status, mailbox.Claimed)
	equal(w.t, "response", m.finish(next[0], mailbox.Result{Response: "in time"}, nil).Response, "in time")
}

// skewedClock is about a store that has no clock of its own.
func skewedClock(w *world) {
	m := w.manual()
	fast := w.manual(func(c *mailbox.Config) {
		c.Store, c.Lease.Skew = struct{ store.Store }{w.store}, 5*time.Second
		c.Now = func() time.Time { return w.clock.Now().Add(3 * time.Second) }
	})
	x := m.begin("t", "d1")
	w.clock.Add(lease + time.Second)
	equal(w.t, "executions of a process whose clock is fast within the bound", len(fast.poll()), 0)
	equal(w.t, "status", w.load("d1").Status, mailbox.Claimed)
	must(w.t, x.commit(mailbox.Commit{ID: "c"}))
}
