package mailboxtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// world is a store with a queue on it, which reads what mailboxes write.
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
	w.queue = w.newQueue(s)
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

const lease = 30 * time.Second

// newQueue makes another queue on a store, as in another process.

func (w *world) newQueue(s store.Store) *queue.Queue {
	w.t.Helper()
	q, err := queue.New(queue.Config{Store: s, Now: w.clock.Now, Skew: -1})
	must(w.t, err)
	return q
}

// id makes names: r1, r2.

// entry is one that is due now, with the default priority.

func (w *world) entry(thread, id string) queue.Entry {
	return queue.Entry{
		ID: id, Thread: thread, NewRun: "run-" + id, Priority: queue.PriorityDefault, MaxAttempts: 5, Request: []byte("request " + id),
	}
}

func (w *world) enqueue(thread, id string, change ...func(*queue.Entry)) queue.Dispatch {
	w.t.Helper()
	e := w.entry(thread, id)
	for _, f := range change {
		f(&e)
	}
	taken, err := w.queue.Enqueue(w.ctx(), e)
	must(w.t, err)
	return taken.Dispatch
}

func (w *world) request() queue.ClaimRequest {
	return queue.ClaimRequest{Token: w.id("token"), Owner: "worker", Lease: lease, Instance: w.id("instance")}
}

// claim claims what must be there to claim.

func (w *world) claim(thread string) queue.State {
	w.t.Helper()
	taken, ok, err := w.queue.Claim(w.ctx(), thread, w.request())
	must(w.t, err)
	if !ok {
		w.t.Fatalf("nothing to claim of thread %q", thread)
	}
	return taken
}

// idle checks that there is nothing to claim.

func (w *world) idle(thread string) {
	w.t.Helper()
	taken, ok, err := w.queue.Claim(w.ctx(), thread, w.request())
	must(w.t, err)
	if ok {
		w.t.Fatalf("claimed %q of thread %q", taken.Dispatch.ID, thread)
	}
}

func hold(k queue.State) queue.Hold { return k.Hold() }

func (w *world) settle(k queue.State, v queue.Verdict) queue.Dispatch {
	w.t.Helper()
	taken, err := w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: v, Error: "boom"})
	must(w.t, err)
	return taken.Dispatch
}

// list returns ids of a listing.

func (w *world) list(q queue.DispatchQuery) []string {
	w.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	list, err := w.queue.Dispatches(w.ctx(), q)
	must(w.t, err)
	return ids(list)
}

func ids(list []queue.Dispatch) []string {
	var out []string
	for i := range list {
		out = append(out, list[i].ID)
	}
	return out
}

// due returns the threads that are due.

func (w *world) due() []string {
	w.t.Helper()
	list, _, err := w.queue.Due(w.ctx(), queue.DueQuery{By: w.clock.Now(), Limit: 100})
	must(w.t, err)
	var out []string
	for i := range list {
		out = append(out, list[i].ID)
	}
	return out
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}
