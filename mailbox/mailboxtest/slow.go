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
		{"slow_renewal_ends_the_run_with_its_lease", slowRenewal},
	}
}

// slowRenewal holds that an execution ends with its lease when the store does not answer to its renewal, and that another process continues
// then.
func slowRenewal(w *world) {
	var stuck atomic.Bool
	letGo := make(chan struct{})
	faulty := &Faulty{Store: w.store, Plan: func(_ context.Context, operation string) Fault {
		if operation == "apply" && stuck.Load() {
			<-letGo // it does not even heed its context
		}
		return FaultNone
	}}
	ended := make(chan error, 1)
	here := w.newBox(mailbox.Config{
		Store: faulty, Runtime: watched{&stuck, ended}, Owner: "here",
		Lease: mailbox.Lease{Duration: 2 * time.Second, Renew: 100 * time.Millisecond, Skew: -1},
		Waits: mailbox.Waits{Close: 10 * time.Millisecond},
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
		w.t.Fatal("the execution continues long after its lease")
	}
	heir := w.box(mailbox.Config{Store: w.store, Runtime: done{}, Owner: "heir", Poll: 10 * time.Millisecond, Lease: mailbox.Lease{Skew: -1}})
	must(w.t, heir.Start(w.ctx()))
	equal(w.t, "owner", w.await(heir, sub.Dispatch, mailbox.Acked).Owner, "heir")
	stuck.Store(false)
	close(letGo)
	must(w.t, here.Close(w.ctx()))
	equal(w.t, "owner at last", w.load(sub.Dispatch).Owner, "heir")
}

// watched is a runtime whose store is stuck as soon as it runs, and that continues until its context ends.
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
