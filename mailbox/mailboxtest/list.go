package mailboxtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func listCases() []testCase {
	return []testCase{
		{"list_order_and_pages", listOrder},
		{"list_by_status", listByStatus},
		{"list_terminal", listTerminal},
		{"purge", purge},
		{"count_by_status", countByStatus},
		{"claims_by_tenant", claimsByTenant},
		{"queued_threads", queuedThreads},
		{"threads_by_wait_and_tenant", threadsByWait},
		{"find", find},
		{"runs_by_status_agent_tenant_and_thread", listRuns},
		{"threads_are_described_and_deleted_with_those_below", describeAndDelete},
	}
}

func listOrder(w *world) {
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprintf("d%d", 9-i))
		w.enqueue("t", want[i])
	}
	var got []string
	q := mailbox.DispatchQuery{Thread: "t", Limit: 3}
	for {
		page, err := w.store.Dispatches(w.ctx(), q)
		must(w.t, err)
		if len(page) == 0 {
			break
		}
		if len(page) > 3 {
			w.t.Fatalf("a page of 3 has %d", len(page))
		}
		got = append(got, ids(page)...)
		q.After = page[len(page)-1]
	}
	same(w.t, "pages", got, want...)
}

func listByStatus(w *world) {
	for _, id := range []string{"d1", "d2", "d3"} {
		w.enqueue("t", id)
	}
	w.settle(w.claim("t"), mailbox.Ack)
	w.claim("t")
	same(w.t, "acked", w.list(mailbox.DispatchQuery{Thread: "t", Statuses: []mailbox.Status{mailbox.Acked}}), "d1")
	same(w.t, "claimed", w.list(mailbox.DispatchQuery{Thread: "t", Statuses: []mailbox.Status{mailbox.Claimed}}), "d2")
	same(w.t, "live", w.list(mailbox.DispatchQuery{Thread: "t", Statuses: []mailbox.Status{mailbox.Queued, mailbox.Claimed}}), "d2", "d3")
	same(w.t, "all", w.list(mailbox.DispatchQuery{Thread: "t"}), "d1", "d2", "d3")
	same(w.t, "of nobody", w.list(mailbox.DispatchQuery{Thread: "nobody"}))
}

var terminal = []mailbox.Status{mailbox.Acked, mailbox.Cancelled, mailbox.Superseded, mailbox.DeadLetter} //nolint:gochecknoglobals // a constant list

func listTerminal(w *world) {
	for i, id := range []string{"x", "b", "a", "c"} {
		w.enqueue("t"+id, id)
		if i == 0 {
			continue // stays queued
		}
		if i == 3 {
			w.clock.Add(time.Second)
		}
		w.settle(w.claim("t"+id), mailbox.Ack)
	}
	same(w.t, "terminal", w.list(mailbox.DispatchQuery{Statuses: terminal}), "a", "b", "c")
	first, err := w.store.Dispatches(w.ctx(), mailbox.DispatchQuery{Statuses: terminal, Limit: 1})
	must(w.t, err)
	same(w.t, "second page", w.list(mailbox.DispatchQuery{Statuses: terminal, After: first[0], Limit: 1}), "b")
}

func purge(w *world) {
	w.enqueue("a", "old")
	w.settle(w.claim("a"), mailbox.Ack)
	w.enqueue("b", "dead")
	w.settle(w.claim("b"), mailbox.Bury)
	w.enqueue("c", "queued")
	w.clock.Add(time.Hour)
	w.enqueue("d", "young")
	w.settle(w.claim("d"), mailbox.Ack)
	q := mailbox.PurgeQuery{Statuses: []mailbox.Status{mailbox.Acked, mailbox.Queued}, Before: w.clock.Now(), Limit: 10}
	for _, want := range []int{1, 0} {
		n, err := w.store.Purge(w.ctx(), q)
		must(w.t, err)
		equal(w.t, "dropped", n, want)
	}
	same(w.t, "left", slices.Sorted(slices.Values(w.list(mailbox.DispatchQuery{}))), "dead", "queued", "young")
	same(w.t, "left of the thread", w.list(mailbox.DispatchQuery{Thread: "a"}))
	if _, found, err := w.queue.Dispatch(w.ctx(), "old"); found || err != nil {
		w.t.Errorf("a dropped one is there: %v, %v", found, err)
	}
	equal(w.t, "the run stays", w.run("run-old").ID, "run-old")
	n, err := w.store.Purge(w.ctx(), mailbox.PurgeQuery{Statuses: terminal, Before: w.clock.Now().Add(1), Limit: 1})
	must(w.t, err)
	equal(w.t, "dropped of a limit of one", n, 1)
}

