package pgstore_test

import (
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/pgstore"
)

func TestStore_modelOfTwo(t *testing.T) {
	t.Parallel()
	mailboxtest.TestModel(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		c := config(t)
		return mailboxtest.InTurns(open(t, c), open(t, c))
	}, 300)
}

// TestStore_oneRoundTrip holds that a transition of a thread that was written here last is decided once, on what is remembered, that
// one which another pool has written is decided again, and that nothing is kept of a decision on what is out of date.
func TestStore_oneRoundTrip(t *testing.T) {
	t.Parallel()
	c := config(t)
	one, other := open(t, c), open(t, c)
	step := func(s *pgstore.Store, want uint64) (decided int) {
		t.Helper()
		err := s.Update(t.Context(), "t", mailbox.Need{}, func(s mailbox.State) (mailbox.Change, error) {
			decided++
			h := s.Head
			h.Epoch, h.UpdatedAt = h.Epoch+1, time.Now()
			return mailbox.Change{Head: &h}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := other.Load(t.Context(), "t", mailbox.Need{})
		if err != nil || got.Head.Epoch != want {
			t.Errorf("epoch is %d (%v), want %d", got.Head.Epoch, err, want)
		}
		return decided
	}
	for i, test := range []struct {
		store *pgstore.Store
		want  int
	}{{one, 1}, {one, 1}, {other, 2}, {one, 2}, {one, 1}, {other, 2}} {
		if n := step(test.store, uint64(i)+1); n != test.want { //nolint:gosec // an index
			t.Errorf("step %d was decided %d times, want %d", i, n, test.want)
		}
	}
}
