package background_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
)

// TestOneCommit shows that neither half of an end is ever seen alone: when no
// blocking task is left, its notice is there; when its notice is there, the task
// is not seen as running.
func TestOneCommit(t *testing.T) {
	t.Parallel()
	box, err := inbox.New(inbox.Config{Depth: 4})
	if err != nil {
		t.Fatal(err)
	}
	deliver := func(ctx context.Context, _ string, n abi.Notice) error { return box.Send(ctx, n) }
	m := newManager(t, background.Config{Deliver: deliver})
	for range 500 {
		id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		var wg sync.WaitGroup
		wg.Go(func() {
			n, err := box.Recv(t.Context())
			if err != nil || n.TaskID != id {
				t.Errorf("received %v %v", n, err)
			}
			if m.HasBlocking("a") || !status(t, m, id).Status.Terminal() {
				t.Error("the notice was there before the status")
			}
		})
		wg.Wait()
	}
	for range 500 {
		spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		for m.HasBlocking("a") {
			runtime.Gosched()
		}
		if n := len(box.Drain()); n != 1 {
			t.Fatalf("the task has ended and %d notices are there", n)
		}
	}
	closeManager(t, m)
}

// TestFullInboxDoesNotDeadlock ends more tasks than the owner has room for while
// the owner asks for their status before it reads.
func TestFullInboxDoesNotDeadlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box, err := inbox.New(inbox.Config{Depth: 1})
		if err != nil {
			t.Fatal(err)
		}
		deliver := func(ctx context.Context, _ string, n abi.Notice) error { return box.Send(ctx, n) }
		m := newManager(t, background.Config{Deliver: deliver})
		for range 8 {
			spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		}
		seen := map[string]int{}
		for m.HasBlocking("a") || box.Len() > 0 {
			for _, n := range box.Drain() {
				seen[n.TaskID]++
			}
			tick := time.NewTimer(time.Millisecond)
			<-tick.C
		}
		if len(seen) != 8 {
			t.Fatalf("%d of 8 tasks were reported", len(seen))
		}
		closeManager(t, m)
	})
}

// TestCloseGivesUpOnAFullInbox shows that Close ends although nobody reads.
func TestCloseGivesUpOnAFullInbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box, err := inbox.New(inbox.Config{Depth: 1})
		if err != nil {
			t.Fatal(err)
		}
		deliver := func(ctx context.Context, _ string, n abi.Notice) error { return box.Send(ctx, n) }
		m := newManager(t, background.Config{Deliver: deliver, Grace: time.Second})
		for range 3 {
			spawn(t, m, "a", untilCancelled)
		}
		closeManager(t, m)
		closeManager(t, m)
		for _, info := range m.List("a") {
			if info.Status != background.Cancelled {
				t.Fatalf("task is %+v", info)
			}
		}
	})
}

func TestCloseStopsWaitingWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Deliver: l.deliver, Grace: time.Hour})
		release := make(chan struct{})
		spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { <-release; return nil, nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("close: %v", err)
		}
		close(release)
		closeManager(t, m)
	})
}
