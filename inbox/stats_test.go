package inbox_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

func TestTry(t *testing.T) {
	t.Parallel()
	t.Run("try_send_does_not_invoke_closed_fallback", func(t *testing.T) {
		t.Parallel()
		var fell atomic.Int32
		b := newBox(t, inbox.Config{Depth: 1, Fallback: func(abi.Notice) { fell.Add(1) }})
		if err := b.TrySend(t.Context(), notice(0)); err != nil {
			t.Fatalf("try: %v", err)
		}
		if err := b.TrySend(t.Context(), notice(1)); !errors.Is(err, inbox.ErrFull) {
			t.Fatalf("try on a full box: %v", err)
		}
		b.Close()
		if err := b.TrySend(t.Context(), notice(2)); !errors.Is(err, inbox.ErrClosed) || fell.Load() != 0 || !b.Closed() {
			t.Fatalf("try on a closed box: %v, fallback called %d times", err, fell.Load())
		}
	})
	t.Run("try_recv_returns_none_on_empty", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, inbox.Config{})
		if n, ok := b.TryRecv(); ok {
			t.Fatalf("an empty box gave %+v", n)
		}
		_ = b.Send(t.Context(), notice(3))
		if n, ok := b.TryRecv(); !ok || n.TaskID != "bg_3" {
			t.Fatalf("received %+v %v", n, ok)
		}
		b.Close()
		if _, ok := b.TryRecv(); ok {
			t.Fatal("a closed box gave a notice")
		}
	})
}

// TestBackPressureIsVisible fills a box and reads the counts.
func TestBackPressureIsVisible(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t, inbox.Config{Depth: 2, Fallback: func(abi.Notice) {}})
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() { _ = b.Send(t.Context(), notice(i)) })
		}
		synctest.Wait()
		if s := b.Stats(); s.Waiting != 3 || s.Peak != 2 || s.Accepted != 2 {
			t.Fatalf("stats are %+v", s)
		}
		b.TryRecv()
		synctest.Wait()
		if s := b.Stats(); s.Waiting != 2 || s.Read != 1 || s.Accepted != 3 {
			t.Fatalf("stats are %+v", s)
		}
		b.Close()
		wg.Wait()
		if s := b.Stats(); s.Waiting != 0 || s.HandedBack != 2 || s.FellBack != 2 || s.Waited < 3 {
			t.Fatalf("stats are %+v", s)
		}
	})
}

// TestCloseThenDecide races the end of a run with the end of a task, thousands of
// times: the run closes its box and looks, the task sends. Whatever the order,
// exactly one of them has the notice (lost wake-up at the end of a run).
func TestCloseThenDecide(t *testing.T) {
	t.Parallel()
	for round := range 4 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			for range 2000 {
				synctest.Test(t, func(t *testing.T) {
					var woken atomic.Int32
					b := newBox(t, inbox.Config{Depth: 1, Fallback: func(abi.Notice) { woken.Add(1) }})
					var wg sync.WaitGroup
					for i := range 3 {
						wg.Go(func() {
							if err := b.Send(t.Context(), notice(i)); err != nil {
								t.Errorf("send: %v", err)
							}
						})
					}
					read := len(b.Drain())
					read += len(b.Close())
					wg.Wait()
					if read+int(woken.Load()) != 3 {
						t.Errorf("%d read, %d woke the run, of 3", read, woken.Load())
					}
				})
			}
		})
	}
}

// TestRoomIsGivenInOrder: senders that wait get the room of what is read, and that of a drain, in the order in which they came. The
// depth is kept.
func TestRoomIsGivenInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const depth, waiting = 20, 25
		b := newBox(t, inbox.Config{Depth: depth})
		var wg sync.WaitGroup
		for i := range depth + waiting {
			wg.Go(func() {
				if err := b.Send(t.Context(), notice(i)); err != nil {
					t.Errorf("send: %v", err)
				}
			})
			synctest.Wait() // one after the other
		}
		next := 0
		check := func(want int, got ...abi.Notice) {
			t.Helper()
			for i := range got {
				if got[i].TaskID != notice(next).TaskID {
					t.Fatalf("received %q, want %q", got[i].TaskID, notice(next).TaskID)
				}
				next++
			}
			synctest.Wait()
			if s := b.Stats(); s.Waiting != want || b.Len() != depth+waiting-want-next || s.Peak != depth {
				t.Fatalf("after %d: %d unread, %+v; want %d waiting", next, b.Len(), s, want)
			}
		}
		check(waiting)
		n, _ := b.TryRecv()
		check(waiting-1, n)
		check(waiting-1-depth, b.Drain()...)
		check(0, b.Drain()...)
		check(0, b.Drain()...)
		wg.Wait()
		if s := b.Stats(); s.Accepted != depth+waiting || s.Read != s.Accepted || s.Waited != waiting {
			t.Fatalf("stats are %+v", s)
		}
	})
}
