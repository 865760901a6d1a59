package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"mailbox_config_defaults": defaults,
		"mailbox_config_custom_values": func(t *testing.T) {
			m := started(t, mailbox.Config{
				Runtime: &script{do: untilStopped}, Lease: mailbox.Lease{Duration: 8 * time.Second, Renew: 3 * time.Second},
				Retry: mailbox.Retry{Attempts: 2}, Owner: "me",
			})
			sub := background(t, m, request("t", "x"))
			equal(t, "lease of a claim", time.Until(record(t, m, "t").Claim.Until), 8*time.Second)
			d := wantStatus(t, m, sub.Dispatch, mailbox.Claimed)
			equal(t, "attempts", d.MaxAttempts, 2)
			equal(t, "owner", d.Owner, "me")
			sleep(3 * time.Second)
			equal(t, "lease after the renewal", time.Until(record(t, m, "t").Claim.Until), 8*time.Second)
		},
		"wrong_values": func(t *testing.T) {
			for name, cfg := range map[string]mailbox.Config{
				"Store":          {Runtime: &script{}},
				"Lease.Renew":    {Runtime: &script{}, Store: memstore.New(), Lease: mailbox.Lease{Duration: time.Second}},
				"Limits.Workers": {Runtime: &script{}, Store: memstore.New(), Limits: mailbox.Limits{Workers: -1}},
				"Retry.Starts":   {Runtime: &script{}, Store: memstore.New(), Retry: mailbox.Retry{Starts: -1}},
				"Limits":         {Runtime: &script{}, Store: memstore.New(), Limits: mailbox.Limits{Depth: -1}},
			} {
				if _, err := mailbox.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "Config."+name) {
					t.Errorf("%s: %v", name, err)
				}
			}
		},
		"without_a_runtime": func(t *testing.T) {
			m := open(t, mailbox.Config{Store: memstore.New()})
			background(t, m, request("t", "x"))
			_, err := m.Submit(t.Context(), request("t", "y"))
			_, polled := m.Poll(t.Context())
			for _, err := range []error{err, m.Start(t.Context()), polled} {
				if !errors.Is(err, mailbox.ErrInvalid) || !strings.Contains(err.Error(), "Config.Runtime") {
					t.Errorf("executed without a runtime: %v", err)
				}
			}
			equal(t, "queued", record(t, m, "t").Queued, 1)
		},
		"mailbox_lifecycle_config_defaults": func(t *testing.T) {
			for attempts, want := range map[int]time.Duration{0: 0, 3: 500 * time.Millisecond} { // one attempt, and 250 ms between
				down := &mailboxtest.Faulty{Store: memstore.New(), Plan: func(context.Context, string) mailboxtest.Fault { return mailboxtest.FaultBefore }}
				m := open(t, mailbox.Config{Runtime: &script{}, Store: down, Retry: mailbox.Retry{Starts: attempts}})
				begin := time.Now()
				if err := m.Start(t.Context()); err == nil || time.Since(begin) != want {
					t.Errorf("%d attempts: after %v: %v", attempts, time.Since(begin), err)
				}
			}
		},
		"dispatch_signal_blocked_nack_delay_backs_off_and_caps": func(t *testing.T) {
			var at []time.Time
			store := memstore.New()
			background(t, open(t, mailbox.Config{Runtime: &script{}, Store: store}), request("t", "x"))
			down := &mailboxtest.Faulty{Store: store, Damaged: func(thread string) bool {
				at = append(at, time.Now())
				return true
			}}
			started(t, mailbox.Config{Runtime: &script{}, Store: down})
			sleep(5 * time.Minute)
			for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
				equal(t, fmt.Sprint("delay after attempt ", i+1), at[i+1].Sub(at[i]), want)
			}
			last := len(at) - 1
			equal(t, "longest delay", at[last].Sub(at[last-1]), 30*time.Second)
		},
		"inline_claim_guard_is_reasonable": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: &script{}, Store: memstore.New()})
			// A process that interrupts and is killed leaves the thread reserved for a while.
			_, err := m.InterruptThread(t.Context(), "t", mailbox.InterruptRequest{Reserve: 2 * (5 * time.Second)})
			must(t, err)
			sub := background(t, m, request("t", "x"))
			sleep(2*(5*time.Second) - time.Millisecond)
			wantStatus(t, m, sub.Dispatch, mailbox.Queued)
			sleep(time.Second)
			wantStatus(t, m, sub.Dispatch, mailbox.Acked)
		},
		"dispatch_status_enum_variants": func(t *testing.T) {
			var names []string
			for _, s := range mailbox.Statuses() {
				names = append(names, string(s))
				equal(t, "validity of "+string(s), s.Valid(), true)
				equal(t, "terminality of "+string(s), s.Terminal(), s != mailbox.Queued && s != mailbox.Claimed)
			}
			equal(t, "statuses", strings.Join(names, " "), "queued claimed acked cancelled superseded dead_letter")
			equal(t, "validity of a strange one", mailbox.Status("Running").Valid(), false)
		},
		"dispatch_status_queued_zero": func(t *testing.T) {
			equal(t, "the first status", mailbox.Statuses()[0], mailbox.Queued)
			m := open(t, mailbox.Config{Runtime: &script{}})
			c, err := m.Count(t.Context())
			must(t, err)
			equal(t, "queued in an empty store", c[mailbox.Queued], 0)
			d := background(t, m, request("t", "x"))
			equal(t, "running", d.Running, false)
		},
		"mailbox_run_outcome_debug": func(t *testing.T) {
			equal(t, "words", fmt.Sprintln(mailbox.Outcome("completed"), mailbox.Outcome("transient_error"), mailbox.Outcome("permanent_error")),
				"completed transient_error permanent_error\n")
		},
		"mailbox_run_outcome_metric_labels_are_stable": func(t *testing.T) {
			for want, do := range map[string]func(context.Context, *mailbox.Job) (mailbox.Result, error){
				"completed": func(context.Context, *mailbox.Job) (mailbox.Result, error) { return mailbox.Result{}, nil },
				"transient_error": func(context.Context, *mailbox.Job) (mailbox.Result, error) {
					return mailbox.Result{}, errors.New("a blip")
				},
				"permanent_error": func(context.Context, *mailbox.Job) (mailbox.Result, error) {
					return mailbox.Result{}, mailbox.ErrPermanent
				},
				"cancelled": untilStopped,
			} {
				w := &witness{}
				m := started(t, mailbox.Config{Runtime: &script{do: do}, Retry: mailbox.Retry{Attempts: 1}, Observers: []mailbox.Observer{w}})
				sub := background(t, m, request("t", "x"))
				sleep(0)
				if want == "cancelled" {
					_, err := m.Cancel(t.Context(), sub.Dispatch)
					must(t, err)
					sleep(0)
				}
				equal(t, "outcomes of the execution", fmt.Sprint(w.executions), "["+want+"]")
			}
			for status, want := range map[mailbox.Status]mailbox.Outcome{
				mailbox.Acked: "completed", mailbox.Cancelled: "cancelled", mailbox.Superseded: "superseded", mailbox.DeadLetter: "dead_letter",
				mailbox.Queued: "", mailbox.Claimed: "",
			} {
				equal(t, "outcome of "+string(status), (&mailbox.Dispatch{Status: status}).Outcome(), want)
			}
		},
		"mailbox_construction_depends_on_runtime_boundary_not_agent_runtime": func(t *testing.T) {
			var boundary mailbox.Runtime = upper{} // anything that executes a job; internal/archtest keeps agents out
			m := started(t, mailbox.Config{Runtime: boundary})
			sub := background(t, m, request("t", "x"))
			sleep(0)
			wantStatus(t, m, sub.Dispatch, mailbox.Acked)
		},
	})
}

