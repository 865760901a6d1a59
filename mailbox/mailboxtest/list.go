package mailboxtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

func listCases() []testCase {
	return []testCase{
		{"list_order_and_pages", listOrder},
		{"list_terminal", listTerminal},
		{"purge", purge},
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
	q := queue.DispatchQuery{Thread: "t", Limit: 3}
	for {
		page, err := w.queue.Dispatches(w.ctx(), q)
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

var terminal = []queue.Status{queue.Acked, queue.Cancelled, queue.Superseded, queue.DeadLetter} //nolint:gochecknoglobals // a constant list

func listTerminal(w *world) {
	for i, id := range []string{"x", "b", "a", "c"} {
		w.enqueue("t"+id, id)
		if i == 0 {
			continue // stays queued
		}
		if i == 3 {
			w.clock.Add(time.Second)
		}
		w.settle(w.claim("t"+id), queue.Ack)
	}
	same(w.t, "terminal", w.list(queue.DispatchQuery{Statuses: terminal}), "a", "b", "c")
	first, err := w.queue.Dispatches(w.ctx(), queue.DispatchQuery{Statuses: terminal, Limit: 1})
	must(w.t, err)
	same(w.t, "second page", w.list(queue.DispatchQuery{Statuses: terminal, After: first[0], Limit: 1}), "b")
}

func purge(w *world) {
	w.enqueue("a", "old")
	w.settle(w.claim("a"), queue.Ack)
	w.enqueue("b", "dead")
	w.settle(w.claim("b"), queue.Bury)
	w.enqueue("c", "queued")
	w.clock.Add(time.Hour)
	w.enqueue("d", "young")
	w.settle(w.claim("d"), queue.Ack)
	q := queue.PurgeQuery{Statuses: []queue.Status{queue.Acked, queue.Queued}, Before: w.clock.Now(), Limit: 10}
	for _, want := range []int{1, 0} {
		n, err := w.queue.Purge(w.ctx(), q)
		must(w.t, err)
		equal(w.t, "dropped", n, want)
	}
	same(w.t, "left", slices.Sorted(slices.Values(w.list(queue.DispatchQuery{}))), "dead", "queued", "young")
	same(w.t, "left of the thread", w.list(queue.DispatchQuery{Thread: "a"}))
	if _, found, err := w.queue.Dispatch(w.ctx(), "old"); found || err != nil {
		w.t.Errorf("a dropped one is there: %v, %v", found, err)
	}
	equal(w.t, "the run stays", w.run("run-old").ID, "run-old")
	n, err := w.queue.Purge(w.ctx(), queue.PurgeQuery{Statuses: terminal, Before: w.clock.Now().Add(1), Limit: 1})
	must(w.t, err)
	equal(w.t, "dropped of a limit of one", n, 1)
}

func (w *world) threads(q queue.ThreadQuery) []string {
	w.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	records, err := w.queue.Threads(w.ctx(), q)
	must(w.t, err)
	var out []string
	for i := range records {
		out = append(out, records[i].ID)
	}
	return out
}

func find(w *world) {
	w.enqueue("t", "d1")
	for id, want := range map[string][2]bool{"d1": {true, false}, "run-d1": {false, true}, "": {}, "\xff": {}} {
		dispatch, err := w.queue.HasDispatch(w.ctx(), id)
		must(w.t, err)
		run, err := w.queue.HasRun(w.ctx(), id)
		must(w.t, err)
		equal(w.t, id, [2]bool{dispatch, run}, want)
	}
}

func listRuns(w *world) {
	start := w.clock.Now()
	for i, thread := range []string{"a", "b", "c", "a", "b"} {
		w.enqueue(thread, fmt.Sprint("d", i), func(e *queue.Entry) {
			e.Agent = []string{"clerk", "cook"}[i%2]
			if thread != "c" {
				e.Tenant = "tenant-" + thread
			}
		})
		w.clock.Add(time.Second)
	}
	_, err := w.queue.Settle(w.ctx(), hold(w.claim("a")), queue.Settlement{Verdict: queue.Ack, Result: queue.Result{Status: queue.RunDone}})
	must(w.t, err)
	w.claim("b")
	check := func(what string, q queue.RunQuery, want ...string) {
		w.t.Helper()
		var got []string
		for q.Limit = 2; ; {
			list, err := w.queue.Runs(w.ctx(), q)
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
			q.After = queue.Run{ID: list[1].ID, CreatedAt: list[1].CreatedAt}
		}
		same(w.t, what, got, want...)
	}
	check("all", queue.RunQuery{}, "run-d4", "run-d3", "run-d2", "run-d1", "run-d0")
	check("of a thread", queue.RunQuery{Thread: "a"}, "run-d3", "run-d0")
	check("of a tenant", queue.RunQuery{Tenant: "tenant-b"}, "run-d4", "run-d1")
	check("of an agent", queue.RunQuery{Agent: "cook"}, "run-d3", "run-d1")
	check("by agent and tenant", queue.RunQuery{Agent: "cook", Tenant: "tenant-a"}, "run-d3")
	check("by thread and another tenant", queue.RunQuery{Thread: "a", Tenant: "tenant-b"})
	check("created", queue.RunQuery{Status: queue.RunCreated}, "run-d4", "run-d3", "run-d2")
	check("running", queue.RunQuery{Status: queue.RunRunning}, "run-d1")
	check("done", queue.RunQuery{Status: queue.RunDone}, "run-d0")
	check("since", queue.RunQuery{Since: start.Add(3 * time.Second)}, "run-d4", "run-d3")
	check("of an unknown tenant", queue.RunQuery{Tenant: "unknown"})
}

func describeAndDelete(w *world) {
	for i, e := range [][3]string{{"top", "", "acme"}, {"middle", "top", "acme"}, {"low", "middle", "acme"}, {"stranger", "top", "other"}} {
		w.enqueue(e[0], fmt.Sprint("d", i), func(to *queue.Entry) { to.ParentThread, to.Tenant = e[1], e[2] })
		w.settle(w.claim(e[0]), queue.Ack)
	}
	title := "A talk"
	_, err := w.queue.Describe(w.ctx(), "low", queue.Description{Title: &title, Metadata: []byte(`{"n":1}`)})
	must(w.t, err)
	made := w.clock.Now()
	w.clock.Add(time.Minute)
	w.enqueue("low", "again", func(e *queue.Entry) { e.ParentThread, e.Tenant = "elsewhere", "acme" })
	h := w.record("low")
	equal(w.t, "thread", [4]string{h.Title, h.Metadata, h.Parent, h.CreatedAt.String()}, [4]string{title, `{"n":1}`, "middle", made.String()})
	same(w.t, "below top", w.threads(queue.ThreadQuery{Parent: "top"}), "middle", "stranger")
	same(w.t, "below top, of the tenant", w.threads(queue.ThreadQuery{Parent: "top", Tenant: "acme"}), "middle")
	for _, d := range []queue.Description{{Metadata: []byte(`[1]`)}, {Metadata: []byte(`{`)}} {
		if _, err := w.queue.Describe(w.ctx(), "low", d); !errors.Is(err, queue.ErrInvalid) {
			w.t.Errorf("metadata %s: %v", d.Metadata, err)
		}
	}
	if _, err := w.queue.Describe(w.ctx(), "none", queue.Description{Title: &title}); !errors.Is(err, queue.ErrNotFound) {
		w.t.Errorf("a thread that is not there: %v", err)
	}
	k := w.claim("low")
	if _, err := w.queue.Delete(w.ctx(), "top"); !errors.Is(err, queue.ErrBusy) {
		w.t.Errorf("deleted with a run under way: %v", err)
	}
	w.settle(k, queue.Ack)
	n, err := w.queue.Delete(w.ctx(), "top")
	must(w.t, err)
	equal(w.t, "deleted", n, 3)
	same(w.t, "threads left", w.threads(queue.ThreadQuery{}), "stranger")
	same(w.t, "dispatches left", w.list(queue.DispatchQuery{}), "d3")
}
