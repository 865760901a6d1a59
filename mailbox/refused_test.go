package mailbox_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestRefusedForeground holds that a foreground request which is refused anyway leaves alone what its thread does, and what is queued.
func TestRefusedForeground(t *testing.T) {
	t.Parallel()
	list := map[string]func(*testing.T){}
	for name, refused := range map[string]struct {
		change func(*mailbox.Request)
		want   error
	}{
		"of_another_tenant":        {func(r *mailbox.Request) { r.Tenant = "thief" }, mailbox.ErrInvalid},
		"with_a_run_that_is_taken": {func(r *mailbox.Request) { r.NewRun = "ended" }, mailbox.ErrExists},
		"for_a_run_that_ended":     {func(r *mailbox.Request) { r.Run = "ended" }, mailbox.ErrInvalid},
		"for_a_run_that_is_queued": {func(r *mailbox.Request) { r.Run = "next" }, mailbox.ErrInvalid},
		"for_the_run_under_way":    {func(r *mailbox.Request) { r.Run = "active" }, mailbox.ErrInvalid},
		"with_a_bad_name":          {func(r *mailbox.Request) { r.Agent = "\xff" }, mailbox.ErrInvalid},
	} {
		list[name] = func(t *testing.T) { refusedForeground(t, refused.change, refused.want) }
	}
	list["after_close"] = func(t *testing.T) {
		store := memstore.New()
		owner := started(t, mailbox.Config{Runtime: &script{do: untilStopped}, Store: store})
		sub := background(t, owner, request("t", "active"))
		closed := open(t, mailbox.Config{Runtime: &script{}, Store: store})
		must(t, closed.Close(t.Context()))
		if _, err := closed.Submit(t.Context(), request("t", "x")); !errors.Is(err, mailbox.ErrShutdown) {
			t.Errorf("submit gave %v", err)
		}
		sleep(time.Minute)
		wantStatus(t, owner, sub.Dispatch, mailbox.Claimed)
	}
	cases(t, list)
}

func refusedForeground(t *testing.T, change func(*mailbox.Request), want error) {
	s := &script{do: func(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
		if string(j.Request.Messages[0].Data) == "ended" {
			return mailbox.Result{}, nil
		}
		return untilStopped(ctx, j)
	}}
	m := started(t, mailbox.Config{Runtime: s})
	ended := request("t", "ended")
	ended.Tenant, ended.NewRun = "owner", "ended"
	background(t, m, ended)
	sleep(0)
	active, next := request("t", "active"), request("t", "next")
	active.Tenant, active.NewRun = "owner", "active"
	next.Tenant, next.NewRun = "owner", "next"
	sub := background(t, m, active)
	sleep(0)
	queue := background(t, m, next)
	r := request("t", "x")
	r.Tenant = "owner"
	change(&r)
	if _, err := m.Submit(t.Context(), r); !errors.Is(err, want) {
		t.Errorf("submit gave %v, want %v", err, want)
	}
	sleep(time.Minute)
	wantStatus(t, m, sub.Dispatch, mailbox.Claimed)
	wantStatus(t, m, queue.Dispatch, mailbox.Queued)
	equal(t, "epoch", record(t, m, "t").Epoch, 0)
}

// TestLiveRequests holds what a request that is handed may have.
func TestLiveRequests(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"without_messages_it_is_queued": func(t *testing.T) {
			wantQueued(t, func(r *mailbox.Request) {
				r.Messages, r.Decisions = nil, []mailbox.Decision{{Call: "c"}}
			})
		},
		"for_later_it_is_queued":       func(t *testing.T) { wantQueued(t, func(r *mailbox.Request) { r.At = time.Now().Add(time.Hour) }) },
		"for_another_run_it_is_queued": func(t *testing.T) { wantQueued(t, func(r *mailbox.Request) { r.Run = "other" }) },
		"a_key_counts_after_the_run_has_ended": func(t *testing.T) {
			s := &script{steer: func(string, mailbox.Request) bool { return true }, do: untilStopped}
			m := started(t, mailbox.Config{Runtime: s})
			background(t, m, request("t", "active"))
			sleep(0)
			r := request("t", "x")
			r.Key = "k"
			first, err := m.SubmitLive(t.Context(), r, "")
			must(t, err)
			again, err := m.SubmitLive(t.Context(), r, "")
			must(t, err)
			equal(t, "dispatch", again.Dispatch, first.Dispatch)
		},
	})
}

