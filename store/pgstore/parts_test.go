package pgstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/pgtest"
	"github.com/mortise-dev/mortise/mailbox"
)

// durable is a server that flushes, for figures and for crashes.
func durable(tb testing.TB) *pgtest.Server {
	tb.Helper()
	s, err := pgtest.New(context.WithoutCancel(tb.Context()))
	pgtest.Need(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func newQueue(tb testing.TB, s mailbox.Store) *mailbox.Queue {
	tb.Helper()
	q, err := mailbox.NewQueue(mailbox.QueueConfig{Store: s, Depth: 1 << 30})
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

// cycle submits, claims and acknowledges on a thread of its own.
func cycle(ctx context.Context, q *mailbox.Queue, id string) error {
	thread := "thread-" + id
	_, err := q.Enqueue(ctx, mailbox.Entry{ID: id, Thread: thread, NewRun: "run-" + id, Priority: mailbox.PriorityDefault, MaxAttempts: 5, Request: make([]byte, 200)})
	if err != nil {
		return err
	}
	k, ok, err := q.Claim(ctx, thread, mailbox.ClaimRequest{Token: "token-" + id, Owner: "worker", Lease: time.Minute, Instance: "instance-" + id})
	if err != nil || !ok {
		return fmt.Errorf("claimed: %v, %w", ok, err)
	}
	_, err = q.Settle(ctx, mailbox.Hold{Thread: thread, Dispatch: k.Dispatch.ID, Token: k.Dispatch.Token}, mailbox.Settlement{
		Verdict: mailbox.Ack, Result: mailbox.Result{Status: mailbox.RunDone, Termination: "natural"},
	})
	return err
}