// defaults holds what a mailbox does with a zero config.
func defaults(t *testing.T) {
	phase := make(chan bool)
	s := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
		for suspended := range phase {
			j.Suspended(suspended)
		}
		return mailbox.Result{}, nil
	}}
	ticks := 0
	m := started(t, mailbox.Config{Runtime: s, Store: plain{memstore.New()}, Poll: time.Hour, Retention: mailbox.Retention{Maintain: func(context.Context) error {
		ticks++
		return nil
	}}})
	lease := func() time.Duration { return time.Until(record(t, m, "held").Claim.Until) }
	held := background(t, m, request("held", "held"))
	equal(t, "lease", lease(), 30*time.Second)
	equal(t, "attempts", wantStatus(t, m, held.Dispatch, mailbox.Claimed).MaxAttempts, 5)
	sleep(10*time.Second - time.Millisecond)
	equal(t, "lease before it is renewed", lease(), 20*time.Second+time.Millisecond)
	sleep(time.Millisecond)
	equal(t, "lease after 10 s", lease(), 30*time.Second)
	phase <- true
	sleep(0)
	equal(t, "lease of a run that is suspended", lease(), 600*time.Second)
	close(phase)
	sleep(50 * time.Second)
	equal(t, "collections in a minute", ticks, 1)
	wantStatus(t, m, held.Dispatch, mailbox.Acked)
	sleep(24*time.Hour - time.Minute)
	wantStatus(t, m, held.Dispatch, mailbox.Acked)
	sleep(2 * time.Minute)
	if _, found, err := m.Dispatch(t.Context(), held.Dispatch); found || err != nil {
		t.Errorf("a dispatch that ended a day ago is there: %v", err)
	}
	equal(t, "first pause between attempts", pauses(t, mailbox.Config{})[0], 250*time.Millisecond)
	long := pauses(t, mailbox.Config{Retry: mailbox.Retry{Delay: 10 * time.Second}})
	equal(t, "longest pause", long[len(long)-1], 30*time.Second)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"mailbox_error_display": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			_, err := m.SubmitBackground(t.Context(), mailbox.Request{Thread: "t"})
			equal(t, "text", err.Error(), "mailbox: request: validation error: at least one message is required")
			equal(t, "text", mailbox.ConflictText(3, 4), "version conflict: expected 3, actual 4")
			for want, err := range map[string]error{
				"not found": mailbox.ErrNotFound, "already exists": mailbox.ErrExists, "outcome unknown": mailbox.ErrUnknownOutcome,
				"validation error": mailbox.ErrInvalid, "thread has an active run; cannot claim inline": mailbox.ErrBusy,
			} {
				equal(t, "text", err.Error(), want)
			}
		},
		"mailbox_error_store_variant": func(t *testing.T) {
			for name, unknown := range map[string]bool{"apply": true, "read": false} {
				down := &mailboxtest.Faulty{Store: memstore.New(), Plan: func(_ context.Context, operation string) mailboxtest.Fault {
					if operation == name {
						return mailboxtest.FaultBefore
					}
					return mailboxtest.FaultNone
				}}
				background(t, open(t, mailbox.Config{Runtime: &script{}, Store: down.Store}), request("t", "w"))
				m := open(t, mailbox.Config{Runtime: &script{}, Store: down})
				_, err := m.SubmitBackground(t.Context(), request("t", "x"))
				if !errors.Is(err, mailboxtest.ErrInjected) || errors.Is(err, mailbox.ErrUnknownOutcome) != unknown || !strings.Contains(err.Error(), `thread "t"`) {
					t.Errorf("a store whose %s fails gives %v", name, err)
				}
			}
		},
		"classify_error_ok_is_completed": func(t *testing.T) {
			equal(t, "outcome", mailbox.Classify(nil), mailbox.Outcome("completed"))
		},
		"classify_error_storage_error_is_transient": func(t *testing.T) {
			err := fmt.Errorf("storage failed: %w", mailboxtest.ErrInjected)
			equal(t, "outcome", mailbox.Classify(err), mailbox.Outcome("transient_error"))
		},
		"classify_error_thread_already_running_is_permanent": func(t *testing.T) {
			equal(t, "outcome", mailbox.Classify(mailbox.ErrBusy), mailbox.Outcome("transient_error"))
		},
	})
}

