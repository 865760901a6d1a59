package mailboxtest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func deafCases() []testCase {
	return []testCase{
		{"run_that_is_deaf_is_abandoned", abandoned},
	}
}

// deaf is a runtime that ignores its context, until it is let go. Then it writes.
type deaf struct {
	running chan struct{}
	release chan struct{}
	written chan error
}

func (d *deaf) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	close(d.running)
	<-d.release
	err := j.Commit(context.WithoutCancel(ctx), mailbox.Commit{ID: "late", From: j.Messages, Append: []mailbox.Message{{ID: "late", Data: []byte("late")}}})
	d.written <- err
	return mailbox.Result{Response: "late"}, err
}

// abandoned holds that a process whose run ignores its end can be closed, is reported, and holds the thread no longer than its
// lease; what the run still writes is refused.
func abandoned(w *world) {
	d := &deaf{running: make(chan struct{}), release: make(chan struct{}), written: make(chan error, 1)}
	m, err := mailbox.New(w.ctx(), mailbox.Config{
		Store: w.store, Runtime: d, Lease: mailbox.Lease{Duration: 2 * time.Second, Renew: 500 * time.Millisecond, Skew: -1},
		Waits: mailbox.Waits{Close: 10 * time.Millisecond},
	})
	must(w.t, err)
	must(w.t, m.Start(w.ctx()))
	sub := w.submit(m, "t")
	<-d.running
	ctx, cancel := context.WithCancel(w.ctx())
	cancel()
	if err := m.Close(ctx); err == nil || !strings.Contains(err.Error(), sub.Dispatch) {
		w.t.Errorf("closed with a run that is deaf: %v", err)
	}
	heir := w.box(mailbox.Config{Store: w.store, Runtime: done{}, Lease: mailbox.Lease{Skew: -1}, Poll: 10 * time.Millisecond})
	must(w.t, heir.Start(w.ctx()))
	w.await(heir, sub.Dispatch, mailbox.Acked)
	close(d.release)
	if err := <-d.written; !errors.Is(err, mailbox.ErrConflict) {
		w.t.Errorf("written by a run that was abandoned: %v", err)
	}
	must(w.t, m.Close(w.ctx()))
	equal(w.t, "response", w.load(sub.Dispatch).Response, "")
	equal(w.t, "messages", w.record("t").Messages, 0)
}
