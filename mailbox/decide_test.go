package mailbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"what_the_run_refuses_is_queued":             decideRefused,
		"what_does_not_arrive_is_queued":             decideUndelivered,
		"for_a_run_that_comes_to_wait_is_queued":     decideMeanwhile,
		"what_the_run_takes_is_not_queued":           decideAccepted,
		"for_a_run_that_fails_is_kept":               decideBetweenTries,
		"that_comes_twice_answers_once":              decideTwice,
		"for_a_wait_that_is_over_is_refused":         decideLate,
		"of_a_process_that_cannot_judge_is_recorded": decideUnjudged,
		"of_two_processes_answers_once":              decideByTwo,
	})
}

// asking is a runtime whose runs wait for a decision once they may continue, and come to what was decided.
func asking(may <-chan struct{}) *script {
	return &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
		if len(j.Request.Decisions) > 0 {
			return mailbox.Result{Termination: "decided", Response: string(j.Request.Decisions[0].Data)}, nil
		}
		<-may
		return mailbox.Result{Status: mailbox.RunWaiting, Wait: "tool_permission"}, nil
	}}
}

// decide decides about a call of a run, and checks that the decision is kept.
func decide(t *testing.T, m *mailbox.Mailbox, run, call string) {
	t.Helper()
	ok, err := m.Decide(t.Context(), run, mailbox.Decision{Call: call, Data: []byte("yes")})
	must(t, err)
	equal(t, "kept", ok, true)
}

// dispatches waits, and lists those of the thread, which have been acknowledged.
func dispatches(t *testing.T, m *mailbox.Mailbox) []mailbox.Dispatch {
	t.Helper()
	sleep(time.Minute)
	list, err := m.Dispatches(t.Context(), mailbox.DispatchQuery{Thread: "t", Limit: 100})
	must(t, err)
	for i := range list {
		wantStatus(t, m, list[i].ID, mailbox.Acked)
	}
	return list
}

// decided checks that the decision came with a dispatch of its own, and that the run came to it.
func decided(t *testing.T, m *mailbox.Mailbox, sub mailbox.Submission) {
	t.Helper()
	equal(t, "dispatches", len(dispatches(t, m)), 2)
	equal(t, "output", wantRun(t, m, sub.Run, mailbox.RunDone, "decided").Response, "yes")
}

func decideRefused(t *testing.T) {
	may := make(chan struct{})
	m := started(t, mailbox.Config{Runtime: asking(may)})
	sub := background(t, m, request("t", "x"))
	sleep(0)
	decide(t, m, sub.Run, "c")
	close(may)
	decided(t, m, sub)
}

func decideUndelivered(t *testing.T) {
	may, deaf := make(chan struct{}), plain{memstore.New()} // no commands
	m := started(t, mailbox.Config{Runtime: asking(may), Store: deaf})
	sub := background(t, m, request("t", "x"))
	sleep(0)
	decide(t, open(t, mailbox.Config{Runtime: &script{}, Store: deaf}), sub.Run, "c")
	close(may)
	decided(t, m, sub)
}

func decideMeanwhile(t *testing.T) {
	may := make(chan struct{})
	s := asking(may)
	m := started(t, mailbox.Config{Runtime: s})
	sub := background(t, m, request("t", "x"))
	s.steer = func(string, mailbox.Request) bool {
		close(may)
		if _, err := m.Await(t.Context(), sub.Dispatch); err != nil {
			t.Error(err)
		}
		return false // it waits by now
	}
	sleep(0)
	decide(t, m, sub.Run, "c")
	decided(t, m, sub)
}

func decideAccepted(t *testing.T) {
	may := make(chan struct{})
	s := asking(may)
	s.steer = func(string, mailbox.Request) bool { return true }
	m := started(t, mailbox.Config{Runtime: s})
	sub := background(t, m, request("t", "x"))
	sleep(0)
	decide(t, m, sub.Run, "c")
	close(may)
	equal(t, "dispatches", len(dispatches(t, m)), 1)
}

// decideBetweenTries: no process has the thread, since an attempt has failed.
func decideBetweenTries(t *testing.T) {
	may := make(chan struct{})
	close(may)
	s := asking(may)
	again := s.do
	s.do = func(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
		if j.Dispatch.Seq == 1 && j.Attempt == 1 {
			return mailbox.Result{}, context.DeadlineExceeded
		}
		return again(ctx, j)
	}
	m := started(t, mailbox.Config{Runtime: s})
	sub := background(t, m, request("t", "x"))
	sleep(0)
	equal(t, "claimed", record(t, m, "t").Claim != nil, false)
	decide(t, m, sub.Run, "c")
	decided(t, m, sub)
}

