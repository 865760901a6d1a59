package mailboxtest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func slowCases() []testCase {
	return []testCase{
		{"slow_store_and_a_lease_that_ran_out_meanwhile", slowHolder},
		{"slow_renewal_ends_the_run_with_its_lease", slowRenewal},
	}
}

// slowHolder holds that what a holder asks for while its lease runs out and another one takes the thread is refused when the store gets to
// it: it takes nothing from the other one, and writes nothing.
func slowHolder(w *world) {
	for name, late := range map[string]func(*mailbox.Queue, mailbox.Taken) error{
		"extend": func(q *mailbox.Queue, k mailbox.Taken) error {
			_, err := q.Extend(w.ctx(), hold(k), lease)
			return err
		},
		"commit": func(q *mailbox.Queue, k mailbox.Taken) error {
			return q.Commit(w.ctx(), hold(k), mailbox.Commit{ID: "late", Append: []mailbox.Message{message("late", "late")}, Data: []byte("late")})
		},
		"ack": func(q *mailbox.Queue, k mailbox.Taken) error {
			_, err := q.Settle(w.ctx(), hold(k), mailbox.Settlement{Verdict: mailbox.Ack, Result: mailbox.Result{Status: mailbox.RunDone}})
			return err
		},
		"retry": func(q *mailbox.Queue, k mailbox.Taken) error {
			_, err := q.Settle(w.ctx(), hold(k), mailbox.Settlement{Verdict: mailbox.Retry, Error: "late"})
			return err
		},
	} {
		w.enqueue(name, name)
		k := w.claim(name)
		var heir mailbox.Taken
		slow := w.newQueue(&Faulty{Store: w.store, Plan: func(context.Context, string) Fault {
			if heir.Claim == nil { // the store takes its time
				w.clock.Add(lease + time.Second)
				w.expire(name)       //nolint:contextcheck // the test's own
				heir = w.claim(name) //nolint:contextcheck // the test's own
			}
			return FaultNone
		}})
		if err := late(slow, k); !errors.Is(err, mailbox.ErrConflict) {
			w.t.Errorf("%s when another one holds the thread: %v", name, err)
		}
		h := w.head(name)
		if h.Claim == nil || h.Claim.Token != heir.Claim.Token || !h.Claim.Until.Equal(heir.Claim.Until) || h.Messages != 0 {
			w.t.Errorf("after a late %s the thread is %+v, claimed by %+v; want the claim %+v", name, h, h.Claim, heir.Claim)
		}
		equal(w.t, "data of the run after a late "+name, len(w.run("run-"+name).Data), 0)
		w.settle(heir, mailbox.Ack)
		equal(w.t, "status", w.load(name).Status, mailbox.Acked)
	}
}

// slowRenewal holds that an execution ends with its lease when the store does not answer to its renewal, and that another process goes on
// then.
func slowRenewal(w *world) {
	var stuck atomic.Bool
	letGo := make(chan struct{})
	faulty := &Faulty{Store: w.store, Plan: func(_ context.Context, operation string) Fault {
		if operation == "update" && stuck.Load() {
			<-letGo // it does not even heed its context
		}
		return FaultNone
	}}
	ended := make(chan error, 1)
	here := w.newBox(mailbox.Config{
		Store: faulty, Runtime: watched{&stuck, ended}, Owner: "here", Lease: 2 * time.Second, Renew: 100 * time.Millisecond, CloseWait: 10 * time.Millisecond,
		Queue: mailbox.QueueConfig{Skew: -1},
	})
	must(w.t, here.Start(w.ctx()))
	sub := w.submit(here, "t")
	select {
	case err := <-ended:
		if !errors.Is(err, mailbox.ErrLeaseLost) {
			w.t.Errorf("the execution ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		close(letGo)
		w.t.Fatal("the execution goes on long after its lease")
	}
	heir := w.box(mailbox.Config{Store: w.store, Runtime: done{}, Owner: "heir", Poll: 10 * time.Millisecond, Queue: mailbox.QueueConfig{Skew: -1}})
	must(w.t, heir.Start(w.ctx()))
	equal(w.t, "owner", w.await(heir, sub.Dispatch, mailbox.Acked).Owner, "heir")
	stuck.Store(false)
	close(letGo)
	must(w.t, here.Close(w.ctx()))
	equal(w.t, "owner at last", w.load(sub.Dispatch).Owner, "heir")
}

// watched is a runtime whose store is stuck as soon as it runs, and that goes on until its context ends.
type watched struct {
	stuck *atomic.Bool
	ended chan<- error
}

func (r watched) Run(ctx context.Context, _ *mailbox.Job) (mailbox.Result, error) {
	r.stuck.Store(true)
	<-ctx.Done()
	r.ended <- context.Cause(ctx)
	return mailbox.Result{}, context.Cause(ctx)
}
