package mailbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func TestPostpone(t *testing.T) {
	t.Parallel()
	limited := errors.New("429")
	cases(t, map[string]func(*testing.T){
		"costs no attempt and keeps its place": func(t *testing.T) {
			times := 0
			s := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
				times++
				if times <= 7 {
					return mailbox.Result{}, mailbox.Postpone(time.Now().Add(time.Minute), "", limited)
				}
				return mailbox.Result{Termination: "natural"}, nil
			}}
			m := started(t, mailbox.Config{Runtime: s})
			sub := background(t, m, request("t", "first"))
			synctest.Wait()
			r, _, err := m.Run(t.Context(), sub.Run)
			must(t, err)
			if r.Status != mailbox.RunWaiting || r.Wait != mailbox.WaitRate || time.Until(r.WaitUntil) != time.Minute {
				t.Errorf("run %+v", r)
			}
			waiting, err := m.Threads(t.Context(), mailbox.ThreadQuery{Wait: mailbox.WaitRate, Limit: 10})
			must(t, err)
			equal(t, "threads that wait for the provider", len(waiting), 1)
			second := background(t, m, request("t", "second"))
			if second.Run == sub.Run {
				t.Error("a new request continues the run that was postponed")
			}
			sleep(30 * time.Second)
			equal(t, "executions after half a minute", len(s.ran()), 1)
			sleep(7 * time.Minute)
			d, _, err := m.Dispatch(t.Context(), sub.Dispatch)
			must(t, err)
			if d.Status != mailbox.Acked || d.Attempts != 0 || d.Postponed != 7 {
				t.Errorf("dispatch %+v", d)
			}
			equal(t, "the eighth execution", s.ran()[7], "first")
			wantStatus(t, m, second.Dispatch, mailbox.Acked)
		},
		"is bounded": func(t *testing.T) {
			s := &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
				return mailbox.Result{}, mailbox.Postpone(time.Now().Add(time.Second), "", limited)
			}}
			m := started(t, mailbox.Config{Runtime: s})
			r := request("t", "first")
			r.MaxAttempts = 1
			sub := background(t, m, r)
			sleep(time.Hour)
			wantStatus(t, m, sub.Dispatch, mailbox.DeadLetter)
			equal(t, "executions", len(s.ran()), 101)
		},
		"can be cancelled": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
				return mailbox.Result{}, mailbox.Postpone(time.Now().Add(time.Hour), "", limited)
			}}})
			sub := background(t, m, request("t", "first"))
			synctest.Wait()
			ok, err := m.CancelRun(t.Context(), sub.Run)
			must(t, err)
			r, _, err := m.Run(t.Context(), sub.Run)
			must(t, err)
			if !ok || r.Status != mailbox.RunDone || r.Termination != mailbox.TerminationCancelled {
				t.Errorf("cancelled %v, run %+v", ok, r)
			}
		},
		"a time for the next attempt": func(t *testing.T) {
			s := &script{}
			s.do = func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
				if j.Attempt < 2 {
					return mailbox.Result{}, mailbox.RetryAt(time.Now().Add(time.Hour), limited)
				}
				return mailbox.Result{}, nil
			}
			m := started(t, mailbox.Config{Runtime: s})
			sub := background(t, m, request("t", "first"))
			sleep(time.Hour - time.Second)
			equal(t, "executions", len(s.ran()), 1)
			sleep(2 * time.Second)
			d, _, err := m.Dispatch(t.Context(), sub.Dispatch)
			must(t, err)
			if d.Status != mailbox.Acked || d.Attempts != 1 {
				t.Errorf("dispatch %+v", d)
			}
		},
		"a result that comes too late counts": func(t *testing.T) {
			s := &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
				time.Sleep(2 * time.Minute)
				return mailbox.Result{Termination: "natural"}, nil
			}}
			m := started(t, mailbox.Config{Runtime: s})
			r := request("t", "first")
			r.Timeout = time.Minute
			sub := background(t, m, r)
			sleep(5 * time.Minute)
			if d := wantStatus(t, m, sub.Dispatch, mailbox.Acked); d.Attempts != 0 || d.LastError != "" {
				t.Errorf("dispatch is %+v", d)
			}
			wantRun(t, m, sub.Run, mailbox.RunDone, "natural")
			s.wantRan(t, "first")
		},
		"an execution that takes too long": func(t *testing.T) {
			var cause error
			s := &script{do: func(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
				if j.Attempt > 1 {
					return mailbox.Result{}, nil
				}
				<-ctx.Done()
				cause = context.Cause(ctx)
				return mailbox.Result{}, ctx.Err()
			}}
			m := started(t, mailbox.Config{Runtime: s})
			r := request("t", "first")
			r.Timeout = time.Minute
			sub := background(t, m, r)
			sleep(2 * time.Minute)
			d, _, err := m.Dispatch(t.Context(), sub.Dispatch)
			must(t, err)
			if !errors.Is(cause, mailbox.ErrTimeout) || d.Status != mailbox.Acked || d.Attempts != 1 {
				t.Errorf("cause %v, dispatch %+v", cause, d)
			}
			r.Timeout = -1
			if _, err := m.SubmitBackground(t.Context(), r); !errors.Is(err, mailbox.ErrInvalid) {
				t.Errorf("error %v", err)
			}
		},
	})
}