// approving is a process whose run waits for a decision about "deploy", and then about "announce".
func approving(t *testing.T) (*memstore.Store, *mailbox.Mailbox, mailbox.Submission) {
	t.Helper()
	store := memstore.New()
	m := started(t, mailbox.Config{Runtime: approval{}, Store: store})
	sub := background(t, m, request("t", "x"))
	sleep(0)
	wantRun(t, m, sub.Run, mailbox.RunWaiting, "")
	return store, m, sub
}

// refusals counts the dispatches of the thread that have a refusal, each where the run waited, and without an attempt.
func refusals(t *testing.T, m *mailbox.Mailbox) (n int) {
	t.Helper()
	for _, d := range dispatches(t, m) {
		if strings.Contains(d.LastError, mailbox.ErrRefused.Error()) {
			n++
			equal(t, "where the run stood", d.RunStatus, mailbox.RunWaiting)
			equal(t, "attempts", d.Attempts, 0)
		}
	}
	return n
}

// refuses holds that the sender of a decision gets the refusal.
func refuses(t *testing.T, m *mailbox.Mailbox, run, call string) {
	t.Helper()
	if ok, err := m.Decide(t.Context(), run, mailbox.Decision{Call: call}); ok || !errors.Is(err, mailbox.ErrRefused) {
		t.Errorf("decision about %q: kept %v, %v", call, ok, err)
	}
}

// approved holds that the run waits for "announce", and then comes to both decisions.
func approved(t *testing.T, m *mailbox.Mailbox, run string) {
	t.Helper()
	equal(t, "what the run waits for", wantRun(t, m, run, mailbox.RunWaiting, "").Wait, "announce")
	decide(t, m, run, "announce")
	sleep(time.Minute)
	equal(t, "output", wantRun(t, m, run, mailbox.RunDone, "natural").Response, "deploy: yes\nannounce: yes\n")
}

func decideTwice(t *testing.T) {
	_, m, sub := approving(t)
	must(t, m.Stop(t.Context()))
	decide(t, m, sub.Run, "deploy")
	decide(t, m, sub.Run, "deploy")
	must(t, m.Start(t.Context()))
	equal(t, "refused", refusals(t, m), 1)
	approved(t, m, sub.Run)
}

// decideLate holds that another process, too, knows what was decided before.
func decideLate(t *testing.T) {
	store, m, sub := approving(t)
	refuses(t, m, sub.Run, "announce")
	decide(t, m, sub.Run, "deploy")
	sleep(time.Minute)
	refuses(t, m, sub.Run, "deploy")
	must(t, m.Close(t.Context()))
	next := started(t, mailbox.Config{Runtime: approval{}, Store: store})
	refuses(t, next, sub.Run, "deploy")
	refuses(t, next, sub.Run, "never")
	approved(t, next, sub.Run)
	ok, err := next.Decide(t.Context(), sub.Run, mailbox.Decision{Call: "announce"})
	if ok || err != nil {
		t.Errorf("decision for a run that has ended: kept %v, %v", ok, err)
	}
}

func decideUnjudged(t *testing.T) {
	store, m, sub := approving(t)
	client := open(t, mailbox.Config{Runtime: &script{}, Store: store})
	for _, call := range []string{"announce", "deploy", "deploy", "never"} {
		decide(t, client, sub.Run, call)
		sleep(time.Minute)
	}
	equal(t, "refused", refusals(t, m), 3)
	approved(t, m, sub.Run)
}

func decideByTwo(t *testing.T) {
	store, m, sub := approving(t)
	other := started(t, mailbox.Config{Runtime: approval{}, Store: store})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			box := []*mailbox.Mailbox{m, other}[i%2]
			if _, err := box.Decide(t.Context(), sub.Run, mailbox.Decision{Call: "deploy", Data: []byte("yes")}); err != nil && !errors.Is(err, mailbox.ErrRefused) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	equal(t, "answers", len(dispatches(t, m))-1-refusals(t, m), 1)
	approved(t, other, sub.Run)
}
