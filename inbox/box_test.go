package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

func newBox(t *testing.T, cfg inbox.BoxConfig) *inbox.Box {
	t.Helper()
	b, err := inbox.NewBox(cfg)
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	return b
}

func notice(i int) abi.Notice {
	return abi.Notice{Kind: abi.NoticeCustom, TaskID: fmt.Sprintf("bg_%d", i)}
}

func TestNewRefusesNegativeDepth(t *testing.T) {
	t.Parallel()
	if _, err := inbox.NewBox(inbox.BoxConfig{Depth: -1}); err == nil {
		t.Fatal("a negative depth was accepted")
	}
}

func TestBox(t *testing.T) {
	t.Parallel()
	t.Run("send_and_drain", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, inbox.BoxConfig{})
		for i := range 5 {
			if err := b.Send(t.Context(), notice(i)); err != nil {
				t.Fatalf("send: %v", err)
			}
		}
		if b.Len() != 5 {
			t.Fatalf("Len is %d", b.Len())
		}
		got := b.Drain()
		for i := range 5 {
			if got[i].TaskID != notice(i).TaskID {
				t.Fatalf("notice %d is %q", i, got[i].TaskID)
			}
		}
		if again := b.Drain(); len(again) != 0 || b.Len() != 0 {
			t.Fatalf("drained twice: %v", again)
		}
	})
	t.Run("inbox_drain_empty_when_no_events", func(t *testing.T) {
		t.Parallel()
		if got := newBox(t, inbox.BoxConfig{}).Drain(); len(got) != 0 {
			t.Fatalf("an empty box gave %v", got)
		}
	})
	t.Run("recv_in_order", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, inbox.BoxConfig{})
		for i := range 3 {
			_ = b.Send(t.Context(), notice(i))
		}
		for i := range 3 {
			n, err := b.Recv(t.Context())
			if err != nil || n.TaskID != notice(i).TaskID {
				t.Fatalf("receive %d: %v %v", i, n, err)
			}
		}
	})
	t.Run("closed_without_fallback", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, inbox.BoxConfig{})
		_ = b.Send(t.Context(), notice(7))
		if left := b.Close(); len(left) != 1 || left[0].TaskID != "bg_7" {
			t.Fatalf("close gave %v", left)
		}
		if err := b.Send(t.Context(), notice(1)); !errors.Is(err, inbox.ErrClosed) {
			t.Fatalf("send: %v", err)
		}
		if _, err := b.Recv(t.Context()); !errors.Is(err, inbox.ErrClosed) {
			t.Fatalf("receive: %v", err)
		}
		if left := b.Close(); left != nil {
			t.Fatalf("second close gave %v", left)
		}
		if len(b.Drain()) != 0 {
			t.Fatal("a closed box still holds notices")
		}
	})
	t.Run("on_closed_fires_when_inbox_receiver_dropped", func(t *testing.T) {
		t.Parallel()
		var got []abi.Notice
		b := newBox(t, inbox.BoxConfig{Fallback: func(n abi.Notice) { got = append(got, n) }})
		b.Close()
		for i := range 3 {
			if err := b.Send(t.Context(), notice(i)); err != nil {
				t.Fatalf("send: %v", err)
			}
		}
		if len(got) != 3 || got[2].TaskID != "bg_2" {
			t.Fatalf("fallback got %v", got)
		}
	})
}

