package mailboxtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// world is a store with a mailbox on it, which reads what others write.
type world struct {
	t     *testing.T
	store store.Store
	mail  *mailbox.Mailbox
	clock *Clock
	count int
}

func newWorld(t *testing.T, s store.Store) *world {
	t.Helper()
	w := &world{t: t, store: s, clock: NewClock()}
	w.mail = w.box(mailbox.Config{Store: s, Runtime: done{}, Now: w.clock.Now, Lease: mailbox.Lease{Skew: -1}})
	return w
}

// done is a runtime whose runs are done at once.
type done struct{}

func (done) Run(context.Context, *mailbox.Job) (mailbox.Result, error) {
	return mailbox.Result{Termination: "natural"}, nil
}

// box is a process on a store, by the real clock unless cfg has another one. It is not started, and closed at the end of the test.
func (w *world) box(cfg mailbox.Config) *mailbox.Mailbox {
	w.t.Helper()
	m, err := mailbox.New(w.ctx(), cfg)
	must(w.t, err)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			w.t.Error(err)
		}
	})
	return m
}

// submit queues a request for a thread that has one message, the name of the thread.
func (w *world) submit(m *mailbox.Mailbox, thread string) mailbox.Submission {
	w.t.Helper()
	sub, err := m.SubmitBackground(w.ctx(), mailbox.Request{Thread: thread, Messages: []mailbox.Input{{Data: []byte(thread)}}})
	must(w.t, err)
	return sub
}

// await waits until a dispatch is terminal, and checks how.
func (w *world) await(m *mailbox.Mailbox, dispatch string, want mailbox.Status) mailbox.Dispatch {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx(), time.Minute)
	defer cancel()
	d, err := m.Await(ctx, dispatch)
	if err != nil || d.Status != want {
		w.t.Fatalf("dispatch of thread %q is %s (attempts %d, last error %q): %v, want %s", d.Thread, d.Status, d.Attempts, d.LastError, err, want)
	}
	return d
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
	d, ok, err := w.mail.Dispatch(w.ctx(), id)
	must(w.t, err)
	if !ok {
		w.t.Fatalf("dispatch %q is not there", id)
	}
	return d
}

func (w *world) run(id string) mailbox.Run {
	w.t.Helper()
	r, ok, err := w.mail.Run(w.ctx(), id)
	must(w.t, err)
	if !ok {
		w.t.Fatalf("run %q is not there", id)
	}
	return r
}

func (w *world) record(thread string) mailbox.Thread {
	w.t.Helper()
	t, err := w.mail.Thread(w.ctx(), thread)
	must(w.t, err)
	return t
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// lease is how long claims of a manual process last.
const lease = 30 * time.Second

// list returns ids of a listing.
func (w *world) list(q mailbox.DispatchQuery) []string {
	w.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	list, err := w.mail.Dispatches(w.ctx(), q)
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

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}
