package pgstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// The server is killed in the middle of work, again and again: nothing that was acknowledged is lost, and
// the same store goes on when it is back.
func TestStore_serverKilled(t *testing.T) {
	t.Parallel()
	const kills, writers = 5, 4
	server := durable(t)
	s := open(t, pgstore.Config{URL: server.URL()})
	q := newQueue(t, s)
	var mu sync.Mutex
	var acknowledged []string
	var count atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("d%d-%d", w, n)
				_, err := q.Enqueue(t.Context(), mailbox.Entry{ID: id, Thread: fmt.Sprint("t", n%3), NewRun: "r" + id, MaxAttempts: 3})
				if err == nil {
					mu.Lock()
					acknowledged = append(acknowledged, id)
					mu.Unlock()
					count.Add(1)
				}
			}
		})
	}
	for range kills {
		for before := count.Load(); count.Load() < before+20; {
			<-time.After(time.Millisecond)
		}
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	for _, id := range acknowledged {
		if _, found, err := s.Find(t.Context(), mailbox.KindDispatch, id); !found || err != nil {
			t.Errorf("dispatch %q was acknowledged; found: %v, %v", id, found, err)
		}
	}
	queued := 0
	for i := range 3 {
		h, err := q.Head(t.Context(), fmt.Sprint("t", i))
		if err != nil {
			t.Fatal(err)
		}
		queued += h.Queued
	}
	there, err := s.Count(t.Context())
	if err != nil || there.Status[mailbox.Queued] != queued || queued < len(acknowledged) {
		t.Errorf("%d acknowledged, %d queued as the heads say, %d in the table: %v", len(acknowledged), queued, there.Status[mailbox.Queued], err)
	}
	t.Logf("%d kills: %d acknowledged, %d there", kills, len(acknowledged), queued)
	// Signals that were sent before the store listened again are lost, those after that come.
	for n := 0; ; n++ {
		submit(t, s, fmt.Sprint("again", n), fmt.Sprint("again", n))
		list, err := s.Pull(t.Context(), 1, 500*time.Millisecond)
		if err != nil || n == 60 {
			t.Fatalf("no signal came: %v", err)
		}
		if len(list) > 0 {
			break
		}
	}
}

func openName(ctx context.Context, url string) (mailbox.Store, func(context.Context) error, error) {
	s, err := pgstore.Open(ctx, pgstore.Config{URL: url, Conns: 4})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

func TestStore_killed(t *testing.T) {
	t.Parallel()
	mailboxtest.TestCrash(t, openName, durable(t).URL())
}
