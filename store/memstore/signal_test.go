package memstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

func ring(t *testing.T, s *memstore.Store, dispatch string) {
	t.Helper()
	err := s.Update(t.Context(), "t", mailbox.Need{}, func(mailbox.State) (mailbox.Change, error) {
		return mailbox.Change{Head: &mailbox.Head{Thread: "t"}, Signal: true, Dispatch: dispatch}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func pull(t *testing.T, s *memstore.Store, wait time.Duration) *mailbox.Signal {
	t.Helper()
	list, err := s.Pull(t.Context(), 10, wait)
	if err != nil || len(list) > 1 {
		t.Fatalf("%d signals, %v", len(list), err)
	}
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

func TestSignalsComeUntilTheyAreAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		ring(t, s, "d1")
		one := pull(t, s, time.Second)
		if one == nil || one.Dispatch != "d1" || one.Deliveries != 1 {
			t.Fatalf("signal is %+v", one)
		}
		if again := pull(t, s, time.Second); again != nil {
			t.Errorf("it came twice before it was answered: %+v", again)
		}
		if err := one.Receipt.Nack(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		two := pull(t, s, time.Hour)
		if two == nil || two.Deliveries != 2 || time.Since(begin) != time.Minute {
			t.Errorf("after %v: %+v", time.Since(begin), two)
		}
		// Nobody answers, and it comes again. A newer one takes its place.
		three := pull(t, s, time.Hour)
		ring(t, s, "d2")
		if err := three.Receipt.Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
		four := pull(t, s, time.Second)
		if three.Deliveries != 3 || four == nil || four.Dispatch != "d2" || four.Deliveries != 1 {
			t.Fatalf("after %+v came %+v", three, four)
		}
		if err := four.Receipt.Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
		if five := pull(t, s, time.Hour); five != nil {
			t.Errorf("after the acknowledgement: %+v", five)
		}
	})
}

func TestPullWakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		begin := time.Now()
		go func() {
			timer := time.NewTimer(time.Second)
			<-timer.C
			ring(t, s, "d1")
		}()
		if one := pull(t, s, time.Hour); one == nil || time.Since(begin) != time.Second {
			t.Errorf("after %v: %+v", time.Since(begin), one)
		}
	})
}