func countByStatus(w *world) {
	w.enqueue("a", "d1", func(e *mailbox.Entry) { e.Tenant = "acme" })
	w.enqueue("a", "d2", func(e *mailbox.Entry) { e.Tenant = "acme" })
	w.enqueue("b", "d3")
	w.claim("a")
	w.settle(w.claim("b"), mailbox.Ack)
	c, err := w.store.Count(w.ctx())
	must(w.t, err)
	for status, want := range map[mailbox.Status]int{mailbox.Queued: 1, mailbox.Claimed: 1, mailbox.Acked: 1, mailbox.DeadLetter: 0} {
		equal(w.t, string(status), c.Status[status], want)
	}
	w.wantClaims("a", "acme", 1)
}

// wantClaims checks how many claims a tenant has, and that no other one has some.
func (w *world) wantClaims(thread, tenant string, want int) {
	w.t.Helper()
	claims, err := w.store.Claims(w.ctx())
	must(w.t, err)
	n, there := claims[tenant]
	if n != want || there != (want > 0) || len(claims) > 1 {
		w.t.Errorf("claims after a change of thread %q: %v, want %d of %q", thread, claims, want, tenant)
	}
}

func claimsByTenant(w *world) {
	w.enqueue("a", "d1", func(e *mailbox.Entry) { e.Tenant = "acme" })
	w.enqueue("b", "d2", func(e *mailbox.Entry) { e.Tenant = "acme" })
	w.wantClaims("a", "acme", 0)
	a := w.claim("a")
	w.wantClaims("a", "acme", 1)
	b := w.claim("b")
	w.wantClaims("b", "acme", 2)
	_, err := w.queue.Extend(w.ctx(), hold(a), lease)
	must(w.t, err)
	w.wantClaims("a", "acme", 2)
	w.settle(b, mailbox.GiveBack)
	w.wantClaims("b", "acme", 1)
	w.clock.Add(lease + time.Second)
	if _, ok, err := w.queue.Expire(w.ctx(), "a"); !ok || err != nil {
		w.t.Errorf("expired: %v, %v", ok, err)
	}
	w.wantClaims("a", "acme", 0)
	w.settle(w.claim("b"), mailbox.Ack)
	must(w.t, w.queue.Drop(w.ctx(), "b"))
	w.wantClaims("b", "acme", 0)
}

func (w *world) threads(q mailbox.ThreadQuery) []string {
	w.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	heads, err := w.store.Threads(w.ctx(), q)
	must(w.t, err)
	var out []string
	for i := range heads {
		out = append(out, heads[i].Thread)
	}
	return out
}

func queuedThreads(w *world) {
	for _, thread := range []string{"c", "a", "b"} {
		w.enqueue(thread, "d-"+thread)
	}
	w.enqueue("a", "more")
	w.claim("b")
	same(w.t, "queued", w.threads(mailbox.ThreadQuery{Queued: true}), "a", "c")
	same(w.t, "all", w.threads(mailbox.ThreadQuery{}), "a", "b", "c")
	same(w.t, "a page", w.threads(mailbox.ThreadQuery{After: "a", Limit: 1}), "b")
}

func threadsByWait(w *world) {
	w.waits("a", "d1", time.Time{})
	w.enqueue("b", "d2", func(e *mailbox.Entry) { e.Tenant = "acme" })
	same(w.t, "waiting", w.threads(mailbox.ThreadQuery{Wait: "tool_permission"}), "a")
	same(w.t, "waiting for something else", w.threads(mailbox.ThreadQuery{Wait: "background_tasks"}))
	same(w.t, "of the tenant", w.threads(mailbox.ThreadQuery{Tenant: "acme"}), "b")
	e := w.entry("b", "d3")
	e.Tenant = "evil"
	if _, err := w.queue.Enqueue(w.ctx(), e); err == nil {
		w.t.Error("another tenant wrote to the thread")
	}
}

func find(w *world) {
	w.enqueue("t", "d1")
	for _, c := range []struct {
		kind  mailbox.Kind
		id    string
		found bool
	}{
		{mailbox.KindDispatch, "d1", true},
		{mailbox.KindDispatch, "run-d1", false},
		{mailbox.KindRun, "run-d1", true},
		{mailbox.KindRun, "d1", false},
	} {
		thread, found, err := w.store.Find(w.ctx(), c.kind, c.id)
		must(w.t, err)
		equal(w.t, fmt.Sprintf("%s %s found", c.kind, c.id), found, c.found)
		if found {
			equal(w.t, "thread", thread, "t")
		}
	}
}

