package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

// TestHub_Events: a read follows each notification, and the time is bounded.
func TestHub_Events(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := wait.Hub{Added: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancelCause(t.Context())
		reads := 0
		read := func(most int) func() ([]store.EventBatch, error) {
			return func() ([]store.EventBatch, error) {
				reads++
				return make([]store.EventBatch, max(0, reads-most)), nil
			}
		}
		done := make(chan int, 1)
		go func() {
			list, _ := hub.Events(ctx, "s", time.Hour, read(2))
			done <- len(list)
		}()
		<-hub.Added
		for range 2 {
			synctest.Wait()
			hub.Notify("other")
			hub.Notify("s")
		}
		if n := <-done; n != 1 || reads != 3 {
			t.Errorf("%d batches after %d reads", n, reads)
		}
		start := time.Now()
		if list, err := hub.Events(ctx, "s", time.Minute, read(100)); len(list) != 0 || err != nil || time.Since(start) != time.Minute {
			t.Errorf("got %v, %v after %v", list, err, time.Since(start))
		}
		cause := errors.New("over")
		cancel(cause)
		if _, err := hub.Events(ctx, "s", time.Minute, read(100)); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
		if hub.Watched() {
			t.Error("a watch is left")
		}
	})
}

// TestHub_Watch: a watch ends with its context, and receives what is notified while it lasts.
func TestHub_Watch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hub wait.Hub
		ctx, cancel := context.WithCancel(t.Context())
		c, err := hub.Watch(ctx, "topic")
		if err != nil {
			t.Fatal(err)
		}
		hub.Notify("topic")
		hub.NotifyAll() // both come as one
		<-c
		cancel()
		if _, more := <-c; more || hub.Watched() {
			t.Error("a watch is left")
		}
		hub.Notify("topic")
		if _, err := hub.Watch(ctx, "topic"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
