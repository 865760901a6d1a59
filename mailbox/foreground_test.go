package mailbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestSubmission(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"submit_background_enqueues_dispatch": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			sub := queued(t, m, request("t", "x"))
			d := wantStatus(t, m, sub.Dispatch, mailbox.Queued)
			if d.ID == d.RunID || d.RunID != sub.Run || d.Thread != "t" {
				t.Errorf("dispatch is %+v", d)
			}
		},
		"submit_background_delivers_scheduled_policy_context": func(t *testing.T) {
			s := &script{}
			m := started(t, mailbox.Config{Runtime: s})
			r := request("t", "x")
			r.Adapter = "acp"
			sub := background(t, m, r)
			sleep(0)
			j := s.jobs[0]
			equal(t, "mode and adapter", j.Request.Mode+" "+j.Request.Adapter, "scheduled"+" acp")
			equal(t, "dispatch", j.Dispatch.ID, sub.Dispatch)
			run := wantRun(t, m, sub.Run, mailbox.RunDone, "natural")
			if run.Dispatch != sub.Dispatch || run.Session == "" || run.Session != j.Dispatch.Instance {
				t.Errorf("run is %+v", run)
			}
		},
		"submit_background_returns_correct_status": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: &script{do: untilStopped}})
			equal(t, "the first runs", background(t, m, request("t", "one")).Running, true)
			equal(t, "the second runs", background(t, m, request("t", "two")).Running, false)
		},
		"mailbox_submit_result_fields": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			sub, err := m.Submit(t.Context(), request("t", "x"))
			must(t, err)
			if sub.Dispatch == "" || sub.Run == "" || sub.Run == sub.Dispatch || sub.Thread != "t" || !sub.Running || sub.Events == nil || sub.Repeated {
				t.Errorf("submission is %+v", sub)
			}
		},
		"submit_returns_event_channel": func(t *testing.T) {
			s := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
				equal(t, "mode", j.Request.Mode, "foreground")
				j.Emit("text", []byte("hello"))
				return mailbox.Result{}, nil
			}}
			m := open(t, mailbox.Config{Runtime: s})
			sub, err := m.Submit(t.Context(), request("t", "x"))
			must(t, err)
			equal(t, "events", strings.Join(events(t, sub.Events), " "), "1:text:hello 2:mailbox_settled:acked")
		},
		"submit_inline_claim_empty_cancels_precreated_run": func(t *testing.T) {
			claim := mailbox.ClaimRequest{Token: "other", Owner: "other", Lease: time.Hour}
			mem := &meanwhile{Store: memstore.New()}
			m := open(t, mailbox.Config{Runtime: &script{}, Store: plain{mem}})
			other := open(t, mailbox.Config{Runtime: &script{}, Store: mem.Store})
			// Another process takes the thread between the interrupt and the claim.
			mem.after(1, func(ctx context.Context) {
				_, err := other.InterruptThread(ctx, "t", mailbox.InterruptRequest{})
				must(t, err)
				_, err = other.Enqueue(ctx, mailbox.Entry{ID: "other", Request: mailbox.Request{Thread: "t", NewRun: "other-run"}, Claim: &claim})
				must(t, err)
			})
			r := request("t", "x")
			r.NewRun = "mine"
			_, err := m.Submit(t.Context(), r)
			if !errors.Is(err, mailbox.ErrBusy) || !strings.Contains(err.Error(), "thread has an active run; cannot claim inline") {
				t.Errorf("submit gave %v", err)
			}
			_, found, err := m.Run(t.Context(), "mine")
			must(t, err)
			equal(t, "a run is left", found, false)
			equal(t, "queued", record(t, m, "t").Queued, 0)
		},
		"submit_inline_claim_fails_when_thread_already_claimed": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			claim := mailbox.ClaimRequest{Token: "other", Owner: "other", Lease: time.Hour}
			_, err := m.Enqueue(t.Context(), mailbox.Entry{ID: "other", Request: mailbox.Request{Thread: "t", NewRun: "other-run"}, Claim: &claim})
			must(t, err)
			if _, err := m.Submit(t.Context(), request("t", "x")); !errors.Is(err, mailbox.ErrBusy) {
				t.Errorf("submit gave %v", err)
			}
			list, err := memList(t, m, "t")
			must(t, err)
			equal(t, "dispatches", len(list), 1)
			equal(t, "claimed", list[0].Status, mailbox.Claimed)
		},
		"concurrent_submit_background_same_thread_only_one_runs": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: &script{}}) // it fails when two run at once
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if _, err := m.SubmitBackground(t.Context(), request("t", "x")); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			sleep(time.Minute)
			list, err := memList(t, m, "t")
			must(t, err)
			equal(t, "dispatches", len(list), 20)
			for i := range list {
				equal(t, "status", list[i].Status, mailbox.Acked)
				equal(t, "attempts", list[i].Attempts, 0)
			}
		},
		"concurrent_submit_same_thread_only_one_claims": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{do: untilStopped}})
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					if _, err := m.Submit(t.Context(), request("t", "x")); err != nil && !errors.Is(err, mailbox.ErrBusy) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			synctest.Wait()
			claimed, err := m.Dispatches(t.Context(), mailbox.DispatchQuery{Thread: "t", Statuses: []mailbox.Status{mailbox.Claimed}, Limit: 10})
			must(t, err)
			equal(t, "claimed", len(claimed), 1)
			equal(t, "executions", len(m.Executing()), 1)
		},
		"foreground_submit_marks_prior_queued_run_cancelled": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			prior := queued(t, m, request("t", "first"))
			sub, err := m.Submit(t.Context(), request("t", "second"))
			must(t, err)
			wantStatus(t, m, prior.Dispatch, mailbox.Superseded)
			wantRun(t, m, prior.Run, mailbox.RunDone, mailbox.TerminationCancelled)
			equal(t, "superseded", sub.Superseded[0].ID, prior.Dispatch)
		},
		"foreground_submit_sends_live_cancel_for_remote_active_dispatch": func(t *testing.T) {
			mem := memstore.New()
			s := &script{do: untilStopped}
			there := started(t, mailbox.Config{Runtime: s, Store: mem, Owner: "there"})
			first := background(t, there, request("t", "first"))
			here := open(t, mailbox.Config{Runtime: &script{}, Store: mem, Owner: "here"})
			sub, err := here.Submit(t.Context(), request("t", "second"))
			must(t, err)
			equal(t, "running", sub.Running, true)
			wantStatus(t, here, first.Dispatch, mailbox.Superseded)
			_, err = here.Await(t.Context(), sub.Dispatch)
			must(t, err)
			equal(t, "owner", wantStatus(t, here, sub.Dispatch, mailbox.Acked).Owner, "here")
		},
		"foreground_submit_does_not_prepare_replacement_when_remote_cancel_times_out": func(t *testing.T) { givesUp(t, true) },
		"foreground_submit_does_not_prepare_replacement_when_local_cancel_times_out":  func(t *testing.T) { givesUp(t, false) },
		"foreground_submit_waits_for_local_cancelled_dispatch_to_release_claim":       waitsForRelease,
		"foreground_gets_its_turn_when_the_claim_is_released": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{do: func(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
				<-ctx.Done()
				timer := time.NewTimer(time.Second)
				<-timer.C
				return mailbox.Result{}, ctx.Err()
			}}})
			_, err := m.Submit(t.Context(), request("t", "first"))
			must(t, err)
			synctest.Wait() // the first is at work
			begin := time.Now()
			_, err = m.Submit(t.Context(), request("t", "second"))
			must(t, err)
			equal(t, "time that it took", time.Since(begin), time.Second)
		},
	})
}