func wantQueued(t *testing.T, change func(*mailbox.Request)) {
	t.Helper()
	s := &script{do: untilStopped, steer: func(string, mailbox.Request) bool { return true }}
	m := started(t, mailbox.Config{Runtime: s})
	active := background(t, m, request("t", "active"))
	sleep(0)
	r := request("t", "x")
	change(&r)
	sub, err := m.SubmitLive(t.Context(), r, "")
	must(t, err)
	if sub.Dispatch == active.Dispatch || sub.Running {
		t.Errorf("submission is %+v, want one of its own", sub)
	}
	wantStatus(t, m, sub.Dispatch, mailbox.Queued)
}

// TestWaitsDoNotStarve holds that threads which wait, with something queued for later, keep no others from their turn.
func TestWaitsDoNotStarve(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"waits": func(t *testing.T) {
			until := time.Now().Add(time.Minute)
			s := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
				if string(j.Request.Messages[0].Data) == "wait" {
					return mailbox.Result{Status: mailbox.RunWaiting, Wait: "permission", WaitUntil: until}, nil
				}
				return mailbox.Result{}, nil
			}}
			w := &witness{}
			store := plain{memstore.New()}
			m := started(t, mailbox.Config{Runtime: s, Store: store, Limits: mailbox.Limits{Workers: 2}, Observers: []mailbox.Observer{w}})
			other := open(t, mailbox.Config{Runtime: s, Store: store})
			later := map[string]mailbox.Submission{}
			for _, thread := range []string{"a", "b"} {
				background(t, m, request(thread, "wait"))
				sleep(time.Second)
				r := request(thread, "later")
				r.At = time.Now().Add(24 * time.Hour)
				later[thread] = background(t, m, r)
			}
			sleep(2 * time.Minute)
			sub := queued(t, other, request("c", "now"))
			sleep(2 * time.Second)
			wantStatus(t, m, sub.Dispatch, mailbox.Acked)
			for _, d := range later {
				wantStatus(t, m, d.Dispatch, mailbox.Queued)
				wantRun(t, m, d.Run, mailbox.RunDone, mailbox.TerminationCancelled)
			}
			before := w.count("claim empty")
			sleep(time.Hour)
			equal(t, "claims of nothing in an hour", w.count("claim empty")-before, 0)
			sleep(24 * time.Hour)
			for _, d := range later {
				wantStatus(t, m, d.Dispatch, mailbox.Acked)
			}
		},
	})
}

// TestFarNumbers holds that a place which no event has does not keep a reader busy.
func TestFarNumbers(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"end": func(t *testing.T) {
			store := memstore.New()
			m := started(t, mailbox.Config{Runtime: &script{}, Store: store})
			other := open(t, mailbox.Config{Runtime: &script{}, Store: store})
			sub := background(t, m, request("t", "x"))
			sleep(time.Minute)
			for _, seq := range []uint64{1000, math.MaxInt64 - 1} {
				f, err := other.Attach(t.Context(), sub.Dispatch)
				must(t, err)
				if e, err := f.Next(t.Context(), seq); err != nil || e.Type != mailbox.EventSettled {
					t.Errorf("after %d came %+v, %v", seq, e, err)
				}
			}
			for _, seq := range []uint64{math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
				for _, box := range []*mailbox.Mailbox{m, other} {
					f, err := box.Attach(t.Context(), sub.Dispatch)
					must(t, err)
					if e, err := f.Next(t.Context(), seq); !errors.Is(err, mailbox.ErrInvalid) {
						t.Errorf("after %d came %+v, %v", seq, e, err)
					}
				}
			}
		},
	})
}
