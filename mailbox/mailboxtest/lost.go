package mailboxtest

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// ledger is an observer that lists what became terminal.
type ledger struct{ settled []string }

func (*ledger) Operation(ctx context.Context, _ mailbox.Operation) (context.Context, func(mailbox.OperationResult, error)) {
	return ctx, func(mailbox.OperationResult, error) {}
}

func (*ledger) Execution(ctx context.Context, _ *mailbox.Job) (context.Context, func(mailbox.Outcome, error)) {
	return ctx, func(mailbox.Outcome, error) {}
}

func (l *ledger) Settled(_ context.Context, k mailbox.Taken) {
	l.settled = append(l.settled, k.Dispatch.ID+" "+string(k.Dispatch.Status))
}

func (*ledger) Signal(context.Context, mailbox.SignalEvent) {}

// losing is a queue that does not hear of its first updates, though they are made.
func (w *world) losing(updates int) (*mailbox.Queue, *ledger) {
	w.t.Helper()
	l := &ledger{}
	plan := func(_ context.Context, operation string) Fault {
		if operation != "update" || updates == 0 {
			return FaultNone
		}
		updates--
		return FaultAfter
	}
	q, err := mailbox.NewQueue(mailbox.QueueConfig{
		Store: &Faulty{Store: w.store, Plan: plan}, Now: w.clock.Now, Skew: -1, Observers: []mailbox.Observer{l},
	})
	must(w.t, err)
	return q, l
}

// lostInterrupt holds that an interrupt of which nobody heard says what it superseded when it is asked for again, by the
// queue itself and by whoever asked for it, and of nothing else.
func lostInterrupt(w *world) {
	w.enqueue("t", "before")
	w.interrupt("t")
	w.enqueue("t", "active")
	w.claim("t")
	w.enqueue("t", "d1")
	w.enqueue("t", "d2")
	w.enqueue("t", "kept", func(e *mailbox.Entry) { e.Origin = "internal" })
	i := mailbox.Interrupt{ID: "i", Keep: func(d mailbox.Dispatch) bool { return d.Origin == "internal" }}
	q, l := w.losing(1)
	first, err := q.Interrupt(w.ctx(), "t", i)
	must(w.t, err)
	same(w.t, "superseded", ids(first.Superseded), "d1", "d2")
	same(w.t, "told", l.settled, "d1 superseded", "d2 superseded")
	equal(w.t, "kept", first.Kept, 1)
	if first.Active == nil || first.Active.Dispatch.ID != "active" {
		w.t.Errorf("active is %+v", first.Active)
	}
	w.clock.Add(time.Second)
	again, err := q.Interrupt(w.ctx(), "t", i)
	must(w.t, err)
	same(w.t, "superseded, when asked again", ids(again.Superseded), "d1", "d2")
	equal(w.t, "epoch, when asked again", again.Epoch, first.Epoch)
	same(w.t, "told, when asked again", l.settled, "d1 superseded", "d2 superseded")

	_, err = w.queue.Settle(w.ctx(), hold(*first.Active), mailbox.Settlement{Verdict: mailbox.Supersede})
	must(w.t, err)
	w.claim("t") // what was kept goes on
	again, err = q.Interrupt(w.ctx(), "t", i)
	must(w.t, err)
	same(w.t, "superseded, long after", ids(again.Superseded), "d1", "d2")
	if again.Active != nil {
		w.t.Errorf("what came later counts as active: %+v", again.Active)
	}
}

// lostExpiry holds that an expiry of which nobody heard says what it ended, once.
func lostExpiry(w *world) {
	w.enqueue("t", "d1", func(e *mailbox.Entry) { e.MaxAttempts = 2 })
	for attempt, want := range []struct {
		status mailbox.Status
		told   []string
	}{{mailbox.Queued, nil}, {mailbox.DeadLetter, []string{"d1 dead_letter"}}} {
		w.claim("t")
		w.clock.Add(2 * lease)
		q, l := w.losing(2)
		k, ok, err := q.Expire(w.ctx(), "t")
		must(w.t, err)
		if !ok || k.Dispatch.ID != "d1" || k.Dispatch.Status != want.status || k.Dispatch.Attempts != attempt+1 {
			w.t.Errorf("expired: %v, %+v", ok, k.Dispatch)
		}
		same(w.t, "told", l.settled, want.told...)
		if _, ok, err := q.Expire(w.ctx(), "t"); ok || err != nil {
			w.t.Errorf("expired twice: %v, %v", ok, err)
		}
	}
}

// lostLapse holds that a lapse of which nobody heard says which run it ended, once.
func lostLapse(w *world) {
	w.waits("t", "d1", w.clock.Now().Add(time.Hour))
	w.clock.Add(2 * time.Hour)
	q, _ := w.losing(2)
	run, err := q.Lapse(w.ctx(), "t")
	must(w.t, err)
	equal(w.t, "run", run, "run-d1")
	equal(w.t, "its status", w.run("run-d1").Status, mailbox.RunDone)
	run, err = q.Lapse(w.ctx(), "t")
	must(w.t, err)
	equal(w.t, "run of a second lapse", run, "")
}

// lostEnd holds that observers hear once of what ended, also if nobody heard of that at first.
func lostEnd(w *world) {
	w.enqueue("t", "d1")
	w.enqueue("t", "d2")
	q, l := w.losing(1)
	k := w.claim("t")
	for range 2 {
		_, err := q.Settle(w.ctx(), hold(k), mailbox.Settlement{Verdict: mailbox.Ack})
		must(w.t, err)
	}
	same(w.t, "told", l.settled, "d1 acked")
	q, l = w.losing(2)
	for range 2 {
		_, ok, err := q.Cancel(w.ctx(), "d2", "no more")
		must(w.t, err)
		equal(w.t, "cancelled", ok, true)
	}
	same(w.t, "told", l.settled, "d2 cancelled")
}

// outdated is a store that decides on a state from long ago first, and then as it should, and whose first answer is lost.
type outdated struct {
	mailbox.Store

	state *mailbox.State
}

func (o *outdated) Update(ctx context.Context, thread string, need mailbox.Need, decide func(mailbox.State) (mailbox.Change, error)) error {
	old := o.state
	o.state = nil
	if old != nil {
		if _, err := decide(*old); err != nil {
			return err
		}
	}
	err := o.Store.Update(ctx, thread, need, decide)
	if err == nil && old != nil {
		err = ErrInjected
	}
	return err
}

// lostOther holds that what another process did at the same moment is not taken for an own deed, whatever was decided before the store said
// so.
func lostOther(w *world) {
	queue := func(thread string) *mailbox.Queue {
		s, err := w.store.Load(w.ctx(), thread, mailbox.Need{Claimed: true, RunsOf: true, Next: true, Now: w.clock.Now()})
		must(w.t, err)
		return w.newQueue(&outdated{Store: w.store, state: &s})
	}
	w.enqueue("claimed", "d1")
	w.claim("claimed")
	w.waits("waiting", "d2", w.clock.Now().Add(lease))
	w.clock.Add(2 * lease)
	late, later := queue("claimed"), queue("waiting")
	w.expire("claimed")
	if k, ok, err := late.Expire(w.ctx(), "claimed"); ok || err != nil {
		w.t.Errorf("expired what had expired: %+v, %v", k.Dispatch, err)
	}
	run, err := w.queue.Lapse(w.ctx(), "waiting")
	must(w.t, err)
	equal(w.t, "lapsed", run, "run-d2")
	run, err = later.Lapse(w.ctx(), "waiting")
	must(w.t, err)
	equal(w.t, "lapsed again", run, "")
}
