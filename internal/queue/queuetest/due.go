package queuetest

import (
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

func dueCases() []testCase {
	return []testCase{
		{"due_follows_the_life_of_a_dispatch", dueLife},
		{"due_tells_when_to_look_again", dueNext},
		{"due_order_and_fairness", dueOrder},
		{"due_by_priority_without_starving", duePriority},
		{"due_skips_tenants", dueSkips},
	}
}

func dueLife(w *world) {
	same(w.t, "due in an empty store", w.due())
	w.enqueue("t", "d1")
	same(w.t, "due when queued", w.due(), "t")
	k := w.claim("t")
	same(w.t, "due while claimed", w.due())
	w.clock.Add(lease)
	same(w.t, "due when the lease is over", w.due(), "t")
	_, err := w.queue.Extend(w.ctx(), hold(k), lease)
	must(w.t, err)
	same(w.t, "due after it was extended", w.due())
	_, err = w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Retry, RetryAt: w.clock.Now().Add(time.Minute)})
	must(w.t, err)
	same(w.t, "due before the retry", w.due())
	w.clock.Add(time.Minute)
	same(w.t, "due for the retry", w.due(), "t")
	w.settle(w.claim("t"), queue.Ack)
	same(w.t, "due at the end", w.due())
}

func dueNext(w *world) {
	at := w.clock.Now().Add(time.Minute)
	next := func() time.Time {
		_, next, err := w.queue.Due(w.ctx(), queue.DueQuery{By: w.clock.Now(), Limit: 10})
		must(w.t, err)
		return next
	}
	equal(w.t, "next in an empty store", next().IsZero(), true)
	w.enqueue("later", "d1", func(e *queue.Entry) { e.AvailableAt = at.Add(time.Hour) })
	w.enqueue("t", "d2", func(e *queue.Entry) { e.AvailableAt = at })
	w.enqueue("now", "d3")
	equal(w.t, "next", next(), at)
	w.clock.Add(time.Minute)
	equal(w.t, "next but one", next(), at.Add(time.Hour))
	same(w.t, "due", w.due(), "now", "t")
}

// A thread with a long queue takes turns with the others.
func dueOrder(w *world) {
	for i := range 3 {
		w.enqueue("long", fmt.Sprintf("l%d", i))
	}
	w.clock.Add(time.Millisecond)
	w.enqueue("short", "s")
	var got []string
	for range 4 {
		w.clock.Add(time.Millisecond)
		k := w.claim(w.due()[0])
		got = append(got, k.Dispatch.ID)
		w.settle(k, queue.Ack)
	}
	same(w.t, "order", got, "l0", "s", "l1", "l2")
}

func duePriority(w *world) {
	w.enqueue("normal", "d1")
	w.clock.Add(time.Second)
	w.enqueue("urgent", "d2", func(e *queue.Entry) { e.Priority = 0 })
	w.enqueue("idle", "d3", func(e *queue.Entry) { e.Priority = 255 })
	same(w.t, "due", w.due(), "urgent", "normal", "idle")
	w.clock.Add(time.Hour)
	w.enqueue("late", "d4", func(e *queue.Entry) { e.Priority = 0 })
	same(w.t, "due after an hour", w.due(), "urgent", "normal", "idle", "late")
}

func dueSkips(w *world) {
	for i := range 3 {
		w.enqueue(fmt.Sprintf("a%d", i), fmt.Sprintf("a%d", i), func(e *queue.Entry) { e.Tenant = "acme" })
	}
	w.clock.Add(time.Millisecond)
	w.enqueue("b", "b", func(e *queue.Entry) { e.Tenant = "other" })
	heads, _, err := w.queue.Due(w.ctx(), queue.DueQuery{By: w.clock.Now(), Limit: 2, Skip: []string{"acme", "nobody"}})
	must(w.t, err)
	if len(heads) != 1 || heads[0].ID != "b" {
		w.t.Errorf("due without a tenant: %v", heads)
	}
	heads, _, err = w.queue.Due(w.ctx(), queue.DueQuery{By: w.clock.Now(), Limit: 2})
	must(w.t, err)
	equal(w.t, "due with a limit", len(heads), 2)
	equal(w.t, "tenant", heads[0].Tenant, "acme")
}