func TestBoxFull(t *testing.T) {
	t.Parallel()
	t.Run("waits_for_room", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBox(t, inbox.BoxConfig{Depth: 2})
			_ = b.Send(t.Context(), notice(0))
			_ = b.Send(t.Context(), notice(1))
			sent := make(chan error, 1)
			go func() { sent <- b.Send(t.Context(), notice(2)) }()
			synctest.Wait()
			select {
			case err := <-sent:
				t.Fatalf("a full box accepted a notice: %v", err)
			default:
			}
			if n, _ := b.Recv(t.Context()); n.TaskID != "bg_0" {
				t.Fatalf("received %v", n)
			}
			if err := <-sent; err != nil {
				t.Fatalf("send: %v", err)
			}
			if b.Len() != 2 {
				t.Fatalf("Len is %d", b.Len())
			}
		})
	})
	t.Run("gives_up_with_the_context", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBox(t, inbox.BoxConfig{Depth: 1})
			_ = b.Send(t.Context(), notice(0))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := b.Send(ctx, notice(1)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("send: %v", err)
			}
			if got := b.Close(); len(got) != 1 {
				t.Fatalf("a refused notice was kept: %v", got)
			}
		})
	})
	t.Run("close_sends_waiting_notices_to_the_fallback", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var fell atomic.Int32
			b := newBox(t, inbox.BoxConfig{Depth: 1, Fallback: func(abi.Notice) { fell.Add(1) }})
			_ = b.Send(t.Context(), notice(0))
			var wg sync.WaitGroup
			for i := range 3 {
				wg.Go(func() { _ = b.Send(t.Context(), notice(i)) })
			}
			synctest.Wait()
			if got := b.Close(); len(got) != 1 {
				t.Fatalf("close gave %v", got)
			}
			wg.Wait()
			if fell.Load() != 3 {
				t.Fatalf("fallback got %d of 3", fell.Load())
			}
		})
	})
}

func TestRecvWakes(t *testing.T) {
	t.Parallel()
	t.Run("one_notice_wakes_one_reader", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBox(t, inbox.BoxConfig{})
			got := make(chan abi.Notice, 1)
			for i := range 3 { // each time the box was empty before
				go func() {
					n, _ := b.Recv(t.Context())
					got <- n
				}()
				synctest.Wait()
				_ = b.Send(t.Context(), notice(i))
				if n := <-got; n.TaskID != notice(i).TaskID {
					t.Fatalf("received %+v", n)
				}
			}
		})
	})
	t.Run("every_waiting_reader", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBox(t, inbox.BoxConfig{})
			var wg sync.WaitGroup
			var got atomic.Int32
			for range 4 {
				wg.Go(func() {
					if _, err := b.Recv(t.Context()); err == nil {
						got.Add(1)
					}
				})
			}
			synctest.Wait()
			for i := range 4 {
				_ = b.Send(t.Context(), notice(i))
			}
			wg.Wait()
			if got.Load() != 4 {
				t.Fatalf("%d of 4 readers woke", got.Load())
			}
		})
	})
	t.Run("on_close_and_on_cancel", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBox(t, inbox.BoxConfig{})
			ctx, cancel := context.WithCancel(t.Context())
			errs := make(chan error, 2)
			go func() { _, err := b.Recv(ctx); errs <- err }()
			synctest.Wait()
			cancel()
			if err := <-errs; !errors.Is(err, context.Canceled) {
				t.Fatalf("receive: %v", err)
			}
			go func() { _, err := b.Recv(t.Context()); errs <- err }()
			synctest.Wait()
			b.Close()
			if err := <-errs; !errors.Is(err, inbox.ErrClosed) {
				t.Fatalf("receive: %v", err)
			}
		})
	})
}

// TestNothingIsLost races senders with drains, receives and the close, and
// counts: every notice is read, handed back, or falls back, exactly once.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	const senders, each = 8, 300
	for round := range 20 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			seen := map[string]int{}
			count := func(ns ...abi.Notice) {
				mu.Lock()
				defer mu.Unlock()
				for _, n := range ns {
					seen[n.TaskID]++
				}
			}
			b := newBox(t, inbox.BoxConfig{Depth: 16, Fallback: func(n abi.Notice) { count(n) }})
			var wg sync.WaitGroup
			for s := range senders {
				wg.Go(func() {
					for i := range each {
						if err := b.Send(t.Context(), notice(s*each+i)); err != nil {
							t.Errorf("send: %v", err)
						}
					}
				})
			}
			for range 200 + 40*round {
				n, err := b.Recv(t.Context())
				if err != nil {
					t.Fatalf("receive: %v", err)
				}
				count(n)
				count(b.Drain()...)
				if total(&mu, seen) > senders*each/2 {
					break
				}
			}
			count(b.Close()...)
			wg.Wait()
			for i := range senders * each {
				if seen[notice(i).TaskID] != 1 {
					t.Fatalf("notice %d was seen %d times", i, seen[notice(i).TaskID])
				}
			}
		})
	}
}

func total(mu *sync.Mutex, seen map[string]int) int {
	mu.Lock()
	defer mu.Unlock()
	return len(seen)
}
