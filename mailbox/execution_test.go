package mailbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/memstore"
)

func fails(err error) *script {
	return &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) { return mailbox.Result{}, err }}
}

func TestExecution(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"background_success_records_run_result_and_keeps_dispatch_id_separate_from_run_id": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: &script{}})
			sub := background(t, m, request("t", "x"))
			sleep(0)
			d := wantStatus(t, m, sub.Dispatch, mailbox.Acked)
			equal(t, "result", string(d.RunStatus)+" "+d.Termination+" "+d.Response+d.RunError, "done natural done")
			if d.ID == d.RunID || d.Instance == "" || d.CompletedAt.IsZero() {
				t.Errorf("dispatch is %+v", d)
			}
			equal(t, "run's output", wantRun(t, m, sub.Run, mailbox.RunDone, "natural").Response, "done")
		},
		"background_permanent_error_records_run_result_before_dead_letter": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: fails(errors.Join(errors.New("no such agent"), mailbox.ErrPermanent))})
			sub := background(t, m, request("t", "x"))
			sleep(0)
			d := wantStatus(t, m, sub.Dispatch, mailbox.DeadLetter)
			equal(t, "result", string(d.RunStatus)+" "+d.Termination, "done error")
			if !strings.Contains(d.RunError, "no such agent") || !strings.Contains(d.LastError, "no such agent") || d.Instance == "" {
				t.Errorf("dispatch is %+v", d)
			}
			if r := wantRun(t, m, sub.Run, mailbox.RunDone, mailbox.TerminationError); !strings.Contains(r.Error, "no such agent") {
				t.Errorf("run's error is %q", r.Error)
			}
		},
		"reconstruct_failure_cleans_worker_and_dispatches_next_queued": func(t *testing.T) {
			s := &script{}
			m := open(t, mailbox.Config{Runtime: s})
			_, err := m.Enqueue(t.Context(), mailbox.Entry{ID: "broken", Request: mailbox.Request{Thread: "t", NewRun: "r", MaxAttempts: 5}, Payload: []byte("{")})
			must(t, err)
			next := queued(t, m, request("t", "next"))
			must(t, m.Start(t.Context()))
			sleep(0)
			d := wantStatus(t, m, "broken", mailbox.DeadLetter)
			equal(t, "attempts", d.Attempts, 1)
			wantRun(t, m, "r", mailbox.RunDone, mailbox.TerminationError)
			wantStatus(t, m, next.Dispatch, mailbox.Acked)
			s.wantRan(t, "next")
		},
		"interrupt_between_claim_and_execution_supersedes_without_runtime_start": func(t *testing.T) {
			s := &script{}
			store := &meanwhile{Store: memstore.New()}
			m := open(t, mailbox.Config{Runtime: s, Store: store})
			sub := queued(t, m, request("t", "x"))
			store.after(1, func(ctx context.Context) {
				_, err := m.InterruptThread(ctx, "t", mailbox.InterruptRequest{})
				must(t, err)
			})
			must(t, m.Start(t.Context()))
			sleep(0)
			equal(t, "executions", len(s.jobs), 0)
			equal(t, "claimed", record(t, m, "t").Claim != nil, false)
			wantStatus(t, m, sub.Dispatch, mailbox.Superseded)
			wantRun(t, m, sub.Run, mailbox.RunDone, mailbox.TerminationCancelled)
		},
		"cancel_queued_dispatch_works": func(t *testing.T) {
			w := &witness{}
			m := open(t, mailbox.Config{Runtime: &script{}, Observers: []mailbox.Observer{w}})
			sub := queued(t, m, request("t", "x"))
			for range 2 {
				ok, err := m.Cancel(t.Context(), sub.Dispatch)
				must(t, err)
				equal(t, "cancelled", ok, true)
			}
			wantStatus(t, m, sub.Dispatch, mailbox.Cancelled)
			wantRun(t, m, sub.Run, mailbox.RunDone, mailbox.TerminationCancelled)
			equal(t, "cancellations that went well", w.count("cancel ok"), 2)
			equal(t, "dispatches that ended", len(w.settled), 1)
			equal(t, "outcome", w.settled[0].Dispatch.Outcome(), mailbox.Outcome("cancelled"))
			equal(t, "its run", w.settled[0].Run.Status, mailbox.RunDone)
		},
		"list_dispatches_returns_entries": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			one, two := queued(t, m, request("t", "one")), queued(t, m, request("t", "two"))
			queued(t, m, request("other", "x"))
			list, err := m.Dispatches(t.Context(), mailbox.DispatchQuery{Thread: "t", Limit: 10})
			must(t, err)
			equal(t, "dispatches", len(list), 2)
			equal(t, "their order", list[0].ID+list[1].ID, one.Dispatch+two.Dispatch)
			list, err = m.Dispatches(t.Context(), mailbox.DispatchQuery{Thread: "t", Statuses: []mailbox.Status{mailbox.Claimed}, Limit: 10})
			must(t, err)
			equal(t, "claimed ones", len(list), 0)
		},
		"interrupt_bumps_dispatch_epoch": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			before := queued(t, m, request("t", "before"))
			for want := range uint64(3) {
				equal(t, "epoch", record(t, m, "t").Epoch, want)
				out, err := m.Interrupt(t.Context(), "t")
				must(t, err)
				equal(t, "new epoch", out.Epoch, want+1)
			}
			wantStatus(t, m, before.Dispatch, mailbox.Superseded)
			equal(t, "epoch of a dispatch", wantStatus(t, m, queued(t, m, request("t", "x")).Dispatch, mailbox.Queued).Epoch, 3)
		},
		"interrupt_marks_superseded_queued_runs_cancelled": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			subs := []mailbox.Submission{queued(t, m, request("t", "one")), queued(t, m, request("t", "two"))}
			out, err := m.Interrupt(t.Context(), "t")
			must(t, err)
			equal(t, "superseded", len(out.Superseded), 2)
			for _, sub := range subs {
				wantStatus(t, m, sub.Dispatch, mailbox.Superseded)
				wantRun(t, m, sub.Run, mailbox.RunDone, mailbox.TerminationCancelled)
			}
		},
		"reclaim_dead_letter_marks_run_error":               func(t *testing.T) { deadByExpiry(t, mailboxtest.FaultNone) },
		"sweep_reconciles_dead_letter_dispatch_after_crash": func(t *testing.T) { deadByExpiry(t, mailboxtest.FaultAfter) },
		"mailbox_execution_records_dispatch_latency_metrics": func(t *testing.T) {
			w := &witness{}
			m := started(t, mailbox.Config{Runtime: &script{}, Observers: []mailbox.Observer{w}})
			background(t, m, request("t", "x"))
			sleep(0)
			equal(t, "executions", len(w.executions), 1)
			equal(t, "outcome", w.executions[0], mailbox.Outcome("completed"))
			equal(t, "ends", len(w.settled), 1)
			d := w.settled[0].Dispatch
			if d.CreatedAt.IsZero() || d.AvailableAt.IsZero() || d.CompletedAt.IsZero() || w.settled[0].Run.StartedAt.IsZero() {
				t.Errorf("times of %+v", w.settled[0])
			}
		},
		"mailbox_lease_renewal_is_wired_and_prevents_reclaim": func(t *testing.T) {
			store := memstore.New()
			s := &script{do: func(ctx context.Context, _ *mailbox.Job) (mailbox.Result, error) {
				timer := time.NewTimer(10 * (30 * time.Second))
				defer timer.Stop()
				select {
				case <-timer.C:
					return mailbox.Result{}, nil
				case <-ctx.Done():
					return mailbox.Result{}, context.Cause(ctx)
				}
			}}
			here := started(t, mailbox.Config{Runtime: s, Store: store, Owner: "here"})
			sub := background(t, here, request("t", "x"))
			synctest.Wait()
			heir := &script{}
			there := started(t, mailbox.Config{Runtime: heir, Store: store, Owner: "there"})
			for range 9 {
				sleep(30 * time.Second)
				_, err := there.Recover(t.Context())
				must(t, err)
			}
			wantStatus(t, there, sub.Dispatch, mailbox.Claimed)
			sleep(2 * (30 * time.Second))
			d := wantStatus(t, there, sub.Dispatch, mailbox.Acked)
			equal(t, "owner", d.Owner, "here")
			equal(t, "attempts", d.Attempts, 0)
			heir.wantRan(t)
			must(t, there.Stop(t.Context()))

			// Renewals that find that the thread was taken end the execution, long before its lease would.
			var ended time.Duration
			var why error
			begin := time.Now()
			s.do = func(ctx context.Context, _ *mailbox.Job) (mailbox.Result, error) {
				<-ctx.Done()
				ended, why = time.Since(begin), context.Cause(ctx)
				return mailbox.Result{}, why
			}
			lost := background(t, here, request("t", "y"))
			sleep(time.Second)
			thief, err := mailbox.New(t.Context(), mailbox.Config{Store: store, Lease: mailbox.Lease{Skew: -1}, Now: func() time.Time { return time.Now().Add(30 * time.Second) }})
			must(t, err)
			_, expired, err := thief.Expire(t.Context(), "t")
			must(t, err)
			equal(t, "taken", expired, true)
			_, claimed, err := thief.Claim(t.Context(), lost.Thread, mailbox.ClaimRequest{Token: "thief", Owner: "thief", Lease: time.Hour})
			must(t, err)
			equal(t, "claimed", claimed, true)
			sleep(10 * time.Second)
			equal(t, "end of the execution", ended, 10*time.Second)
			if !errors.Is(why, mailbox.ErrLeaseLost) {
				t.Errorf("it ended with %v", why)
			}
		},
		"suspension_aware_sink_sets_flag_on_suspended_tool_call": func(t *testing.T) {
			steps := make(chan bool)
			s := &script{do: func(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
				for yes := range steps {
					j.Suspended(yes)
				}
				return mailbox.Result{}, nil
			}}
			m := started(t, mailbox.Config{Runtime: s})
			background(t, m, request("t", "x"))
			for _, step := range []struct {
				suspended bool
				lease     time.Duration
			}{{true, 10 * time.Minute}, {false, 30 * time.Second}} {
				steps <- step.suspended
				synctest.Wait()
				equal(t, "lease", time.Until(record(t, m, "t").Claim.Until), step.lease)
			}
			close(steps)
			synctest.Wait()
		},
		"worker_status_not_corrupted_after_empty_claim": func(t *testing.T) {
			s := &script{}
			m := started(t, mailbox.Config{Runtime: s, Store: plain{memstore.New()}})
			sub := background(t, m, request("t", "first"))
			sleep(0)
			_, ok, err := m.Claim(t.Context(), "t", mailbox.ClaimRequest{Token: "x", Lease: time.Second})
			must(t, err)
			equal(t, "something to claim", ok, false)
			equal(t, "executions", len(m.Executing()), 0)
			background(t, m, request("t", "second"))
			sleep(0)
			s.wantRan(t, "first", "second")
			wantStatus(t, m, sub.Dispatch, mailbox.Acked)
		},
		"classify_error_phase_error_is_completed": func(t *testing.T) {
			s := fails(errors.New("plugin index: on_phase: it broke"))
			m := started(t, mailbox.Config{Runtime: s, Retry: mailbox.Retry{Attempts: 2}})
			sub := background(t, m, request("t", "x"))
			sleep(time.Minute)
			equal(t, "attempts", wantStatus(t, m, sub.Dispatch, mailbox.DeadLetter).Attempts, 2)
			wantRun(t, m, sub.Run, mailbox.RunDone, mailbox.TerminationError)
		},
		"gc_idle_workers_removes_idle_with_no_dispatches": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: &script{}, Store: plain{memstore.New()}, Poll: time.Hour})
			sub := background(t, m, request("t", "x"))
			sleep(0)
			equal(t, "executions", len(m.Executing()), 0)
			sleep(24*time.Hour + 2*time.Minute)
			_, found, err := m.Dispatch(t.Context(), sub.Dispatch)
			must(t, err)
			equal(t, "the old dispatch is there", found, false)
			_, err = m.Attach(t.Context(), sub.Dispatch)
			equal(t, "its events are gone", errors.Is(err, mailbox.ErrNotFound), true)
		},
		"gc_idle_workers_keeps_worker_with_queued_dispatches": func(t *testing.T) {
			s := &script{}
			m := started(t, mailbox.Config{Runtime: s, Store: plain{memstore.New()}, Poll: time.Hour})
			r := request("t", "x")
			r.At = time.Now().Add(3 * (24 * time.Hour))
			sub := background(t, m, r)
			sleep(2 * (24 * time.Hour))
			must(t, m.GC(t.Context()))
			wantStatus(t, m, sub.Dispatch, mailbox.Queued)
			sleep(24 * time.Hour)
			s.wantRan(t, "x")
		},
		"gc_idle_workers_noop_when_empty": func(t *testing.T) {
			w := &witness{}
			m := open(t, mailbox.Config{Runtime: &script{}, Observers: []mailbox.Observer{w}})
			must(t, m.GC(t.Context()))
			equal(t, "purges that found nothing", w.count("purge_terminal empty"), 2)
			equal(t, "others", w.count("purge_terminal ok")+w.count("purge_terminal error"), 0)
		},
		"reconnect_sink_returns_false_for_idle_worker": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			feed, err := m.Attach(t.Context(), queued(t, m, request("t", "x")).Dispatch)
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if e, err := feed.Next(ctx, 0); !errors.Is(err, context.DeadlineExceeded) || feed.Behind(0) != 0 {
				t.Errorf("a dispatch that is queued has the event %+v, %v", e, err)
			}
		},
		"reconnect_sink_returns_false_for_unknown_thread": func(t *testing.T) {
			if _, err := open(t, mailbox.Config{Runtime: &script{}}).Attach(t.Context(), "unknown"); !errors.Is(err, mailbox.ErrNotFound) {
				t.Errorf("attached: %v", err)
			}
		},
		"reconnect_sink_succeeds_for_running_worker": func(t *testing.T) {
			emit := make(chan string)
			s := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
				for text := range emit {
					j.Emit("text", []byte(text))
				}
				return mailbox.Result{}, nil
			}}
			m := started(t, mailbox.Config{Runtime: s})
			sub := background(t, m, request("t", "x"))
			for _, text := range []string{"a", "b"} {
				emit <- text
			}
			stream, err := m.Attach(t.Context(), sub.Dispatch)
			must(t, err)
			emit <- "c"
			close(emit)
			if got, want := events(t, stream), []string{"1:text:a", "2:text:b", "3:text:c", "4:mailbox_settled:acked"}; !slices.Equal(got, want) {
				t.Errorf("events %q, want %q", got, want)
			}
			// A client whose connection ended after the second one comes back late.
			late, err := m.Attach(t.Context(), sub.Dispatch)
			must(t, err)
			e, err := late.Next(t.Context(), 2)
			must(t, err)
			equal(t, "the next event", string(e.Data), "c")
		},
	})
}

