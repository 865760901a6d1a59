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
		{"dispatch_gets_a_run_of_its_own_if_its_own_has_ended", runHasEnded},
	}
}

// decider is a runtime whose runs wait for a decision once they may go on.
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

func (s *decider) Steer(ctx context.Context, run string, _ mailbox.Command) bool {
	return s.steer != nil && s.steer(ctx, run)
}

// started is a process on the store that carries out what is queued.
func (w *world) started(cfg mailbox.Config) *mailbox.Mailbox {
	w.t.Helper()
	if cfg.Store == nil {
		cfg.Store = w.store
	}
	m := w.box(cfg)
	must(w.t, m.Start(w.ctx()))
	return m
}

// decide decides about a run, and checks that somebody has the decision.
func (w *world) decide(m *mailbox.Mailbox, run string) {
	w.t.Helper()
	ok, err := m.Decide(w.ctx(), run, mailbox.Decision{Call: "c", Data: []byte("yes")})
	must(w.t, err)
	if !ok {
		w.t.Error("nobody has the decision")
	}
}

// decided waits until all dispatches of a thread have ended, and checks that the run came to what was decided, after
// so many dispatches.
func (w *world) decided(m *mailbox.Mailbox, sub mailbox.Submission, dispatches int) {
	w.t.Helper()
	list, err := w.store.Dispatches(w.ctx(), mailbox.DispatchQuery{Thread: sub.Thread, Limit: 100})
	must(w.t, err)
	equal(w.t, "dispatches", len(list), dispatches)
	for i := range list {
		d, err := m.Await(w.ctx(), list[i].ID)
		must(w.t, err)
		equal(w.t, "dispatch "+d.ID, d.Status, mailbox.Acked)
	}
	run, _, err := m.Queue().Run(w.ctx(), sub.Run)
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
	deaf := struct{ mailbox.Store }{w.store} // no live channels
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
	list, err := w.store.Dispatches(w.ctx(), mailbox.DispatchQuery{Thread: "t", Limit: 100})
	must(w.t, err)
	equal(w.t, "dispatches", len(list), 1)
	close(s.goOn)
}

// decideBetweenTries: nobody has the thread, since an attempt has failed.
func decideBetweenTries(w *world) {
	s := newDecider()
	s.fail = context.DeadlineExceeded
	m := w.started(mailbox.Config{Runtime: s, RetryDelay: 300 * time.Millisecond})
	sub := w.submit(m, "t")
	<-s.begun
	close(s.goOn)
	for w.head("t").Claim != nil {
		must(w.t, w.ctx().Err())
	}
	w.decide(m, sub.Run)
	w.decided(m, sub, 2)
}

func runHasEnded(w *world) {
	w.waits("t", "d1", time.Time{})
	w.enqueue("t", "d2")
	w.enqueue("t", "d3")
	equal(w.t, "run of the third", w.load("d3").RunID, "run-d1")
	k := w.claim("t")
	_, err := w.queue.Settle(w.ctx(), hold(k), mailbox.Settlement{Verdict: mailbox.Ack, Result: mailbox.Result{Status: mailbox.RunDone, Termination: "natural", Response: "all done"}})
	must(w.t, err)
	r := w.request()
	r.NewRun = "run-new"
	k, ok, err := w.queue.Claim(w.ctx(), "t", r)
	must(w.t, err)
	equal(w.t, "claimed", ok, true)
	equal(w.t, "run", k.Run.ID+" "+string(k.Run.Status), "run-new running")
	k, _, err = w.queue.Claim(w.ctx(), "t", r) // once more, since the answer was lost
	must(w.t, err)
	equal(w.t, "run", k.Run.ID, "run-new")
	w.settle(k, mailbox.Bury)
	done := w.run("run-d1")
	equal(w.t, "the run that had ended", string(done.Status)+" "+done.Termination+" "+done.Output, "done natural all done")
	equal(w.t, "the new one", w.run("run-new").Termination, mailbox.TerminationError)
	equal(w.t, "run of the third", w.load("d3").RunID, "run-new")
}
