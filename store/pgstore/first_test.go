package pgstore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// create makes a transition that adds a dispatch, its run and a message, and counts how often it is decided.
func create(t *testing.T, s *pgstore.Store, thread, id string) (decided int, err error) {
	t.Helper()
	err = s.Update(t.Context(), thread, mailbox.Need{Dispatches: []string{id}, Runs: []string{"run-" + id}}, func(s mailbox.State) (mailbox.Change, error) {
		decided++
		now, h := time.Now(), s.Head
		h.Thread, h.UpdatedAt, h.DueAt = thread, now, now
		h.Seq, h.Queued, h.Messages = h.Seq+1, h.Queued+1, h.Messages+1
		return mailbox.Change{
			Head: &h,
			Dispatches: []mailbox.Dispatch{{
				ID: id, Thread: thread, RunID: "run-" + id, Seq: h.Seq, Status: mailbox.Queued, AvailableAt: now, MaxAttempts: 1, CreatedAt: now, UpdatedAt: now,
				Request: []byte("request " + id),
			}},
			Runs:     []mailbox.Run{{ID: "run-" + id, Thread: thread, Status: mailbox.RunCreated, CreatedAt: now, UpdatedAt: now, Data: []byte("data " + id)}},
			Messages: []mailbox.Message{{Seq: h.Messages, ID: "message-" + id, Data: []byte("text " + id), At: now}},
		}, nil
	})
	return decided, err
}

// TestStore_firstOfThread holds that a thread nobody knows is made by what was decided once, that one which another pool made is
// decided again, and that an id of another thread is refused and leaves nothing behind.
func TestStore_firstOfThread(t *testing.T) {
	t.Parallel()
	c := config(t)
	one, other := open(t, c), open(t, c)
	for _, test := range []struct {
		store      *pgstore.Store
		thread, id string
		want       int
	}{{one, "t", "a", 1}, {other, "t", "b", 2}, {other, "u", "c", 1}} {
		if n, err := create(t, test.store, test.thread, test.id); err != nil || n != test.want {
			t.Errorf("%s in %s was decided %d times (%v), want %d", test.id, test.thread, n, err, test.want)
		}
	}
	got, err := one.Load(t.Context(), "t", mailbox.Need{Queued: true, Requests: true, Runs: []string{"run-a", "run-b"}})
	if err != nil || got.Head.Seq != 2 || got.Head.Messages != 2 || len(got.Dispatches) != 2 {
		t.Errorf("the thread has %+v (%v), want both dispatches", got, err)
	}
	for _, id := range []string{"a", "b"} {
		if r, d := string(got.Dispatches[id].Request), string(got.Runs["run-"+id].Data); r != "request "+id || d != "data "+id {
			t.Errorf("%s has request %q and data %q", id, r, d)
		}
	}
	if _, err := create(t, one, "new", "c"); !errors.Is(err, mailbox.ErrExists) {
		t.Errorf("an id of another thread gives %v, want %v", err, mailbox.ErrExists)
	}
	if got, err := other.Load(t.Context(), "new", mailbox.Need{}); err != nil || got.Head.Seq != 0 || got.Head.Messages != 0 {
		t.Errorf("what was refused left %+v (%v)", got.Head, err)
	}
}

// TestStore_firstAtOnce holds that of those who make a thread at once each adds to what the others made.
func TestStore_firstAtOnce(t *testing.T) {
	t.Parallel()
	c := config(t)
	const each = 4
	var stores []*pgstore.Store
	for range 3 {
		stores = append(stores, open(t, c))
	}
	for round := range 5 {
		thread := fmt.Sprint("t", round)
		var wg sync.WaitGroup
		for i, s := range stores {
			for n := range each {
				wg.Go(func() {
					if _, err := create(t, s, thread, fmt.Sprint("d", round, "-", i, "-", n)); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		got, err := stores[0].Load(t.Context(), thread, mailbox.Need{Queued: true})
		want := each * len(stores)
		if err != nil || got.Head.Seq != uint64(want) || got.Head.Messages != want || len(got.Queued) != want { //nolint:gosec // it is small
			t.Errorf("round %d: seq %d, %d messages, %d queued (%v), want %d of each", round, got.Head.Seq, got.Head.Messages, len(got.Queued), err, want)
		}
	}
}
