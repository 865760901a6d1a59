package mailboxtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func faultCases() []testCase {
	return []testCase{
		{"fault_at_every_operation_of_a_life", faultEverywhere},
		{"fault_at_operations_of_a_mailbox", faultsOfAMailbox},
		{"store_that_is_down_changes_nothing", storeDown},
		{"lost_answer_of_an_interrupt", lostInterrupt},
		{"lost_answer_of_an_expiry", lostExpiry},
		{"lost_answer_of_a_lapse", lostLapse},
		{"lost_answer_is_told_once", lostEnd},
		{"lost_answer_of_what_another_did", lostOther},
	}
}

// life takes a thread through every transition, and returns what it came to.
func (w *world) life() string {
	w.enqueue("t", "d1", func(e *mailbox.Entry) { e.Dedupe = "k" })
	k := w.claim("t")
	must(w.t, w.queue.Commit(w.ctx(), hold(k), mailbox.Commit{ID: "c1", Append: []mailbox.Message{message("m1", "a")}, Data: []byte("d"), Image: []byte("i")}))
	_, err := w.queue.Extend(w.ctx(), hold(k), lease)
	must(w.t, err)
	w.settle(k, mailbox.Retry)
	w.claim("t")
	w.clock.Add(lease + time.Second)
	w.expire("t")
	k = w.claim("t")
	w.settle(k, mailbox.GiveBack)
	k = w.claim("t")
	must(w.t, w.queue.Commit(w.ctx(), hold(k), mailbox.Commit{ID: "c2", From: 1, Append: []mailbox.Message{message("m2", "b")}}))
	w.settle(k, mailbox.Ack)
	w.enqueue("t", "d2")
	w.enqueue("t", "d3")
	w.cancel("d2")
	k = w.claim("t")
	w.cancel("d3")
	w.enqueue("t", "d4")
	w.interrupt("t")
	_, err = w.queue.Settle(w.ctx(), hold(k), mailbox.Settlement{Verdict: mailbox.Ack})
	if !errors.Is(err, mailbox.ErrConflict) {
		w.t.Fatalf("a stale claim was settled: %v", err)
	}
	w.enqueue("t", "d5")
	w.settle(w.claim("t"), mailbox.Bury)
	_, err = w.queue.Replay(w.ctx(), "d5", "run-again")
	must(w.t, err)
	w.settle(w.claim("t"), mailbox.Bury)
	must(w.t, w.queue.Discard(w.ctx(), "d5"))
	return w.image("t")
}

// image says all that matters of a thread in words.
func (w *world) image(thread string) string {
	w.t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "log %q\n", w.log(thread, 1, 100))
	list, err := w.store.Dispatches(w.ctx(), mailbox.DispatchQuery{Thread: thread, Limit: 100})
	must(w.t, err)
	for i := range list {
		d := &list[i]
		r := w.run(d.RunID)
		fmt.Fprintf(&out, "%s %s seq %d epoch %d attempts %d fence %d %q run %s %s %q\n", d.ID, d.Status, d.Seq, d.Epoch, d.Attempts, d.Fence, d.LastError, r.ID, r.Status, r.Termination)
	}
	h := w.head(thread)
	fmt.Fprintf(&out, "epoch %d fence %d seq %d queued %d claimed %v open %q", h.Epoch, h.Fence, h.Seq, h.Queued, h.Claim != nil, h.Open.ID)
	return out.String()
}

// faultEverywhere lets each operation of a life fail once, in each way; the life comes out the
// same each time. On stores that are slow to open, threads stand for stores.
func faultEverywhere(w *world) {
	clean := w.store
	rounds := 0
	want := w.named(clean, "clean", nil).life()
	for _, fault := range []Fault{FaultBefore, FaultAfter, FaultTwice} {
		for nth := 1; ; nth++ {
			reached := false
			plan := once("update", nth, fault)
			v := w.named(clean, fmt.Sprintf("%s-%d", fault, nth), func(ctx context.Context, operation string) Fault {
				f := plan(ctx, operation)
				reached = reached || f != FaultNone
				return f
			})
			got := v.life()
			if !reached {
				break
			}
			rounds++
			if got != want {
				w.t.Errorf("update %d failing %s:\n%s\nwant\n%s", nth, fault, got, want)
			}
		}
	}
	if rounds < 30 {
		w.t.Errorf("only %d faults were injected", rounds)
	}
}

// named is a world of its own on a shared store: its names have a prefix there.
func (w *world) named(store mailbox.Store, name string, plan func(context.Context, string) Fault) *world {
	v := &world{t: w.t, clock: NewClock()}
	v.store = &Faulty{Store: &prefixed{Store: store, prefix: name + "/"}, Plan: plan}
	v.queue = v.newQueue(v.store)
	return v
}

func storeDown(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	down := w.newQueue(&Faulty{Store: w.store, Plan: func(context.Context, string) Fault { return FaultBefore }})
	for name, try := range map[string]func() error{
		"enqueue": func() error { _, err := down.Enqueue(w.ctx(), w.entry("t", "d2")); return err },
		"claim":   func() error { _, _, err := down.Claim(w.ctx(), "t", w.request()); return err },
		"settle": func() error {
			_, err := down.Settle(w.ctx(), hold(k), mailbox.Settlement{Verdict: mailbox.Ack})
			return err
		},
		"extend":    func() error { _, err := down.Extend(w.ctx(), hold(k), lease); return err },
		"commit":    func() error { return down.Commit(w.ctx(), hold(k), mailbox.Commit{ID: "c"}) },
		"interrupt": func() error { _, err := down.Interrupt(w.ctx(), "t", mailbox.Interrupt{}); return err },
		"cancel":    func() error { _, _, err := down.Cancel(w.ctx(), "d1", ""); return err },
		"expire":    func() error { _, _, err := down.Expire(w.ctx(), "t"); return err },
		"dispatch":  func() error { _, _, err := down.Dispatch(w.ctx(), "d1"); return err },
		"run":       func() error { _, _, err := down.Run(w.ctx(), "run-d1"); return err },
		"head":      func() error { _, err := down.Head(w.ctx(), "t"); return err },
	} {
		if err := try(); !errors.Is(err, ErrInjected) {
			w.t.Errorf("%s on a store that is down: %v", name, err)
		}
	}
	equal(w.t, "status", w.load("d1").Status, mailbox.Claimed)
	w.settle(k, mailbox.Ack)
	w.idle("t")
}