// pauses are the times between the attempts of a dispatch that always fails.
func pauses(t *testing.T, cfg mailbox.Config) (out []time.Duration) {
	t.Helper()
	var at []time.Time
	cfg.Runtime = &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
		at = append(at, time.Now())
		return mailbox.Result{}, errors.New("a blip")
	}}
	cfg.Poll, cfg.Retry.Attempts = time.Hour, 12
	m := started(t, cfg)
	sub := background(t, m, request("t", "x"))
	sleep(time.Hour)
	wantStatus(t, m, sub.Dispatch, mailbox.DeadLetter)
	for i := range at[1:] {
		out = append(out, at[i+1].Sub(at[i]))
	}
	return out
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	cases(t, map[string]func(*testing.T){
		"nack_backoff_progression": func(t *testing.T) {
			got := pauses(t, mailbox.Config{})
			for i, want := range []int64{250, 250, 500, 1000, 2000, 4000, 8000} {
				equal(t, fmt.Sprint("pause ", i), got[i].Milliseconds(), want)
			}
		},
		"nack_backoff_caps_at_max": func(t *testing.T) {
			got := pauses(t, mailbox.Config{Retry: mailbox.Retry{MaxDelay: 5 * time.Second}})
			equal(t, "pause before the cap", got[5], 4000*ms)
			equal(t, "pause at the cap", got[6], 5000*ms)
			equal(t, "last pause", got[len(got)-1], 5000*ms)
		},
		"nack_backoff_zero_attempt_is_base_delay": func(t *testing.T) {
			equal(t, "first pause", pauses(t, mailbox.Config{})[0], 250*ms)
		},
		"nack_backoff_high_attempt_stays_capped": func(t *testing.T) {
			got := pauses(t, mailbox.Config{})
			equal(t, "last pause", got[len(got)-1], 16000*ms)
			got = pauses(t, mailbox.Config{Retry: mailbox.Retry{MaxDelay: 10 * time.Second}})
			equal(t, "last pause with a cap", got[len(got)-1], 10000*ms)
		},
	})
}
