package natsstore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
)

// shortContract takes threads through a life on a store that is slow to open: the whole suite runs on
// one server.
func shortContract(t *testing.T, store mailbox.Store) {
	t.Helper()
	clock := mailboxtest.NewClock()
	q := newQueue(t, store, clock.Now)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			if _, err := q.Enqueue(ctx, newEntry("short", fmt.Sprint("short", i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, err := q.Enqueue(ctx, newEntry("shorter", "short0"))
	if !errors.Is(err, mailbox.ErrExists) {
		t.Errorf("an id of another thread: %v", err)
	}
	first, ok, err := q.Claim(ctx, "short", claim("a"))
	must(err)
	if !ok {
		t.Fatal("nothing to claim")
	}
	if _, ok, err = q.Claim(ctx, "short", claim("b")); ok || err != nil {
		t.Errorf("a second claim of the thread: %v, %v", ok, err)
	}
	must(q.Commit(ctx, hold(first), mailbox.Commit{ID: "c", Append: []mailbox.Message{{ID: "m", Data: []byte("a")}}, Image: []byte("i")}))
	clock.Add(time.Hour)
	if _, ok, err = q.Expire(ctx, "short"); !ok || err != nil {
		t.Fatalf("not expired: %v, %v", ok, err)
	}
	if _, ok, err = q.Claim(ctx, "short", claim("c")); !ok || err != nil {
		t.Fatalf("not claimed again: %v, %v", ok, err)
	}
	if err := q.Commit(ctx, hold(first), mailbox.Commit{ID: "d", From: 1, Append: []mailbox.Message{{ID: "n"}}}); !errors.Is(err, mailbox.ErrConflict) {
		t.Errorf("written beside the heir: %v", err)
	}
	_, err = q.Interrupt(ctx, "short", mailbox.Interrupt{})
	must(err)
	log, err := store.Messages(ctx, "short", 1, 10)
	must(err)
	list, err := store.Dispatches(ctx, mailbox.DispatchQuery{Thread: "short", Statuses: []mailbox.Status{mailbox.Superseded}, Limit: 10})
	must(err)
	if len(log) != 1 || len(list) != 3 {
		t.Errorf("%d messages and %d superseded dispatches, want 1 and 3", len(log), len(list))
	}
	clock.Add(time.Hour)
	_, _, err = q.Expire(ctx, "short")
	must(err)
	must(q.Drop(ctx, "short"))
	heads, err := store.Threads(ctx, mailbox.ThreadQuery{Limit: 10})
	must(err)
	if len(heads) != 0 {
		t.Errorf("threads after the drop: %v", heads)
	}
}

func newQueue(tb testing.TB, store mailbox.Store, now func() time.Time) *mailbox.Queue {
	tb.Helper()
	q, err := mailbox.NewQueue(mailbox.QueueConfig{Store: store, Now: now, Skew: -1})
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

func newEntry(thread, id string) mailbox.Entry {
	return mailbox.Entry{ID: id, Thread: thread, NewRun: "run-" + id, Priority: mailbox.PriorityDefault, MaxAttempts: 5, Request: []byte("request " + id), Digest: id}
}

func claim(token string) mailbox.ClaimRequest {
	return mailbox.ClaimRequest{Token: token, Owner: "worker", Lease: time.Minute, Instance: token}
}

func hold(k mailbox.Taken) mailbox.Hold {
	return mailbox.Hold{Thread: k.Dispatch.Thread, Dispatch: k.Dispatch.ID, Token: k.Dispatch.Token}
}
