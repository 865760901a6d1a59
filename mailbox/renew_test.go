package mailbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// lateStore applies the first change after it was switched on, and answers 5 s later. Others it answers after 20 s, whatever their context.
type lateStore struct {
	plain

	on    atomic.Bool
	asked atomic.Int32
}

func (s *lateStore) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if !s.on.Load() {
		return s.Store.Apply(ctx, b)
	}
	if s.asked.Add(1) > 1 {
		time.Sleep(20 * time.Second)
		return 0, context.DeadlineExceeded
	}
	defer time.Sleep(5 * time.Second)
	return s.Store.Apply(ctx, b)
}

// TestLateRenewal: a lease counts from before it was asked for: an execution ends with its lease, not with the time that the store took to
// answer added to it.
func TestLateRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &lateStore{plain: plain{memstore.New()}}
		var ended time.Time
		run := &script{do: func(ctx context.Context, _ *mailbox.Job) (mailbox.Result, error) {
			if !ended.IsZero() {
				return mailbox.Result{}, nil // the next one, when the thread is free again
			}
			<-ctx.Done()
			ended = time.Now()
			if !errors.Is(context.Cause(ctx), mailbox.ErrLeaseLost) {
				t.Errorf("the execution ends with %v", context.Cause(ctx))
			}
			s.on.Store(false)
			return mailbox.Result{}, context.Cause(ctx)
		}}
		m := started(t, mailbox.Config{Runtime: run, Store: s, Lease: mailbox.Lease{Duration: 10 * time.Second, Renew: 4 * time.Second, Skew: -1}})
		background(t, m, request("t", "x"))
		synctest.Wait()
		s.on.Store(true)
		began := time.Now()
		sleep(time.Minute)
		if after := ended.Sub(began); after != 14*time.Second {
			t.Errorf("the execution ended after %v, want 14 s: the renewal was asked for after 4", after)
		}
	})
}

// TestPoll_closed: a Mailbox that is closed polls no more, and what it was claiming when it was closed goes back to the queue.
func TestPoll_closed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowClaim{plain: plain{memstore.New()}}
		run := &script{}
		m := open(t, mailbox.Config{Runtime: run, Store: s})
		sub := background(t, m, request("t", "x"))
		s.on.Store(true)
		polled := make(chan error, 1)
		go func() {
			_, err := m.Poll(context.WithoutCancel(t.Context()))
			polled <- err
		}()
		sleep(500 * time.Millisecond)
		must(t, m.Close(t.Context()))
		must(t, <-polled)
		run.wantRan(t)
		other := open(t, mailbox.Config{Store: s})
		wantStatus(t, other, sub.Dispatch, mailbox.Queued)
		if _, err := m.Poll(t.Context()); !errors.Is(err, mailbox.ErrShutdown) {
			t.Errorf("a poll after Close: %v", err)
		}
	})
}

// slowClaim takes a second for each change.
type slowClaim struct {
	plain

	on atomic.Bool
}

func (s *slowClaim) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if s.on.Load() {
		time.Sleep(time.Second)
	}
	return s.Store.Apply(ctx, b)
}

// TestReserved_wait: a foreground request that is lost after it stopped what the thread did leaves the thread due when its waiting run has
// waited long enough.
func TestReserved_wait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &losing{plain: plain{memstore.New()}}
		s.left.Store(1000)
		run := &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
			return mailbox.Result{Status: mailbox.RunWaiting, Wait: "permission", WaitUntil: time.Now().Add(5 * time.Second)}, nil
		}}
		m := started(t, mailbox.Config{Runtime: run, Store: s})
		sub := background(t, m, request("t", "x"))
		synctest.Wait()
		s.left.Store(1) // the interrupt
		if _, err := m.Submit(t.Context(), request("t", "y")); !errors.Is(err, errLost) {
			t.Fatalf("submit: %v", err)
		}
		s.left.Store(1000)
		sleep(time.Minute)
		wantRun(t, m, sub.Run, mailbox.RunDone, mailbox.TerminationCancelled)
	})
}

var errLost = store.NotApplied(errors.New("lost"))

// losing applies so many changes, and fails for the others.
type losing struct {
	plain

	left atomic.Int32
}

func (s *losing) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if s.left.Add(-1) < 0 {
		return 0, errLost
	}
	return s.Store.Apply(ctx, b)
}
