package inbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

// TestRecvAll: all that is queued comes at once and in order, also when some of it was
// taken one by one, and those who wait for room get it.
func TestRecvAll(t *testing.T) {
	t.Parallel()
	t.Run("in_order_beside_the_other_ways", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, inbox.Config{})
		sent, next := 0, 0
		send := func(n int) {
			for range n {
				if err := b.Send(t.Context(), notice(sent)); err != nil {
					t.Fatal(err)
				}
				sent++
			}
		}
		check := func(got []abi.Notice, want int) {
			t.Helper()
			if len(got) != want {
				t.Fatalf("%d came, want %d", len(got), want)
			}
			for i := range got {
				if got[i].TaskID != notice(next).TaskID {
					t.Fatalf("%q came, want %q", got[i].TaskID, notice(next).TaskID)
				}
				next++
			}
		}
		recvAll := func(want int) {
			t.Helper()
			all, err := b.RecvAll(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			check(all, want)
		}
		for round := range 5 {
			send(20 + round)
			recvAll(20 + round)
			send(30)
			for range 10 {
				n, _ := b.TryRecv()
				check([]abi.Notice{n}, 1)
			}
			send(7)
			recvAll(27)
			send(3)
			check(b.Drain(), 3)
		}
		if s := b.Stats(); s.Accepted != uint64(sent) || s.Read != s.Accepted || b.Len() != 0 {
			t.Fatalf("of %d: %+v", sent, s)
		}
	})
	t.Run("lets_senders_in", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBox(t, inbox.Config{Depth: 2})
			for i := range 4 {
				go func() { _ = b.Send(t.Context(), notice(i)) }()
				synctest.Wait()
			}
			for i := range 2 {
				if all, err := b.RecvAll(t.Context()); err != nil || len(all) != 2 || all[0].TaskID != notice(2*i).TaskID {
					t.Fatalf("round %d: %+v, %v", i, all, err)
				}
				synctest.Wait()
			}
			if s := b.Stats(); s.Waiting != 0 || s.Waited != 2 || s.Read != 4 {
				t.Fatalf("%+v", s)
			}
		})
	})
	t.Run("ends_with_the_box_and_the_context", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, inbox.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.RecvAll(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled: %v", err)
		}
		b.Close()
		if _, err := b.RecvAll(t.Context()); !errors.Is(err, inbox.ErrClosed) {
			t.Fatalf("closed: %v", err)
		}
	})
}
