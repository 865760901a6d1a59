package mailboxtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/internal/queue"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// world is a store with a queue on it that reads what mailboxes write.
type world struct {
	t     *testing.T
	store store.Store
	queue *queue.Queue
	clock *Clock
	count int
}

func newWorld(t *testing.T, s store.Store) *world {
	t.Helper()
	w := &world{t: t, store: s, clock: NewClock()}
	var err error
	w.queue, err = queue.New(queue.Config{Store: s, Now: w.clock.Now, Skew: -1})
	must(t, err)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) ctx() context.Context { return w.t.Context() }

// id makes names: r1, r2.
func (w *world) id(prefix string) string {
	w.count++
	return fmt.Sprintf("%s%d", prefix, w.count)
}

func (w *world) load(id string) mailbox.Dispatch {
	w.t.Helper()
	d, ok, err := w.queue.Dispatch(w.ctx(), id)
	must(w.t, err)
	if !ok {
		w.t.Fatalf("dispatch %q is not there", id)
	}
	return d
}

func (w *world) run(id string) mailbox.Run {
	w.t.Helper()
	r, ok, err := w.queue.Run(w.ctx(), id)
	must(w.t, err)
	if !ok {
		w.t.Fatalf("run %q is not there", id)
	}
	return r
}

func (w *world) record(thread string) mailbox.Thread {
	w.t.Helper()
	t, err := w.queue.Thread(w.ctx(), thread)
	must(w.t, err)
	return t
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
