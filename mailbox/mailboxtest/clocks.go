package mailboxtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// testClocks holds that leases do not depend on how the clocks of processes are set. Open opens one store
// twice, as two processes do.
func testClocks(t *testing.T, open func(t *testing.T) (one, other store.Store)) {
	t.Helper()
	for _, ahead := range []time.Duration{time.Minute, -time.Minute, time.Hour, -time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			one, other := open(t)
			f := &Faulty{Store: one} // has the clock of this process if the store has none
			clocksApart(newWorld(t, f), f, &Faulty{Store: other}, ahead)
		})
	}
}

// counted is a runtime that counts executions by dispatch. They last until they are released.
type counted struct {
	begun   chan struct{}
	release chan struct{}

	mu    sync.Mutex
	times map[string]int
}

func (c *counted) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	c.mu.Lock()
	c.times[j.Dispatch.ID]++
	c.mu.Unlock()
	c.begun <- struct{}{}
	select {
	case <-c.release:
		return mailbox.Result{Termination: "natural"}, nil
	case <-ctx.Done():
		return mailbox.Result{}, context.Cause(ctx)
	}
}

// rounds counts how often a process has asked what is due.
type rounds struct{ done chan struct{} }

func (r rounds) Operation(ctx context.Context, o mailbox.Operation) (context.Context, func(string, error)) {
	return ctx, func(string, error) {
		if o.Name == "due" {
			select {
			case r.done <- struct{}{}:
			default:
			}
		}
	}
}

func (rounds) Execution(ctx context.Context, _ *mailbox.Job) (context.Context, func(mailbox.Outcome, error)) {
	return ctx, func(mailbox.Outcome, error) {}
}
func (rounds) Settled(context.Context, mailbox.Dispatch, mailbox.Run) {}

// clocksApart lets one process execute jobs while another one, whose clock is ahead of that of the first one, polls for what is due. Each
// job is executed once, and its lease ends when it should by the store's clock.
func clocksApart(w *world, stores store.Clock, other store.Store, ahead time.Duration) {
	const jobs, enough = 20, 5
	clock := func(d time.Duration) func() time.Time {
		return func() time.Time { return time.Now().Add(d) }
	}
	c := &counted{begun: make(chan struct{}, 10*jobs), release: make(chan struct{}), times: map[string]int{}}
	looks := rounds{make(chan struct{}, enough)}
	a := w.box(mailbox.Config{Store: w.store, Runtime: c, Owner: "a", Poll: 20 * time.Millisecond, Now: clock(-ahead)})
	b := w.box(mailbox.Config{Store: other, Runtime: c, Owner: "b", Poll: 20 * time.Millisecond, Now: clock(0), Observers: []mailbox.Observer{looks}})
	must(w.t, a.Start(w.ctx()))
	var list []mailbox.Submission
	for i := range jobs {
		list = append(list, w.submit(a, fmt.Sprint("thread-", i)))
	}
	for range jobs {
		<-c.begun
	}
	now, err := stores.Time(w.ctx())
	must(w.t, err)
	for _, sub := range list {
		const inexact = 5 * time.Second // a busy machine reads the clock slowly
		if left := w.record(sub.Thread).Claim.Until.Sub(now); left > 30*time.Second+inexact || left < 0 {
			w.t.Errorf("the lease of %s ends in %v", sub.Thread, left)
		}
	}
	must(w.t, b.Start(w.ctx()))
	for range enough {
		<-looks.done
	}
	close(c.release)
	for _, sub := range list {
		if d := w.await(b, sub.Dispatch, mailbox.Acked); d.Attempts != 0 || d.Owner != "a" {
			w.t.Errorf("dispatch of %s failed %d times, and %s has it", d.Thread, d.Attempts, d.Owner)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, n := range c.times {
		if n != 1 {
			w.t.Errorf("dispatch %s was executed %d times", id, n)
		}
	}
	equal(w.t, "dispatches that were executed", len(c.times), jobs)
}
