package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// Two processes, as far as the database can tell, work on the same threads.
func TestStore_twoPools(t *testing.T) {
	t.Parallel()
	const threads, each, workers = 4, 8, 6
	c := config(t)
	stores := []*pgstore.Store{open(t, c), open(t, c)}
	first := newQueue(t, stores[0])
	for i := range threads * each {
		_, err := first.Enqueue(t.Context(), mailbox.Entry{ID: fmt.Sprint("d", i), Thread: fmt.Sprint("t", i%threads), NewRun: fmt.Sprint("r", i), MaxAttempts: 3})
		if err != nil {
			t.Fatal(err)
		}
	}
	var busy [threads]atomic.Int32
	var done atomic.Int32
	var wg sync.WaitGroup
	for i := range workers {
		s := stores[i%2]
		q := newQueue(t, s)
		wg.Go(func() {
			for n := 0; done.Load() < threads*each && !t.Failed(); n++ {
				heads, _, err := s.Due(t.Context(), mailbox.DueQuery{By: time.Now(), Limit: threads})
				if err != nil {
					t.Error(err)
				}
				for j := range heads {
					if carryOut(t, q, heads[j].Thread, fmt.Sprint(i, "-", n, "-", j), &busy) {
						done.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range threads {
		thread := fmt.Sprint("t", i)
		log, err := stores[1].Messages(t.Context(), thread, 1, 100)
		if err != nil || len(log) != each {
			t.Errorf("log of %s has %d messages: %v", thread, len(log), err)
		}
	}
}

func carryOut(t *testing.T, q *mailbox.Queue, thread, token string, busy *[4]atomic.Int32) bool {
	t.Helper()
	k, ok, err := q.Claim(t.Context(), thread, mailbox.ClaimRequest{Token: token, Owner: "w", Lease: time.Minute})
	if err != nil {
		t.Error(err)
	}
	if err != nil || !ok {
		return false
	}
	at := &busy[thread[1]-'0']
	if at.Add(1) != 1 {
		t.Errorf("two claims of %s at once", thread)
	}
	h := mailbox.Hold{Thread: thread, Dispatch: k.Dispatch.ID, Token: token}
	err = q.Commit(t.Context(), h, mailbox.Commit{ID: token, From: k.Head.Messages, Append: []mailbox.Message{{ID: token}}})
	at.Add(-1)
	_, settled := q.Settle(t.Context(), h, mailbox.Settlement{Verdict: mailbox.Ack})
	if err = errors.Join(err, settled); err != nil {
		t.Error(err)
	}
	return err == nil
}

// Many processes write to a new thread at once: one makes it, the others find it.
func TestStore_newThreadAtOnce(t *testing.T) {
	t.Parallel()
	c := config(t)
	queues := []*mailbox.Queue{newQueue(t, open(t, c)), newQueue(t, open(t, c))}
	const threads, racers = 8, 6
	for n := range threads {
		var wg sync.WaitGroup
		for i := range racers {
			wg.Go(func() {
				id := fmt.Sprintf("d%d-%d", n, i)
				_, err := queues[i%2].Enqueue(t.Context(), mailbox.Entry{ID: id, Thread: fmt.Sprint("t", n), NewRun: "r" + id, MaxAttempts: 1})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		h, err := queues[0].Head(t.Context(), fmt.Sprint("t", n))
		if err != nil || h.Queued != racers || h.Seq != racers {
			t.Errorf("head %+v: %v", h, err)
		}
	}
}

// A transition whose process stands still does not hold a thread for ever, and writes nothing
// when it goes on.
func TestStore_stalledTransition(t *testing.T) {
	t.Parallel()
	c := config(t)
	other := newQueue(t, open(t, c)) // it has its time: the machine may be busy
	c.IdleTimeout = 50 * time.Millisecond
	stalled := open(t, c)
	gone := make(chan struct{})
	result := make(chan error, 1)
	locked := make(chan struct{})
	go func() {
		once := sync.OnceFunc(func() {
			close(locked)
			<-gone
		})
		result <- stalled.Update(context.WithoutCancel(t.Context()), "t", mailbox.Need{}, func(st mailbox.State) (mailbox.Change, error) {
			once()
			st.Head.Epoch = 99
			return mailbox.Change{Head: &st.Head}, nil
		})
	}()
	// The thread has to be there for the lock to be.
	if _, err := other.Enqueue(t.Context(), mailbox.Entry{ID: "d0", Thread: "t", NewRun: "r0", MaxAttempts: 1}); err != nil {
		t.Fatal(err)
	}
	<-locked
	if _, err := other.Enqueue(t.Context(), mailbox.Entry{ID: "d1", Thread: "t", NewRun: "r1", MaxAttempts: 1}); err != nil {
		t.Fatal(err)
	}
	h, err := other.Head(t.Context(), "t")
	if err != nil || h.Seq != 2 {
		t.Errorf("head %+v: %v", h, err)
	}
	close(gone)
	if err := <-result; err != nil { // or it was done anew, on what is there now
		t.Log(err)
	}
	h, err = other.Head(t.Context(), "t")
	if err != nil || h.Seq != 2 || h.Queued != 2 {
		t.Errorf("head after a stalled transition: %+v: %v", h, err)
	}
}

// A purge leaves alone what a transition may be about to use, and goes on with the rest.
func TestStore_purgePassesLocks(t *testing.T) {
	t.Parallel()
	c := config(t)
	s := open(t, c)
	q := newQueue(t, s)
	for _, id := range []string{"1", "2"} {
		if err := cycle(t.Context(), q, id); err != nil {
			t.Fatal(err)
		}
	}
	conn := connect(t, c)
	if _, err := conn.Exec(t.Context(), `BEGIN`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT 1 FROM `+c.Schema+`.thread WHERE id = 'thread-1' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	purge := func() int {
		n, err := s.Purge(t.Context(), mailbox.PurgeQuery{Statuses: []mailbox.Status{mailbox.Acked}, Before: time.Now().Add(time.Hour), Limit: 10})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	if n := purge(); n != 1 {
		t.Errorf("dropped %d beside a lock, want 1", n)
	}
	if _, err := conn.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if n := purge(); n != 1 {
		t.Errorf("dropped %d without a lock, want 1", n)
	}
}
