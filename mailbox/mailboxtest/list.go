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
		{"list_terminal_and_collect", listTerminal},
		{"runs_by_status_agent_tenant_and_thread", listRuns},
		{"threads_are_described_and_deleted_with_those_below", describeAndDelete},
	}
}

func listOrder(w *world) {
	var want []string
	m := w.manual()
	for i := range 7 {
		want = append(want, fmt.Sprintf("d%d", 9-i))
		m.queue("t", want[i])
	}
	var got []string
	q := mailbox.DispatchQuery{Thread: "t", Limit: 3}
	for {
		page, err := w.mail.Dispatches(w.ctx(), q)
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

var terminal = []mailbox.Status{mailbox.Acked, mailbox.Cancelled, mailbox.Superseded, mailbox.DeadLetter} //nolint:gochecknoglobals // a constant list

func listTerminal(w *world) {
	m := w.manual(func(c *mailbox.Config) { c.Retention.TTL, c.Retention.DeadTTL = time.Hour, 2*time.Hour })
	for i, id := range []string{"b", "a", "c", "dead"} {
		x := m.begin("t"+id, id)
		var failure error
		if i > 1 {
			w.clock.Add(time.Second)
		}
		if id == "dead" {
			failure = mailbox.ErrPermanent
		}
		m.finish(x, mailbox.Result{}, failure)
	}
	m.queue("queued", "x")
	same(w.t, "terminal", w.list(mailbox.DispatchQuery{Statuses: terminal}), "a", "b", "c", "dead")
	first, err := w.mail.Dispatches(w.ctx(), mailbox.DispatchQuery{Statuses: terminal, Limit: 1})
	must(w.t, err)
	same(w.t, "second page", w.list(mailbox.DispatchQuery{Statuses: terminal, After: first[0], Limit: 1}), "b")
	w.clock.Add(time.Hour - time.Second)
	must(w.t, m.GC(w.ctx()))
	same(w.t, "left", slices.Sorted(slices.Values(w.list(mailbox.DispatchQuery{}))), "c", "dead", "x")
	same(w.t, "left of the thread", w.list(mailbox.DispatchQuery{Thread: "ta"}))
	if _, found, err := w.mail.Dispatch(w.ctx(), "a"); found || err != nil {
		w.t.Errorf("a dropped one is there: %v, %v", found, err)
	}
	equal(w.t, "the run stays", w.run("run-a").ID, "run-a")
}

func (w *world) threads(q mailbox.ThreadQuery) []string {
	w.t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	records, err := w.mail.Threads(w.ctx(), q)
	must(w.t, err)
	return names(records)
}

func listRuns(w *world) {
	start := w.clock.Now()
	m := w.manual(single)
	for i, thread := range []string{"a", "b", "c", "a", "b"} {
		m.queue(thread, fmt.Sprint("d", i), func(r *mailbox.Request) {
			r.Agent = []string{"clerk", "cook", "", "cook", "clerk"}[i]
			if thread != "c" {
				r.Tenant = "tenant-" + thread
			}
		})
		w.clock.Add(time.Second)
	}
	m.finish(m.poll()[0], mailbox.Result{}, nil)
	m.poll()
	check := func(what string, q mailbox.RunQuery, want ...string) {
		w.t.Helper()
		var got []string
		for q.Limit = 2; ; {
			list, err := w.mail.Runs(w.ctx(), q)
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
			q.After = mailbox.Run{ID: list[1].ID, RunTimes: list[1].RunTimes}
		}
		same(w.t, what, got, want...)
	}
	check("all", mailbox.RunQuery{}, "run-d4", "run-d3", "run-d2", "run-d1", "run-d0")
	check("of a thread", mailbox.RunQuery{Thread: "a"}, "run-d3", "run-d0")
	check("of a tenant", mailbox.RunQuery{Tenant: "tenant-b"}, "run-d4", "run-d1")
	check("of an agent", mailbox.RunQuery{Agent: "cook"}, "run-d3", "run-d1")
	check("of an agent or of none", mailbox.RunQuery{Agent: "cook", Unnamed: true}, "run-d3", "run-d2", "run-d1")
	check("of an agent or of none, of a thread", mailbox.RunQuery{Agent: "none", Unnamed: true, Thread: "c"}, "run-d2")
	check("by agent and tenant", mailbox.RunQuery{Agent: "cook", Tenant: "tenant-a"}, "run-d3")
	check("by thread and another tenant", mailbox.RunQuery{Thread: "a", Tenant: "tenant-b"})
	check("created", mailbox.RunQuery{Status: mailbox.RunCreated}, "run-d4", "run-d3", "run-d2")
	check("running", mailbox.RunQuery{Status: mailbox.RunRunning}, "run-d1")
	check("done", mailbox.RunQuery{Status: mailbox.RunDone}, "run-d0")
	check("since", mailbox.RunQuery{Since: start.Add(3 * time.Second)}, "run-d4", "run-d3")
	check("of an unknown tenant", mailbox.RunQuery{Tenant: "unknown"})
}

func describeAndDelete(w *world) {
	m := w.manual()
	for i, e := range [][3]string{{"top", "", "acme"}, {"middle", "top", "acme"}, {"low", "middle", "acme"}, {"stranger", "top", "other"}} {
		x := m.begin(e[0], fmt.Sprint("d", i), func(r *mailbox.Request) { r.ParentThreadID, r.Tenant = e[1], e[2] })
		m.finish(x, mailbox.Result{}, nil)
	}
	title := "A talk"
	_, err := w.mail.Describe(w.ctx(), "low", mailbox.Description{Title: &title, Metadata: []byte(`{"n":1}`)})
	must(w.t, err)
	made := w.clock.Now()
	w.clock.Add(time.Minute)
	m.queue("low", "again", func(r *mailbox.Request) { r.ParentThreadID, r.Tenant = "elsewhere", "acme" })
	h := w.record("low")
	equal(w.t, "thread", [4]string{h.Title, h.Metadata, h.Parent, h.CreatedAt.String()}, [4]string{title, `{"n":1}`, "middle", made.String()})
	same(w.t, "below top", w.threads(mailbox.ThreadQuery{Parent: "top"}), "middle", "stranger")
	same(w.t, "below top, of the tenant", w.threads(mailbox.ThreadQuery{Parent: "top", Tenant: "acme"}), "middle")
	for _, d := range []mailbox.Description{{Metadata: []byte(`[1]`)}, {Metadata: []byte(`{`)}} {
		if _, err := w.mail.Describe(w.ctx(), "low", d); !errors.Is(err, mailbox.ErrInvalid) {
			w.t.Errorf("metadata %s: %v", d.Metadata, err)
		}
	}
	if _, err := w.mail.Describe(w.ctx(), "none", mailbox.Description{Title: &title}); !errors.Is(err, mailbox.ErrNotFound) {
		w.t.Errorf("a thread that is not there: %v", err)
	}
	x := m.poll()[0]
	if _, err := w.mail.Delete(w.ctx(), "top"); !errors.Is(err, mailbox.ErrBusy) {
		w.t.Errorf("deleted with a run under way: %v", err)
	}
	m.finish(x, mailbox.Result{}, nil)
	n, err := w.mail.Delete(w.ctx(), "top")
	must(w.t, err)
	equal(w.t, "deleted", n, 3)
	same(w.t, "threads left", w.threads(mailbox.ThreadQuery{}), "stranger")
	same(w.t, "dispatches left", w.list(mailbox.DispatchQuery{}), "d3")
}