func listRuns(w *world) {
	start := w.clock.Now()
	for i, thread := range []string{"a", "b", "c", "a", "b"} {
		w.enqueue(thread, fmt.Sprint("d", i), func(e *mailbox.Entry) {
			e.Agent = []string{"clerk", "cook"}[i%2]
			if thread != "c" {
				e.Tenant = "tenant-" + thread
			}
		})
		w.clock.Add(time.Second)
	}
	_, err := w.queue.Settle(w.ctx(), hold(w.claim("a")), mailbox.Settlement{Verdict: mailbox.Ack, Result: mailbox.Result{Status: mailbox.RunDone}})
	must(w.t, err)
	w.claim("b")
	check := func(what string, q mailbox.RunQuery, want ...string) {
		w.t.Helper()
		var got []string
		for q.Limit = 2; ; {
			list, err := w.store.Runs(w.ctx(), q)
			must(w.t, err)
			for i := range list {
				got = append(got, list[i].ID)
				if list[i].Data != nil {
					w.t.Errorf("%s: run %s has data", what, list[i].ID)
				}
			}
			if len(list) < 2 {
				break
			}
			q.After = mailbox.Run{ID: list[1].ID, CreatedAt: list[1].CreatedAt}
		}
		same(w.t, what, got, want...)
	}
	check("all", mailbox.RunQuery{}, "run-d4", "run-d3", "run-d2", "run-d1", "run-d0")
	check("of a thread", mailbox.RunQuery{Thread: "a"}, "run-d3", "run-d0")
	check("of a tenant", mailbox.RunQuery{Tenant: "tenant-b"}, "run-d4", "run-d1")
	check("of an agent", mailbox.RunQuery{Agent: "cook"}, "run-d3", "run-d1")
	check("by agent and tenant", mailbox.RunQuery{Agent: "cook", Tenant: "tenant-a"}, "run-d3")
	check("by thread and another tenant", mailbox.RunQuery{Thread: "a", Tenant: "tenant-b"})
	check("created", mailbox.RunQuery{Status: mailbox.RunCreated}, "run-d4", "run-d3", "run-d2")
	check("running", mailbox.RunQuery{Status: mailbox.RunRunning}, "run-d1")
	check("done", mailbox.RunQuery{Status: mailbox.RunDone}, "run-d0")
	check("since", mailbox.RunQuery{Since: start.Add(3 * time.Second)}, "run-d4", "run-d3")
	check("of nobody", mailbox.RunQuery{Tenant: "nobody"})
}

func describeAndDelete(w *world) {
	for i, e := range [][3]string{{"top", "", "acme"}, {"middle", "top", "acme"}, {"low", "middle", "acme"}, {"stranger", "top", "other"}} {
		w.enqueue(e[0], fmt.Sprint("d", i), func(to *mailbox.Entry) { to.ParentThread, to.Tenant = e[1], e[2] })
		w.settle(w.claim(e[0]), mailbox.Ack)
	}
	title := "A talk"
	_, err := w.queue.Describe(w.ctx(), "low", mailbox.Description{Title: &title, Metadata: []byte(`{"n":1}`)})
	must(w.t, err)
	made := w.clock.Now()
	w.clock.Add(time.Minute)
	w.enqueue("low", "again", func(e *mailbox.Entry) { e.ParentThread, e.Tenant = "elsewhere", "acme" })
	h := w.head("low")
	equal(w.t, "thread", [4]string{h.Title, h.Metadata, h.Parent, h.CreatedAt.String()}, [4]string{title, `{"n":1}`, "middle", made.String()})
	same(w.t, "below top", w.threads(mailbox.ThreadQuery{Parent: "top"}), "middle", "stranger")
	same(w.t, "below top, of the tenant", w.threads(mailbox.ThreadQuery{Parent: "top", Tenant: "acme"}), "middle")
	for _, d := range []mailbox.Description{{Metadata: []byte(`[1]`)}, {Metadata: []byte(`{`)}} {
		if _, err := w.queue.Describe(w.ctx(), "low", d); !errors.Is(err, mailbox.ErrInvalid) {
			w.t.Errorf("metadata %s: %v", d.Metadata, err)
		}
	}
	if _, err := w.queue.Describe(w.ctx(), "none", mailbox.Description{Title: &title}); !errors.Is(err, mailbox.ErrNotFound) {
		w.t.Errorf("a thread that is not there: %v", err)
	}
	k := w.claim("low")
	if _, err := w.queue.Delete(w.ctx(), "top"); !errors.Is(err, mailbox.ErrBusy) {
		w.t.Errorf("deleted with a run under way: %v", err)
	}
	w.settle(k, mailbox.Ack)
	n, err := w.queue.Delete(w.ctx(), "top")
	must(w.t, err)
	equal(w.t, "deleted", n, 3)
	same(w.t, "threads left", w.threads(mailbox.ThreadQuery{}), "stranger")
	same(w.t, "dispatches left", w.list(mailbox.DispatchQuery{}), "d3")
}
