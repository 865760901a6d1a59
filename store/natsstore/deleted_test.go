package natsstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// TestConsumers_deleted holds that signals and what is due come again after somebody deleted all that they come through.
func TestConsumers_deleted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open(t, named("deleted"))
	q := newQueue(t, s, time.Now)
	if _, err := q.Enqueue(ctx, newEntry("t", "d")); err != nil {
		t.Fatal(err)
	}
	if err := pull(t, s).Receipt.Ack(ctx); err != nil {
		t.Fatal(err)
	}
	stream, err := s.Link().JS.Stream(ctx, "deleted")
	if err != nil {
		t.Fatal(err)
	}
	names := stream.ConsumerNames(ctx)
	for name := range names.Name() {
		if err := stream.DeleteConsumer(ctx, name); err != nil {
			t.Error(err)
		}
	}
	other := newQueue(t, open(t, named("deleted")), time.Now) // what s does not write itself it has to hear of
	if _, err := other.Enqueue(ctx, newEntry("u", "e")); err != nil {
		t.Fatal(err)
	}
	wantSignal(t, s, "u")
	for range 200 {
		due, _, err := s.Due(ctx, mailbox.DueQuery{By: time.Now(), Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(due, func(h mailbox.Head) bool { return h.Thread == "u" }) {
			return
		}
		_, _ = s.Pull(ctx, 1, 100*time.Millisecond) // some time passes
	}
	t.Error("a thread is not due that another process has queued something for")
}

// wantSignal pulls until a thread has a signal. Pulls may fail at first.
func wantSignal(t *testing.T, s mailbox.Signals, thread string) {
	t.Helper()
	var last error
	for range 40 {
		list, err := s.Pull(t.Context(), 10, 500*time.Millisecond)
		if err != nil {
			last = err
		}
		if slices.ContainsFunc(list, func(x mailbox.Signal) bool { return x.Thread == thread }) {
			return
		}
	}
	t.Errorf("no signal came for thread %q; the last error: %v", thread, last)
}
