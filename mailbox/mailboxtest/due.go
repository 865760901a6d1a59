package mailboxtest

import (
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func dueCases() []testCase {
	return []testCase{
		{"due_order_and_fairness", dueOrder},
		{"due_by_priority_without_starving", duePriority},
		{"due_skips_tenants", dueSkips},
		{"race_one_claim_at_once_for_a_thread", raceWork},
	}
}

// single is a process with one worker.
func single(c *mailbox.Config) { c.Limits.Workers = 1 }

// order executes what is due, and returns in which order.
func (m *manual) order(clock *Clock) (ids []string) {
	m.t.Helper()
	for {
		clock.Add(time.Millisecond)
		begun := m.poll()
		if len(begun) == 0 {
			return ids
		}
		ids = append(ids, begun[0].Dispatch.ID)
		m.finish(begun[0], mailbox.Result{}, nil)
	}
}

// A thread with a long queue takes turns with the others.
func dueOrder(w *world) {
	m := w.manual(single)
	for i := range 3 {
		m.queue("long", fmt.Sprintf("l%d", i))
	}
	w.clock.Add(time.Millisecond)
	m.queue("short", "s")
	same(w.t, "order", m.order(w.clock), "l0", "s", "l1", "l2")
}

func duePriority(w *world) {
	m := w.manual(single)
	m.queue("normal", "normal")
	w.clock.Add(time.Second)
	m.queue("urgent", "urgent", func(r *mailbox.Request) { r.Priority = -128 })
	m.queue("idle", "idle", func(r *mailbox.Request) { r.Priority = 127 })
	w.clock.Add(time.Hour)
	m.queue("late", "late", func(r *mailbox.Request) { r.Priority = -128 })
	same(w.t, "order", m.order(w.clock), "urgent", "normal", "idle", "late")
}

func dueSkips(w *world) {
	m := w.manual(func(c *mailbox.Config) { c.Limits.Workers, c.Limits.TenantWorkers = 2, 1 })
	for i := range 3 {
		m.queue(fmt.Sprint("a", i), fmt.Sprint("a", i), func(r *mailbox.Request) { r.Tenant = "acme" })
	}
	w.clock.Add(time.Millisecond)
	m.queue("b", "b", func(r *mailbox.Request) { r.Tenant = "other" })
	must(w.t, w.mail.Pause(w.ctx(), "acme"))
	begun := m.poll()
	equal(w.t, "executions while a tenant is paused", len(begun), 1)
	equal(w.t, "dispatch", begun[0].Dispatch.ID, "b")
	must(w.t, w.mail.Resume(w.ctx(), "acme"))
	for range 3 {
		more := m.poll()
		equal(w.t, "executions of a tenant that has one worker", len(more), 1)
		equal(w.t, "tenant", more[0].Request.Tenant, "acme")
		equal(w.t, "more of them", len(m.poll()), 0)
		m.finish(more[0], mailbox.Result{}, nil)
	}
}

// raceWork holds that processes that all want the same threads have one execution of each at a time.
func raceWork(w *world) {
	const threads, each, processes = 2, 6, 4
	r := newWorker()
	var subs []mailbox.Submission
	for i := range threads * each {
		sub, err := w.mail.SubmitBackground(w.ctx(), mailbox.Request{Thread: fmt.Sprint("t", i%threads), Messages: []mailbox.Input{{ID: fmt.Sprint(i)}}})
		must(w.t, err)
		subs = append(subs, sub)
	}
	for range processes {
		must(w.t, w.box(mailbox.Config{Store: w.store, Runtime: r, Poll: 5 * time.Millisecond}).Start(w.ctx()))
	}
	for _, sub := range subs {
		equal(w.t, "attempts", w.await(w.mail, sub.Dispatch, mailbox.Acked).Attempts, 0)
	}
	same(w.t, "what must not happen", r.bad)
	for i := range threads {
		equal(w.t, "length of the log", len(w.log(fmt.Sprint("t", i), 1, 100)), each)
	}
}
