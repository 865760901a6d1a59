package host_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/host"
)

// TestGate: one caller at a time comes through, and everyone does who has patience.
func TestGate(t *testing.T) {
	t.Parallel()
	enter, leave := host.NewGate()
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	contexts := []context.Context{impatient, t.Context(), t.Context(), t.Context()}
	inside, through := 0, 0 // what the gate guards
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			for range 500 {
				if err := enter(contexts[n%len(contexts)]); err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					continue
				}
				inside++
				if inside != 1 {
					t.Errorf("%d callers are inside", inside)
				}
				through++
				inside--
				leave()
			}
		})
	}
	wg.Wait()
	if through < 12*500 {
		t.Errorf("%d came through, and %d were patient", through, 12*500)
	}
}

// TestGateWakes: whoever waits comes in when the one before leaves, also when another
// has given up before.
func TestGateWakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		enter, leave := host.NewGate()
		if err := enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 3)
		go func() { done <- enter(ctx) }()
		synctest.Wait()
		for range 2 {
			go func() {
				err := enter(t.Context())
				leave()
				done <- err
			}()
		}
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
		leave()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}