// deadByExpiry: the last attempt is lost with its process. Whatever the store reports, dispatch and run
// end together.
func deadByExpiry(t *testing.T, fault mailboxtest.Fault) {
	t.Helper()
	store := memstore.New()
	former := open(t, mailbox.Config{Runtime: &script{}, Store: store, Retry: mailbox.Retry{Attempts: 1}})
	sub := queued(t, former, request("t", "x"))
	_, ok, err := former.Claim(t.Context(), "t", mailbox.ClaimRequest{Token: "dead", Lease: time.Second})
	must(t, err)
	equal(t, "claimed", ok, true)
	sleep(time.Minute)
	m := open(t, mailbox.Config{Runtime: &script{}, Store: &mailboxtest.Faulty{
		Store: store, Plan: func(_ context.Context, operation string) mailboxtest.Fault {
			if operation == "apply" {
				return fault
			}
			return mailboxtest.FaultNone
		},
	}})
	n, err := m.Recover(t.Context())
	if crashed := err != nil; crashed != (fault != mailboxtest.FaultNone) || !crashed && n != 1 {
		t.Errorf("recovered %d: %v", n, err)
	}
	n, err = former.Recover(t.Context())
	must(t, err)
	equal(t, "left to recover", n, 0)
	wantStatus(t, former, sub.Dispatch, mailbox.DeadLetter)
	if r := wantRun(t, former, sub.Run, mailbox.RunDone, mailbox.TerminationError); r.Error == "" {
		t.Error("the run has no error")
	}
}
