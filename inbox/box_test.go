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

func notice(i int) abi.Notice {
	return abi.Notice{Kind: abi.NoticeCustom, TaskID: fmt.Sprintf("bg_%d", i)}
}

func TestBox(t *testing.T) {
	t.Parallel()
	t.Run("send_and_drain", func(t *testing.T) {
		t.Parallel()
		b := inbox.NewBox(0, nil)
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
		if got := inbox.NewBox(0, nil).Drain(); len(got) != 0 {
			t.Fatalf("an empty box gave %v", got)
		}
	})
	t.Run("recv_in_order", func(t *testing.T) {
		t.Parallel()
		b := inbox.NewBox(0, nil)
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
	t.Run("put_back_comes_first", func(t *testing.T) {
		t.Parallel()
		b := inbox.NewBox(1, nil)
		select {
		case <-b.Ready():
			t.Fatal("an empty box is ready")
		default:
		}
		ready := b.Ready()
		_ = b.Send(t.Context(), notice(2))
		<-ready
		b.PutBack(notice(0), notice(1)) // there is no room for them
		<-b.Ready()
		if got := b.Unread(); len(got) != 3 || got[0].TaskID != "bg_0" || got[1].TaskID != "bg_1" || b.Len() != 3 {
			t.Fatalf("unread are %v", got)
		}
		if got := b.Drain(); len(got) != 3 || got[2].TaskID != "bg_2" || len(b.Unread()) != 0 {
			t.Fatalf("drained %v", got)
		}
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		b := inbox.NewBox(0, nil)
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
		b := inbox.NewBox(0, nil)
		_ = b.Send(t.Context(), notice(0))
		kept := b.Close()
		for i := 1; i < 3; i++ {
			if err := b.Send(t.Context(), notice(i)); errors.Is(err, inbox.ErrClosed) { // the sender gets the error, and has it still
				kept = append(kept, notice(i))
			}
		}
		if len(kept) != 3 || kept[0].TaskID != "bg_0" || kept[2].TaskID != "bg_2" || b.Len() != 0 {
			t.Fatalf("%v are kept, %d are in the box", kept, b.Len())
		}
	})
}

func TestBoxFull(t *testing.T) {
	t.Parallel()
	t.Run("waits_for_room", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := inbox.NewBox(2, nil)
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
			b := inbox.NewBox(1, nil)
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
	t.Run("close_refuses_waiting_senders", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var fell atomic.Int32
			b := inbox.NewBox(1, nil)
			_ = b.Send(t.Context(), notice(0))
			var wg sync.WaitGroup
			for i := range 3 {
				wg.Go(func() {
					if err := b.Send(t.Context(), notice(i)); errors.Is(err, inbox.ErrClosed) {
						fell.Add(1)
					}
				})
			}
			synctest.Wait()
			if got := b.Close(); len(got) != 1 {
				t.Fatalf("close gave %v", got)
			}
			wg.Wait()
			if fell.Load() != 3 {
				t.Fatalf("%d of 3 were refused", fell.Load())
			}
		})
	})
}

func TestRecvWakes(t *testing.T) {
	t.Parallel()
	t.Run("one_notice_wakes_one_reader", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := inbox.NewBox(0, nil)
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
			b := inbox.NewBox(0, nil)
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
			b := inbox.NewBox(0, nil)
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
// counts: every notice is read, handed back, or refused, exactly once.
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
			b := inbox.NewBox(16, nil)
			var wg sync.WaitGroup
			for s := range senders {
				wg.Go(func() {
					for i := range each {
						if err := b.Send(t.Context(), notice(s*each+i)); errors.Is(err, inbox.ErrClosed) {
							count(notice(s*each + i))
						} else if err != nil {
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
