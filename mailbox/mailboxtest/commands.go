package mailboxtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

func commandCases() []testCase {
	return []testCase{
		{"commands_reach_the_holder_of_a_dispatch", commands},
		{"holder_is_notified_of_what_concerns_its_claim", recalled},
	}
}

func commands(w *world) {
	w.enqueue("t", "d1")
	if ok, err := deliver(w.t, w.queue, "early"); ok || err != nil {
		w.t.Errorf("delivered before it was claimed: %v, %v", ok, err)
	}
	k := w.claim("t")
	var mu sync.Mutex
	var received []string
	stop, err := w.queue.Listen(w.ctx(), "d1", func(_ context.Context, c queue.Command) bool {
		mu.Lock()
		defer mu.Unlock()
		received = append(received, c.ID+string(c.Payload))
		return c.ID != "refuse"
	}, func() {})
	must(w.t, err)
	other := w.newQueue(w.store)
	for id, want := range map[string]bool{"a": true, "refuse": false} {
		if ok, err := deliver(w.t, other, id); ok != want || err != nil {
			w.t.Errorf("command %s was accepted: %v, %v, want %v", id, ok, err, want)
		}
	}
	stop()
	stop()
	mu.Lock()
	defer mu.Unlock()
	equal(w.t, "commands", len(received), 2)
	same(w.t, "received", sorted(received), "ax", "refusex")
	w.settle(k, queue.Ack)
	if ok, err := deliver(w.t, other, "over"); ok || err != nil {
		w.t.Errorf("delivered after the end: %v, %v", ok, err)
	}
}

func deliver(t *testing.T, q *queue.Queue, id string) (bool, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return q.Deliver(ctx, "t", "d1", queue.Command{ID: id, Payload: []byte("x")})
}

// recalled holds that a holder is notified, so that it renews its lease at once and finds why.
func recalled(w *world) {
	for thread, change := range map[string]func(q *queue.Queue, thread string) error{
		"cancelled": func(q *queue.Queue, thread string) error { _, _, err := q.Cancel(w.ctx(), thread, "stop"); return err },
		"interrupted": func(q *queue.Queue, thread string) error {
			_, err := q.Interrupt(w.ctx(), thread, queue.Interrupt{})
			return err
		},
		"paused": func(q *queue.Queue, thread string) error { _, err := q.Pause(w.ctx(), thread, true); return err },
	} {
		w.enqueue(thread, thread)
		w.claim(thread)
		changed := make(chan struct{}, 10)
		stop, err := w.queue.Listen(w.ctx(), thread, func(context.Context, queue.Command) bool { return false }, func() { changed <- struct{}{} })
		must(w.t, err)
		must(w.t, change(w.newQueue(w.store), thread))
		select {
		case <-changed:
		case <-time.After(30 * time.Second):
			w.t.Errorf("the holder of the thread that is %s was not notified", thread)
		}
		stop()
	}
}
