package mailboxtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// Clock is a time that only moves when it is told to.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts at a fixed time.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves it.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a store with a queue on it.
type world struct {
	t     *testing.T
	store mailbox.Store
	queue *mailbox.Queue
	clock *Clock
	count int
}

const lease = 30 * time.Second

func newWorld(t *testing.T, store mailbox.Store) *world {
	t.Helper()
	w := &world{t: t, store: store, clock: NewClock()}
	w.queue = w.newQueue(store)
	return w
}

// newQueue makes another queue on a store, as in another process.
func (w *world) newQueue(store mailbox.Store) *mailbox.Queue {
	w.t.Helper()
	q, err := mailbox.NewQueue(mailbox.QueueConfig{Store: store, Now: w.clock.Now, Skew: -1})
	must(w.t, err)
	return q
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

// entry is one that is due now, with the default priority.
func (w *world) entry(thread, id string) mailbox.Entry {
	return mailbox.Entry{
		ID: id, Thread: thread, NewRun: "run-" + id, Priority: mailbox.PriorityDefault, MaxAttempts: 5, Request: []byte("request " + id),
	}
}

func (w *world) enqueue(thread, id string, change ...func(*mailbox.Entry)) mailbox.Dispatch {
	w.t.Helper()
	e := w.entry(thread, id)
	for _, f := range change {
		f(&e)
	}
	taken, err := w.queue.Enqueue(w.ctx(), e)
	must(w.t, err)
	return taken.Dispatch
}

func (w *world) request() mailbox.ClaimRequest {
	return mailbox.ClaimRequest{Token: w.id("token"), Owner: "worker", Lease: lease, Instance: w.id("instance")}
}

// claim claims what must be there to claim.
func (w *world) claim(thread string) mailbox.Taken {
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

func hold(k mailbox.Taken) mailbox.Hold {
	return mailbox.Hold{Thread: k.Dispatch.Thread, Dispatch: k.Dispatch.ID, Token: k.Dispatch.Token}
}

func (w *world) settle(k mailbox.Taken, v mailbox.Verdict) mailbox.Dispatch {
	w.t.Helper()
	taken, err := w.queue.Settle(w.ctx(), hold(k), mailbox.Settlement{Verdict: v, Error: "boom"})
	must(w.t, err)
	return taken.Dispatch
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

func (w *world) head(thread string) mailbox.Head {
	w.t.Helper()
	h, err := w.queue.Head(w.ctx(), thread)
	must(w.t, err)
	return h
}

// list returns ids of a listing.
func (w *world) list(q mailbox.DispatchQuery) []string {
	w.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	list, err := w.store.Dispatches(w.ctx(), q)
	must(w.t, err)
	return ids(list)
}

func ids(list []mailbox.Dispatch) []string {
	var out []string
	for i := range list {
		out = append(out, list[i].ID)
	}
	return out
}

// due returns the threads that are due.
func (w *world) due() []string {
	w.t.Helper()
	heads, _, err := w.store.Due(w.ctx(), mailbox.DueQuery{By: w.clock.Now(), Limit: 100})
	must(w.t, err)
	var out []string
	for i := range heads {
		out = append(out, heads[i].Thread)
	}
	return out
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}
