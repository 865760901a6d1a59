package mailboxtest

import (
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

func dueCases() []testCase {
	return []testCase{
		{"due_order_and_fairness", dueOrder},
		{"due_by_priority_without_starving", duePriority},
		{"due_skips_tenants", dueSkips},
	}
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
	records, _, err := w.queue.Due(w.ctx(), queue.DueQuery{By: w.clock.Now(), Limit: 2, Skip: []string{"acme", "unknown"}})
	must(w.t, err)
	if len(records) != 1 || records[0].ID != "b" {
		w.t.Errorf("due without a tenant: %v", records)
	}
	records, _, err = w.queue.Due(w.ctx(), queue.DueQuery{By: w.clock.Now(), Limit: 2})
	must(w.t, err)
	equal(w.t, "due with a limit", len(records), 2)
	equal(w.t, "tenant", records[0].Tenant, "acme")
}
