package mailboxtest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func damageCases() []testCase {
	return []testCase{
		{"damaged_thread_keeps_no_other_back", damagedThread},
	}
}

// done is a runtime whose runs are done at once.
type done struct{}

func (done) Run(context.Context, *mailbox.Job) (mailbox.Result, error) {
	return mailbox.Result{Termination: "natural"}, nil
}

// box is a process on a store, by the real clock. It is not started, and closed at the end of the test.
func (w *world) box(cfg mailbox.Config) *mailbox.Mailbox {
	w.t.Helper()
	m, err := mailbox.New(w.ctx(), cfg)
	must(w.t, err)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			w.t.Error(err)
		}
	})
	return m
}

// submit queues a request for a thread that has one message, the name of the thread.
func (w *world) submit(m *mailbox.Mailbox, thread string) mailbox.Submission {
	w.t.Helper()
	sub, err := m.SubmitBackground(w.ctx(), mailbox.Request{Thread: thread, Messages: []mailbox.Input{{Data: []byte(thread)}}})
	must(w.t, err)
	return sub
}

// await waits until a dispatch is terminal, and checks how.
func (w *world) await(m *mailbox.Mailbox, dispatch string, want mailbox.Status) mailbox.Dispatch {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx(), time.Minute)
	defer cancel()
	d, err := m.Await(ctx, dispatch)
	if err != nil || d.Status != want {
		w.t.Fatalf("dispatch of thread %q is %s (attempts %d, last error %q): %v, want %s", d.Thread, d.Status, d.Attempts, d.LastError, err, want)
	}
	return d
}

// damagedThread holds that a process starts and executes what it can, when threads fail that come before all others: one whose
// holder is gone, and two that are queued. When they are fixed they are executed, too.
func damagedThread(w *world) {
	client := w.box(mailbox.Config{Store: w.store, Runtime: done{}, Poll: 10 * time.Millisecond})
	w.manual(func(c *mailbox.Config) { // its clock is behind, so that its lease is over
		c.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	}).begin("bad-held", "held")
	bad := []mailbox.Submission{{Thread: "bad-held", Dispatch: "held"}}
	for _, thread := range []string{"bad-first", "bad-second"} {
		bad = append(bad, w.submit(client, thread))
	}
	good := w.submit(client, "good")

	var fixed atomic.Bool
	faulty := &Faulty{Store: w.store, Damaged: func(thread string) bool { return !fixed.Load() && thread != "good" && thread != "late" }}
	m := w.box(mailbox.Config{
		Store: faulty, Runtime: done{}, Limits: mailbox.Limits{Workers: 1}, Poll: 10 * time.Millisecond,
		Retry: mailbox.Retry{Aside: 10 * time.Millisecond, MaxAside: 50 * time.Millisecond},
	})
	if _, err := m.Recover(w.ctx()); !errors.Is(err, ErrInjected) {
		w.t.Errorf("the error of the thread that failed is not returned: %v", err)
	}
	must(w.t, m.Start(w.ctx()))
	w.await(client, good.Dispatch, mailbox.Acked)
	w.await(client, w.submit(client, "late").Dispatch, mailbox.Acked)
	for i := range bad {
		if d := w.load(bad[i].Dispatch); d.Status.Terminal() {
			w.t.Errorf("dispatch of thread %q is %s", d.Thread, d.Status)
		}
	}
	fixed.Store(true)
	for i := range bad {
		w.await(client, bad[i].Dispatch, mailbox.Acked)
	}
}
