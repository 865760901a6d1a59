package mailboxtest

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func requestCases() []testCase {
	return []testCase{
		{"request_comes_whole_to_another_process", requestComesWhole},
		{"decision_makes_no_run_of_its_own", decisionMakesNoRun},
	}
}

// recorder is a runtime that keeps the requests it gets, and fails the first time.
type recorder struct{ requests chan mailbox.Request }

func (a recorder) Run(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
	a.requests <- j.Request
	if j.Attempt == 1 {
		return mailbox.Result{}, ErrInjected
	}
	return mailbox.Result{}, nil
}

// requestComesWhole holds that a store keeps all that a request has, for each attempt.
func requestComesWhole(w *world) {
	want := mailbox.Request{
		Thread: "t", Tenant: "acme", Messages: []mailbox.Input{{ID: "m", Data: []byte{0, 1, 255}}}, Decisions: []mailbox.Decision{{Call: "c", Data: []byte("yes")}},
		Agent: "writer", Parent: "parent run", Origin: "a2a", Adapter: "http", Mode: "special", Extras: []byte{0xc1, 0}, Trace: map[string]string{"traceparent": "x"},
		TransportRequestID: "http-\u00e9\u4e16", SenderID: "alice@example.com", ParentThreadID: "parent thread", DispatchIDHint: "hint",
	}
	sub, err := w.box(mailbox.Config{Store: w.store, Runtime: done{}}).SubmitBackground(w.ctx(), want)
	must(w.t, err)
	equal(w.t, "dispatch", sub.Dispatch, "hint")
	a := recorder{make(chan mailbox.Request, 2)}
	m := w.box(mailbox.Config{Store: w.store, Runtime: a, Poll: 10 * time.Millisecond, Retry: mailbox.Retry{Delay: time.Millisecond}})
	must(w.t, m.Start(w.ctx()))
	w.await(m, sub.Dispatch, mailbox.Acked)
	for range 2 {
		if got := <-a.requests; !reflect.DeepEqual(got, want) {
			w.t.Errorf("the request came as %+v, want %+v", got, want)
		}
	}
	equal(w.t, "parent of the run", w.run(sub.Run).Parent, "parent run")
}

// decisionMakesNoRun holds that decisions for a run under way which ends without them are recorded as refused, with that run: there is no
// other one, and the next message continues the thread.
func decisionMakesNoRun(w *world) {
	s := &steered{running: make(chan string, 1), end: make(chan struct{})}
	m := w.box(mailbox.Config{Store: w.store, Runtime: s, Poll: 10 * time.Millisecond})
	must(w.t, m.Start(w.ctx()))
	sub := w.submit(m, "t")
	run := <-s.running
	ok, err := m.Decide(w.ctx(), run, mailbox.Decision{Call: "named"})
	must(w.t, err)
	equal(w.t, "kept", ok, true)
	unnamed, err := m.SubmitBackground(w.ctx(), mailbox.Request{Thread: "t", Decisions: []mailbox.Decision{{Call: "unnamed"}}})
	must(w.t, err)
	close(s.end)
	w.await(m, sub.Dispatch, mailbox.Acked)
	w.await(m, unnamed.Dispatch, mailbox.Acked)
	list, err := m.Dispatches(w.ctx(), mailbox.DispatchQuery{Thread: "t", Limit: 10})
	must(w.t, err)
	equal(w.t, "dispatches", len(list), 3)
	for _, d := range list {
		equal(w.t, "status", d.Status, mailbox.Acked)
		equal(w.t, "run", d.RunID, run)
		equal(w.t, "refused", strings.Contains(d.LastError, mailbox.ErrRefused.Error()), d.ID != sub.Dispatch)
		equal(w.t, "attempts", d.Attempts, 0)
	}
	equal(w.t, "latest run", w.record("t").Latest.ID, run)
	equal(w.t, "executions", len(s.running), 0)
	runs, err := m.Runs(w.ctx(), mailbox.RunQuery{Thread: "t", Limit: 10})
	must(w.t, err)
	equal(w.t, "runs", len(runs), 1)
	equal(w.t, "termination", runs[0].Termination, "natural")
	s.end = make(chan struct{})
	next := w.submit(m, "t")
	equal(w.t, "run of the next message", <-s.running, next.Run)
	close(s.end)
	w.await(m, next.Dispatch, mailbox.Acked)
}
