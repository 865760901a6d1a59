package mailboxtest

import (
	"context"
	"reflect"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func requestCases() []testCase {
	return []testCase{{"request_comes_whole_to_another_process", requestComesWhole}}
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
