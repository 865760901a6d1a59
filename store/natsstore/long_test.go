package natsstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// cycle queues, claims and acknowledges.
func cycle(ctx context.Context, q *mailbox.Queue, thread, id string) error {
	if _, err := q.Enqueue(ctx, newEntry(thread, id)); err != nil {
		return err
	}
	k, ok, err := q.Claim(ctx, thread, claim("token-"+id))
	if err != nil || !ok {
		return errors.Join(err, fmt.Errorf("claimed %s: %v", id, ok))
	}
	_, err = q.Settle(ctx, hold(k), mailbox.Settlement{Verdict: mailbox.Ack, Result: mailbox.Result{Status: mailbox.RunDone, Termination: "natural"}})
	return err
}

// written is how many messages the stream of a store has ever had.
func written(tb testing.TB, url, name string) uint64 {
	tb.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		tb.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := js.Stream(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq
}

func named(name string) func(*natsstore.Config) {
	return func(c *natsstore.Config) { c.Name = name }
}

func TestCycleTakesFiveMessages(t *testing.T) {
	t.Parallel()
	q := newQueue(t, open(t, named("five")), time.Now)
	const cycles = 20
	before := written(t, servertest.URL(t), "five")
	for i := range cycles {
		if err := cycle(t.Context(), q, "t", fmt.Sprint("d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := written(t, servertest.URL(t), "five") - before; n != 5*cycles {
		t.Errorf("%d cycles took %d messages, want 5 each", cycles, n)
	}
}

// A thread with a history has pages. They must not be seen from outside.
func TestLongThread(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := open(t, named("long"))
	clock := mailboxtest.NewClock()
	q := newQueue(t, store, clock.Now)
	const cycles = 100
	before := written(t, servertest.URL(t), "long")
	for i := range cycles {
		if err := cycle(ctx, q, "t", fmt.Sprint("d", i)); err != nil {
			t.Fatal(err)
		}
		clock.Add(time.Second)
	}
	if n := written(t, servertest.URL(t), "long") - before; n != 5*cycles {
		t.Errorf("%d cycles took %d messages, want 5 each", cycles, n)
	}
	other := open(t, named("long"))
	list, err := other.Dispatches(ctx, mailbox.DispatchQuery{Thread: "t", Limit: 1000})
	if err != nil || len(list) != cycles {
		t.Fatalf("another process lists %d, %v", len(list), err)
	}
	for i := range list {
		if d := &list[i]; d.ID != fmt.Sprint("d", i) || d.Status != mailbox.Acked {
			t.Errorf("dispatch %d is %s, %s", i, d.ID, d.Status)
		}
	}
	r, ok, err := newQueue(t, other, clock.Now).Run(ctx, "run-d3")
	if err != nil || !ok || r.Status != mailbox.RunDone {
		t.Errorf("an old run: %+v, %v, %v", r, ok, err)
	}
	n, err := other.Purge(ctx, mailbox.PurgeQuery{Statuses: []mailbox.Status{mailbox.Acked}, Before: clock.Now().Add(-10 * time.Second), Limit: 1000})
	if err != nil || n != cycles-10 {
		t.Fatalf("dropped %d, %v", n, err)
	}
	if list, err = store.Dispatches(ctx, mailbox.DispatchQuery{Limit: 1000}); err != nil || len(list) != 10 || list[0].ID != "d90" {
		t.Errorf("%d are left, %v", len(list), err)
	}
	if _, ok, err := q.Dispatch(ctx, "d3"); ok || err != nil {
		t.Errorf("a dropped one is there: %v, %v", ok, err)
	}
	if err := q.Drop(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	if err := cycle(ctx, q, "t", "d95"); err != nil {
		t.Errorf("the names cannot be used again: %v", err)
	}
}

func TestLongLog(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := open(t)
	q := newQueue(t, store, time.Now)
	if _, err := q.Enqueue(ctx, newEntry("t", "d")); err != nil {
		t.Fatal(err)
	}
	k, _, err := q.Claim(ctx, "t", claim("a"))
	if err != nil {
		t.Fatal(err)
	}
	const batch, batches = 30, 5
	for b := range batches {
		c := mailbox.Commit{ID: fmt.Sprint("c", b), From: b * batch}
		for i := range batch {
			n := b*batch + i + 1
			c.Append = append(c.Append, mailbox.Message{ID: fmt.Sprint("m", n), Data: fmt.Append(nil, n)})
		}
		if err := q.Commit(ctx, hold(k), c); err != nil {
			t.Fatal(err)
		}
	}
	change := mailbox.Commit{ID: "change", From: batch * batches, Replace: []mailbox.Message{{Seq: 10, ID: "m10", Data: []byte("new")}, {Seq: 149, ID: "m149", Data: []byte("new")}}}
	if err := q.Commit(ctx, hold(k), change); err != nil {
		t.Fatal(err)
	}
	bad := mailbox.Commit{ID: "bad", From: batch * batches, Replace: []mailbox.Message{{Seq: 11, ID: "m10"}}}
	if err := q.Commit(ctx, hold(k), bad); !errors.Is(err, mailbox.ErrConflict) {
		t.Errorf("a message in the place of another: %v", err)
	}
	log, err := store.Messages(ctx, "t", 1, 1000)
	if err != nil || len(log) != batch*batches {
		t.Fatalf("%d messages, %v", len(log), err)
	}
	for i, m := range log {
		want := fmt.Sprint(i + 1)
		if i+1 == 10 || i+1 == 149 {
			want = "new"
		}
		if m.Seq != i+1 || m.ID != fmt.Sprint("m", i+1) || string(m.Data) != want || m.At.IsZero() {
			t.Errorf("message %d is %+v", i+1, m)
		}
	}
}

// Some MiB are more than a server takes in one message.
func TestLargeRecords(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	q := newQueue(t, open(t), time.Now)
	large := func(fill string) []byte { return bytes.Repeat([]byte(fill), 3<<20) }
	e := newEntry("t", "d")
	e.Request = large("r")
	if _, err := q.Enqueue(ctx, e); err != nil {
		t.Fatal(err)
	}
	k, ok, err := q.Claim(ctx, "t", claim("a"))
	if err != nil || !ok || !bytes.Equal(k.Dispatch.Request, e.Request) {
		t.Fatalf("claimed with %d bytes: %v, %v", len(k.Dispatch.Request), ok, err)
	}
	for i, fill := range []string{"a", "b"} {
		c := mailbox.Commit{ID: fill, From: i, Image: large(fill), Data: large(fill), Append: []mailbox.Message{{ID: fill, Data: large(fill)}}}
		if err := q.Commit(ctx, hold(k), c); err != nil {
			t.Fatal(err)
		}
	}
	r, ok, err := q.Run(ctx, "run-d")
	if err != nil || !ok || !bytes.Equal(r.Data, large("b")) {
		t.Errorf("data of the run: %d bytes, %v, %v", len(r.Data), ok, err)
	}
}

// Several processes submit and work on the same threads.
func TestProcessesShareAStream(t *testing.T) {
	t.Parallel()
	const processes, each = 3, 8
	var wg sync.WaitGroup
	store := open(t, named("shared"))
	for p := range processes {
		q := newQueue(t, open(t, named("shared")), time.Now)
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d-%d", p, i)
				if _, err := q.Enqueue(t.Context(), newEntry("t", id)); err != nil {
					t.Error(err)
				}
				k, ok, err := q.Claim(t.Context(), "t", claim(id))
				if err != nil {
					t.Error(err)
				}
				if ok {
					if _, err := q.Settle(t.Context(), hold(k), mailbox.Settlement{Verdict: mailbox.Ack}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	heads, err := store.Threads(t.Context(), mailbox.ThreadQuery{Limit: 10})
	if err != nil || len(heads) != 1 || heads[0].Seq != processes*each {
		t.Fatalf("threads: %+v, %v", heads, err)
	}
	list, err := store.Dispatches(t.Context(), mailbox.DispatchQuery{Thread: "t", Limit: 1000})
	if err != nil || len(list) != processes*each {
		t.Errorf("%d dispatches, %v", len(list), err)
	}
	c, err := store.Count(t.Context())
	if err != nil || c.Status[mailbox.Acked]+c.Status[mailbox.Queued] != processes*each || c.Status[mailbox.Queued] != heads[0].Queued {
		t.Errorf("counts: %+v, %v; the head has %d queued", c, err, heads[0].Queued)
	}
}

func TestIDsDoNotMeetAcrossThreads(t *testing.T) {
	t.Parallel()
	store := open(t, named("race"))
	const racers = 6
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range racers {
		q := newQueue(t, store, time.Now)
		wg.Go(func() {
			e := newEntry(fmt.Sprint("t", i), fmt.Sprint("d", i))
			e.NewRun = "the-run"
			_, err := q.Enqueue(t.Context(), e)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !errors.Is(err, mailbox.ErrExists) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d threads have the run", won)
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, b := open(t, named("signals")), open(t, named("signals"))
	q := newQueue(t, a, time.Now)
	if _, err := q.Enqueue(ctx, newEntry("t", "d")); err != nil {
		t.Fatal(err)
	}
	first := pull(t, b)
	if first.Thread != "t" || first.Dispatch != "d" || first.Deliveries != 1 {
		t.Errorf("the signal is %+v", first)
	}
	if list, err := a.Pull(ctx, 10, 0); err != nil || len(list) != 0 {
		t.Errorf("it came to somebody else, too: %+v, %v", list, err)
	}
	const delay = 300 * time.Millisecond
	start := time.Now()
	if err := first.Receipt.Nack(ctx, delay); err != nil {
		t.Fatal(err)
	}
	again := pull(t, a)
	if took := time.Since(start); again.Thread != "t" || again.Deliveries != 2 || took < delay {
		t.Errorf("after %v it came again as %+v", took, again)
	}
	if err := again.Receipt.Ack(ctx); err != nil {
		t.Fatal(err)
	}
	if err := cycle(ctx, q, "other", "x"); err != nil {
		t.Fatal(err)
	}
	if list, err := b.Pull(ctx, 10, 0); err != nil || len(list) != 0 {
		t.Errorf("signals when nothing is due: %+v, %v", list, err)
	}
}

func pull(t *testing.T, s *natsstore.Store) mailbox.Signal {
	t.Helper()
	for range 20 {
		list, err := s.Pull(t.Context(), 1, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			return list[0]
		}
	}
	t.Fatal("no signal came")
	return mailbox.Signal{}
}

// A command reaches a run in another process, and only who listened last.
func TestLiveBetweenProcesses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, b, c := open(t, named("lines")), open(t, named("lines")), open(t, named("lines"))
	target := mailbox.Target{Thread: "t.*", Run: "r", Dispatch: "d"}
	heard := make(chan string, 10)
	listen := func(s *natsstore.Store, name string) func() {
		stop, err := s.Listen(ctx, target, func(_ context.Context, c mailbox.Command) bool {
			heard <- name + c.ID
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	command := mailbox.Command{Kind: mailbox.CommandCancel, ID: "1", Payload: []byte("p")}
	stop := listen(a, "a")
	if ok, err := c.Deliver(ctx, target, command); !ok || err != nil {
		t.Errorf("not delivered: %v, %v", ok, err)
	}
	stopB := listen(b, "b")
	stop()
	if ok, err := c.Deliver(ctx, target, command); !ok || err != nil {
		t.Errorf("not delivered to the second: %v, %v", ok, err)
	}
	stopB()
	if ok, err := c.Deliver(ctx, target, command); ok || err != nil {
		t.Errorf("delivered to nobody: %v, %v", ok, err)
	}
	close(heard)
	var got []string
	for h := range heard {
		got = append(got, h)
	}
	if strings.Join(got, " ") != "a1 b1" {
		t.Errorf("heard %q", got)
	}
}