// meanwhile is a store where something happens after some writes.
type meanwhile struct {
	store.Store
	mu   sync.Mutex
	left int
	do   func(context.Context)
}

func (s *meanwhile) after(updates int, do func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.do = updates, do
}

func (s *meanwhile) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	revision, err := s.Store.Apply(ctx, b)
	s.mu.Lock()
	s.left--
	do := s.do
	now := s.left == 0
	s.mu.Unlock()
	if now {
		do(ctx)
	}
	return revision, err
}

// givesUp: what is under way does not stop in time; nothing is written for the new request.
func givesUp(t *testing.T, remote bool) {
	t.Helper()
	mem := memstore.New()
	release := make(chan struct{})
	there := started(t, mailbox.Config{Store: mem, Runtime: &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
		<-release // deaf
		return mailbox.Result{}, nil
	}}})
	first := background(t, there, request("t", "first"))
	synctest.Wait()
	here := there
	if remote {
		here = open(t, mailbox.Config{Runtime: &script{}, Store: mem})
	}
	r := request("t", "second")
	r.NewRun = "replacement"
	begin := time.Now()
	if _, err := here.Submit(t.Context(), r); !errors.Is(err, mailbox.ErrBusy) {
		t.Errorf("submit gave %v", err)
	}
	equal(t, "time that it waited", time.Since(begin), 5*time.Second)
	_, found, err := here.Run(t.Context(), "replacement")
	must(t, err)
	equal(t, "the replacement is there", found, false)
	list, err := memList(t, here, "t")
	must(t, err)
	equal(t, "dispatches", len(list), 1)
	wantStatus(t, here, first.Dispatch, mailbox.Claimed)
	close(release)
}

// waitsForRelease: the run has stopped, and its claim cannot be settled since the store fails.
func waitsForRelease(t *testing.T) {
	mem := memstore.New()
	var down atomic.Bool
	s := &script{do: func(ctx context.Context, _ *mailbox.Job) (mailbox.Result, error) {
		<-ctx.Done()
		down.Store(true)
		return mailbox.Result{}, ctx.Err()
	}}
	m := started(t, mailbox.Config{Runtime: s, Store: &mailboxtest.Faulty{Store: mem, Plan: func(_ context.Context, operation string) mailboxtest.Fault {
		if down.Load() && operation == "apply" {
			return mailboxtest.FaultBefore
		}
		return mailboxtest.FaultNone
	}}})
	first := background(t, m, request("t", "first"))
	synctest.Wait()
	if _, err := m.Submit(t.Context(), request("t", "second")); !errors.Is(err, mailbox.ErrBusy) {
		t.Errorf("submit gave %v", err)
	}
	list, err := memList(t, m, "t")
	must(t, err)
	equal(t, "dispatches", len(list), 1)
	wantStatus(t, m, first.Dispatch, mailbox.Claimed)
	equal(t, "messages", record(t, m, "t").Messages, 0)
	down.Store(false)
	sleep(time.Minute)
	wantStatus(t, m, first.Dispatch, mailbox.Superseded)
}
