package mailboxtest

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func decideCases() []testCase {
	return []testCase{
		{"decision_that_the_run_refuses_is_queued", decideRefused},
		{"decision_that_does_not_arrive_is_queued", decideUnheard},
		{"decision_for_a_run_that_comes_to_wait_is_queued", decideMeanwhile},
		{"decision_that_the_run_takes_is_not_queued", decideTaken},
		{"decision_for_a_run_that_fails_is_kept", decideBetweenTries},
	}
}

// decider is a runtime whose runs wait for a decision once they may continue.
type decider struct {
	begun, goOn chan struct{}
	steer       func(ctx context.Context, run string) bool
	// fail is what the first attempt comes to.
	fail error
}

func newDecider() *decider {
	return &decider{begun: make(chan struct{}, 10), goOn: make(chan struct{})}
}

func (s *decider) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	if len(j.Request.Decisions) > 0 {
		return mailbox.Result{Termination: "decided", Response: string(j.Request.Decisions[0].Data)}, nil
	}
	s.begun <- struct{}{}
	select {
	case <-s.goOn:
	case <-ctx.Done():
		return mailbox.Result{}, context.Cause(ctx)
	}
	if s.fail != nil && j.Attempt == 1 {
		return mailbox.Result{}, s.fail
	}
	return mailbox.Result{Status: mailbox.RunWaiting, Wait: "tool_permission"}, nil
}

func (s *decider) Steer(ctx context.Context, run, _ string, _ mailbox.Request) bool {
	return s.steer != nil && s.steer(ctx, run)
}

// started is a process on the store that executes what is queued.
func (w *world) started(cfg mailbox.Config) *mailbox.Mailbox {
	w.t.Helper()
	if cfg.Store == nil {
		cfg.Store = w.store
	}
	m := w.box(cfg)
	must(w.t, m.Start(w.ctx()))
	return m
}

// decide decides about a run, and checks that another process has the decision.
func (w *world) decide(m *mailbox.Mailbox, run string) {
	w.t.Helper()
	ok, err := m.Decide(w.ctx(), run, mailbox.Decision{Call: "c", Data: []byte("yes")})
	must(w.t, err)
	if !ok {
		w.t.Error("no run has the decision")
	}
}

// decided waits until all dispatches of a thread have ended, and checks that the run came to what was decided, after
// so many dispatches.
func (w *world) decided(m *mailbox.Mailbox, sub mailbox.Submission, dispatches int) {
	w.t.Helper()
	list, err := w.mail.Dispatches(w.ctx(), mailbox.DispatchQuery{Thread: sub.Thread, Limit: 100})
	must(w.t, err)
	equal(w.t, "dispatches", len(list), dispatches)
	for i := range list {
		d, err := m.Await(w.ctx(), list[i].ID)
		must(w.t, err)
		equal(w.t, "dispatch "+d.ID, d.Status, mailbox.Acked)
	}
	run, _, err := m.Run(w.ctx(), sub.Run)
	must(w.t, err)
	equal(w.t, "termination of the run", run.Termination, "decided")
	equal(w.t, "what the run came to", run.Output, "yes")
}

func decideRefused(w *world) {
	s := newDecider()
	m := w.started(mailbox.Config{Runtime: s})
	sub := w.submit(m, "t")
	<-s.begun
	w.decide(m, sub.Run)
	close(s.goOn)
	w.decided(m, sub, 2)
}

func decideUnheard(w *world) {
	s := newDecider()
	deaf := &Faulty{Store: w.store, Plan: func(_ context.Context, operation string) Fault { // no commands
		if operation == "watch" {
			return FaultBefore
		}
		return FaultNone
	}}
	m := w.started(mailbox.Config{Runtime: s, Store: deaf})
	other := w.started(mailbox.Config{Runtime: newDecider(), Store: deaf})
	must(w.t, other.Stop(w.ctx()))
	sub := w.submit(m, "t")
	<-s.begun
	w.decide(other, sub.Run)
	close(s.goOn)
	w.decided(m, sub, 2)
}

func decideMeanwhile(w *world) {
	s := newDecider()
	m := w.started(mailbox.Config{Runtime: s})
	sub := w.submit(m, "t")
	<-s.begun
	s.steer = func(ctx context.Context, _ string) bool {
		close(s.goOn)
		if _, err := m.Await(ctx, sub.Dispatch); err != nil {
			w.t.Error(err)
		}
		return false // it waits by now
	}
	w.decide(m, sub.Run)
	w.decided(m, sub, 2)
}

func decideTaken(w *world) {
	s := newDecider()
	s.steer = func(context.Context, string) bool { return true }
	m := w.started(mailbox.Config{Runtime: s})
	sub := w.submit(m, "t")
	<-s.begun
	w.decide(m, sub.Run)
	list, err := w.mail.Dispatches(w.ctx(), mailbox.DispatchQuery{Thread: "t", Limit: 100})
	must(w.t, err)
	equal(w.t, "dispatches", len(list), 1)
	close(s.goOn)
}

// decideBetweenTries: no process has the thread, since an attempt has failed.
func decideBetweenTries(w *world) {
	s := newDecider()
	s.fail = context.DeadlineExceeded
	m := w.started(mailbox.Config{Runtime: s, Retry: mailbox.Retry{Delay: 300 * time.Millisecond}})
	sub := w.submit(m, "t")
	<-s.begun
	close(s.goOn)
	for w.record("t").Claim != nil {
		must(w.t, w.ctx().Err())
	}
	w.decide(m, sub.Run)
	w.decided(m, sub, 2)
}
