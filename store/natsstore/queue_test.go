package natsstore_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// headBytes is how long the head of the only thread of a stream is.
func headBytes(t *testing.T, url, name string) int {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	msg, err := s.GetLastMsgForSubject(t.Context(), name+".h.*")
	if err != nil {
		t.Fatal(err)
	}
	return len(msg.Data)
}

// A long queue is in pages: its head stays short, and its order is kept whatever leaves it and comes back. Another process
// reads the same.
func TestLongQueue(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := open(t, named("queue"))
	q := newQueue(t, store, time.Now)
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not a secret
	const entries, gone = 150, 80
	want := make([]mailbox.Entry, 0, entries)
	for i := range entries {
		e := newEntry("t", fmt.Sprint("d", i))
		e.Priority = uint8(r.IntN(3)) //nolint:gosec // small
		if i == 77 {
			e.Dedupe = "only"
		}
		if _, err := q.Enqueue(ctx, e); err != nil {
			t.Fatal(err)
		}
		want = append(want, e)
	}
	if n := headBytes(t, servertest.URL(t), "queue"); n > 12_000 {
		t.Errorf("the head of %d entries has %d bytes", entries, n)
	}
	for range gone {
		i := r.IntN(len(want))
		if _, ok, err := q.Cancel(ctx, want[i].ID, "no more"); !ok || err != nil {
			t.Fatalf("cancel %s: %v, %v", want[i].ID, ok, err)
		}
		want = slices.Delete(want, i, i+1)
	}
	for i := range entries / 4 {
		e := newEntry("t", fmt.Sprint("late", i))
		e.Priority = uint8(r.IntN(3)) //nolint:gosec // small
		if _, err := q.Enqueue(ctx, e); err != nil {
			t.Fatal(err)
		}
		want = append(want, e)
	}
	slices.SortStableFunc(want, func(a, b mailbox.Entry) int { return cmp.Compare(a.Priority, b.Priority) })
	other := open(t, named("queue"))
	s, err := other.Load(ctx, "t", mailbox.Need{Queued: true, Dedupe: "only"})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, 0, len(want))
	dedupe := ""
	for _, e := range want {
		ids = append(ids, e.ID)
		if e.Dedupe != "" {
			dedupe = e.ID
		}
	}
	if !slices.Equal(s.Queued, ids) || len(s.Dispatches) != len(ids) || s.Duplicate != dedupe {
		t.Fatalf("another process reads %d of %d in the order %v, want %v; the key is that of %q, want %q", len(s.Dispatches), len(ids), s.Queued, ids, s.Duplicate, dedupe)
	}
	for i, id := range ids[:40] {
		by := []*mailbox.Queue{q, newQueue(t, other, time.Now)}[i%2]
		k, ok, err := by.Claim(ctx, "t", claim(fmt.Sprint("token", i)))
		if err != nil || !ok || k.Dispatch.ID != id {
			t.Fatalf("claimed %q, want %q: %v, %v", k.Dispatch.ID, id, ok, err)
		}
		if i == 0 {
			if _, err := by.Settle(ctx, hold(k), mailbox.Settlement{Verdict: mailbox.GiveBack}); err != nil {
				t.Fatal(err)
			}
			if k, ok, err = by.Claim(ctx, "t", claim("again")); err != nil || !ok || k.Dispatch.ID != id {
				t.Fatalf("claimed %q after it was given back, want %q: %v, %v", k.Dispatch.ID, id, ok, err)
			}
		}
		if _, err := by.Settle(ctx, hold(k), mailbox.Settlement{Verdict: mailbox.Ack}); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Drop(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	if n := records(t, servertest.URL(t), "queue.x.>"); n != 0 {
		t.Errorf("%d records are left of the thread", n)
	}
}
