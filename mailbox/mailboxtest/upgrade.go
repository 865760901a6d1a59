package mailboxtest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// TestUpgrade holds that what an earlier version of a store wrote is whole, and goes on. It fills a new store with threads of each kind;
// earlier makes one of the earlier version with the same rows, and opens it with this program.
func TestUpgrade(t *testing.T, store mailbox.Store, earlier func(t *testing.T) mailbox.Store) {
	t.Helper()
	w := newWorld(t, store)
	claimed := w.fill()
	want := w.everything()
	v := &world{t: t, store: earlier(t), clock: w.clock, count: w.count}
	v.queue = v.newQueue(v.store)
	got := v.everything()
	for name, part := range want {
		if !reflect.DeepEqual(got[name], part) {
			t.Errorf("%s is\n%+v, was\n%+v", name, got[name], part)
		}
	}
	v.goOn(claimed)
}

// fill makes threads that are queued, claimed, waiting, ended, and with a log. It returns what is claimed.
func (w *world) fill() mailbox.Taken {
	w.t.Helper()
	w.enqueue("queued", "q1", func(e *mailbox.Entry) { e.Dedupe, e.Tenant, e.Origin, e.Digest = "key", "acme", "user", "sum" })
	w.enqueue("queued", "q2", func(e *mailbox.Entry) {
		e.Tenant, e.AvailableAt, e.Priority = "acme", w.clock.Now().Add(time.Hour), mailbox.PriorityHighest
	})
	w.waits("waiting", "w1", w.clock.Now().Add(time.Minute))
	for i, verdict := range []mailbox.Verdict{mailbox.Ack, mailbox.Bury, mailbox.Withdraw, mailbox.Supersede, mailbox.Retry} {
		thread := "ended-" + string(verdict)
		w.enqueue(thread, fmt.Sprint("e", i))
		w.settle(w.claim(thread), verdict)
	}
	w.enqueue("claimed", "c1", func(e *mailbox.Entry) { e.Tenant = "acme" })
	k := w.claim("claimed")
	must(w.t, w.queue.Commit(w.ctx(), hold(k), mailbox.Commit{
		ID: "commit", Append: []mailbox.Message{{ID: "m1", Run: "run-c1", Data: []byte("one")}, {ID: "m2", Data: []byte{0, 255}}}, Image: []byte("image"), Data: []byte("data"),
	}))
	return k
}

// everything is what a store has, by what it is.
func (w *world) everything() map[string]any {
	w.t.Helper()
	out := map[string]any{}
	heads, err := w.store.Threads(w.ctx(), mailbox.ThreadQuery{Limit: 100})
	must(w.t, err)
	out["the list of threads"] = heads
	for _, h := range heads {
		list, err := w.store.Dispatches(w.ctx(), mailbox.DispatchQuery{Thread: h.Thread, Limit: 100})
		must(w.t, err)
		s, err := w.store.Load(w.ctx(), h.Thread, mailbox.Need{
			Dispatches: ids(list), Claimed: true, Dedupe: "key", Next: true, Now: w.clock.Now(), Queued: true, Requests: true, RunsOf: true, Image: true,
		})
		must(w.t, err)
		log, err := w.store.Messages(w.ctx(), h.Thread, 1, 100)
		must(w.t, err)
		out["thread "+h.Thread], out["list of "+h.Thread], out["log of "+h.Thread] = s, list, log
	}
	counts, err := w.store.Count(w.ctx())
	must(w.t, err)
	claims, err := w.store.Claims(w.ctx())
	must(w.t, err)
	due, next, err := w.store.Due(w.ctx(), mailbox.DueQuery{By: w.clock.Now(), Limit: 100})
	must(w.t, err)
	out["counts"], out["claims"], out["what is due"], out["what is next"] = counts, claims, due, next
	return out
}

// goOn takes what was filled in to its end.
func (w *world) goOn(k mailbox.Taken) {
	w.t.Helper()
	must(w.t, w.queue.Commit(w.ctx(), hold(k), mailbox.Commit{ID: "more", From: 2, Append: []mailbox.Message{{ID: "m3"}}, Replace: []mailbox.Message{{Seq: 1, ID: "m1", Data: []byte("new")}}}))
	w.clock.Add(lease + time.Minute)
	_, ok, err := w.queue.Expire(w.ctx(), "claimed")
	must(w.t, err)
	equal(w.t, "the lease has expired", ok, true)
	w.settle(w.claim("claimed"), mailbox.Ack)
	equal(w.t, "log", len(w.log("claimed", 1, 100)), 3)
	run, err := w.queue.Lapse(w.ctx(), "waiting")
	must(w.t, err)
	equal(w.t, "the run whose wait is over", run, "run-w1")
	equal(w.t, "first of the queue", w.settle(w.claim("queued"), mailbox.Ack).ID, "q1")
	w.clock.Add(time.Hour)
	equal(w.t, "then", w.settle(w.claim("queued"), mailbox.Ack).ID, "q2")
	_, err = w.queue.Replay(w.ctx(), "e1", "again")
	must(w.t, err)
	for _, thread := range w.due() {
		w.settle(w.claim(thread), mailbox.Ack)
	}
	same(w.t, "queued", w.threads(mailbox.ThreadQuery{Queued: true}))
	n, err := w.store.Purge(w.ctx(), mailbox.PurgeQuery{Statuses: terminal, Before: w.clock.Now().Add(time.Hour), Limit: 100})
	must(w.t, err)
	equal(w.t, "dropped", n, 9)
	counts, err := w.store.Count(w.ctx())
	must(w.t, err)
	for status, left := range counts.Status {
		equal(w.t, "left "+string(status), left, 0)
	}
}
