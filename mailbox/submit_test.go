package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		m := started(t, mailbox.Config{Runtime: s})
		sub := background(t, m, request("t", "hello"))
		if !sub.Running || sub.Dispatch == sub.Run || sub.Thread != "t" {
			t.Errorf("submission is %+v", sub)
		}
		synctest.Wait()
		d := wantStatus(t, m, sub.Dispatch, mailbox.Acked)
		if d.Response != "done" || d.Instance == "" {
			t.Errorf("result is %+v", d)
		}
		r := wantRun(t, m, sub.Run, mailbox.RunDone, "natural")
		if r.Dispatch != sub.Dispatch || r.Session != d.Instance {
			t.Errorf("run is %+v", r)
		}
		j := s.jobs[0]
		if j.Request.Mode != "scheduled" || j.Request.Origin != "user" || j.Attempt != 1 || j.Fence != 1 {
			t.Errorf("job is %+v", j)
		}
	})
}

func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	m := open(t, mailbox.Config{Runtime: &script{}})
	_, err := m.SubmitBackground(t.Context(), mailbox.Request{Thread: "t"})
	if !errors.Is(err, mailbox.ErrInvalid) || !strings.Contains(err.Error(), "at least one message is required") {
		t.Errorf("a request without messages: %v", err)
	}
	sub := background(t, m, mailbox.Request{Thread: "  ", Decisions: []mailbox.Decision{{Call: "c"}}})
	if len(sub.Thread) != 36 {
		t.Errorf("a blank thread became %q", sub.Thread)
	}
	if sub := background(t, m, request("  t  ", "x")); sub.Thread != "t" {
		t.Errorf("the thread became %q", sub.Thread)
	}
}

// Retries fire by themselves: nothing else happens on the thread, and nothing
// else is handed to the mailbox.
func TestRetryFiresByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		s := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
			at = append(at, time.Now())
			if j.Attempt < 4 {
				return mailbox.Result{}, errors.New("a blip")
			}
			return mailbox.Result{}, nil
		}}
		m := started(t, mailbox.Config{Runtime: s, Poll: time.Hour})
		sub := background(t, m, request("t", "x"))
		time.Sleep(time.Minute)
		synctest.Wait()
		d := wantStatus(t, m, sub.Dispatch, mailbox.Acked)
		if d.Attempts != 3 {
			t.Errorf("it failed %d times", d.Attempts)
		}
		var pauses []time.Duration
		for i := range at[1:] {
			pauses = append(pauses, at[i+1].Sub(at[i]))
		}
		if want := []time.Duration{250 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond}; !slices.Equal(pauses, want) {
			t.Errorf("pauses %v, want %v", pauses, want)
		}
	})
}

func TestDeadLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := true
		s := &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
			if broken {
				return mailbox.Result{}, errors.New("still broken")
			}
			return mailbox.Result{}, nil
		}}
		m := started(t, mailbox.Config{Runtime: s, Retry: mailbox.Retry{Attempts: 2}})
		sub := background(t, m, request("t", "x"))
		time.Sleep(time.Minute)
		synctest.Wait()
		wantStatus(t, m, sub.Dispatch, mailbox.DeadLetter)
		if r := wantRun(t, m, sub.Run, mailbox.RunDone, mailbox.TerminationError); r.Error != "still broken" {
			t.Errorf("run's error is %q", r.Error)
		}
		dead, err := m.DeadLetters(t.Context(), mailbox.Dispatch{}, 10)
		must(t, err)
		if len(dead) != 1 || dead[0].ID != sub.Dispatch {
			t.Errorf("dead letters: %+v", dead)
		}
		broken = false
		again, err := m.Replay(t.Context(), sub.Dispatch)
		must(t, err)
		synctest.Wait()
		wantStatus(t, m, sub.Dispatch, mailbox.Acked)
		wantRun(t, m, again.Run, mailbox.RunDone, "")
	})
}

func TestPermanentErrorIsNotRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
			return mailbox.Result{}, errors.Join(errors.New("no such agent"), mailbox.ErrPermanent)
		}}
		m := started(t, mailbox.Config{Runtime: s})
		sub := background(t, m, request("t", "x"))
		synctest.Wait()
		if d := wantStatus(t, m, sub.Dispatch, mailbox.DeadLetter); d.Attempts != 1 || d.RunStatus != mailbox.RunDone {
			t.Errorf("dispatch is %+v", d)
		}
	})
}

func TestForegroundStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
			j.Emit("text", []byte("a"))
			j.Emit("text", []byte("b"))
			if j.Attempt == 1 {
				return mailbox.Result{}, errors.New("blip")
			}
			return mailbox.Result{}, nil
		}}
		m := started(t, mailbox.Config{Runtime: s})
		sub, err := m.Submit(t.Context(), request("t", "x"))
		must(t, err)
		if !sub.Running {
			t.Error("it does not run")
		}
		attached, err := m.Attach(t.Context(), sub.Dispatch)
		must(t, err)
		const second = 2 << 32 // before the numbers of the second claim
		want := []string{"1:text:a", "2:text:b", "3:mailbox_failed:blip"}
		for i, text := range []string{"text:a", "text:b", "mailbox_settled:acked"} {
			want = append(want, fmt.Sprint(second+i+1, ":", text))
		}
		if got := events(t, sub.Events); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		e, err := attached.Next(t.Context(), second+1)
		must(t, err)
		if e.Seq != second+2 || string(e.Data) != "b" {
			t.Errorf("attached after the first one, got %+v", e)
		}
	})
}

func TestStreamDropsTheOldest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
			for range 100 {
				j.Emit("tick", nil) // without a reader; the run does not wait
			}
			return mailbox.Result{}, nil
		}}
		m := started(t, mailbox.Config{Runtime: s, Events: mailbox.Events{Count: 10}, Store: plain{memstore.New()}})
		sub, err := m.Submit(t.Context(), request("t", "x"))
		must(t, err)
		synctest.Wait()
		var gap *mailbox.GapError
		if _, err := sub.Events.Next(t.Context(), 5); !errors.As(err, &gap) || gap.Next != 91 {
			t.Fatalf("a dropped event: %v", err)
		}
		e, err := sub.Events.Next(t.Context(), gap.Next)
		must(t, err)
		if e.Seq != 92 {
			t.Errorf("got %d", e.Seq)
		}
	})
}

// untilStopped runs until it is asked to stop, and returns that it was.
func untilStopped(ctx context.Context, _ *mailbox.Job) (mailbox.Result, error) {
	<-ctx.Done()
	return mailbox.Result{Termination: mailbox.TerminationCancelled, Response: "partial"}, nil
}

func TestForegroundTakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: untilStopped}
		m := started(t, mailbox.Config{Runtime: s})
		first := background(t, m, request("t", "first"))
		queued := background(t, m, request("t", "queued"))
		wake := request("t", "wake")
		wake.Origin = mailbox.OriginInternal
		kept := background(t, m, wake)
		synctest.Wait()
		sub, err := m.Submit(t.Context(), request("t", "second"))
		must(t, err)
		if len(sub.Superseded) != 1 || sub.Superseded[0].ID != queued.Dispatch {
			t.Errorf("superseded: %+v", sub.Superseded)
		}
		synctest.Wait()
		s.wantRan(t, "first", "second")
		wantStatus(t, m, first.Dispatch, mailbox.Superseded)
		if r := wantRun(t, m, first.Run, mailbox.RunDone, mailbox.TerminationCancelled); r.Response != "partial" {
			t.Errorf("its response became %q", r.Response)
		}
		wantRun(t, m, queued.Run, mailbox.RunDone, mailbox.TerminationCancelled)
		wantStatus(t, m, sub.Dispatch, mailbox.Claimed)
		wantStatus(t, m, kept.Dispatch, mailbox.Queued)
	})
}

func TestForegroundGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
			<-release // deaf
			return mailbox.Result{}, nil
		}}
		m := started(t, mailbox.Config{Runtime: s})
		first := background(t, m, request("t", "first"))
		synctest.Wait()
		start := time.Now()
		_, err := m.Submit(t.Context(), request("t", "second"))
		if !errors.Is(err, mailbox.ErrBusy) || time.Since(start) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		list, err := memList(t, m, "t")
		must(t, err)
		if len(list) != 1 || list[0].ID != first.Dispatch || list[0].Status != mailbox.Claimed {
			t.Errorf("dispatches: %+v", list)
		}
		close(release)
	})
}

func memList(t *testing.T, m *mailbox.Mailbox, thread string) ([]mailbox.Dispatch, error) {
	t.Helper()
	return m.Dispatches(t.Context(), mailbox.DispatchQuery{Thread: thread, Limit: 100})
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		m := started(t, mailbox.Config{Runtime: s})
		r := request("t", "x")
		r.Key = "order 66"
		one := background(t, m, r)
		two := background(t, m, r)
		three, err := m.Submit(t.Context(), r)
		must(t, err)
		if one.Dispatch != two.Dispatch || one.Run != three.Run {
			t.Errorf("one request became %+v, %+v, %+v", one, two, three)
		}
		synctest.Wait()
		s.wantRan(t, "x")
		other := request("t", "y")
		other.Key = r.Key
		if _, err := m.SubmitBackground(t.Context(), other); !errors.Is(err, mailbox.ErrExists) {
			t.Errorf("another request under the key: %v", err)
		}
	})
}

// TestIdempotencyKey_atOnce holds that a request which comes twice at once, in the foreground of two processes, does not interrupt itself.
func TestIdempotencyKey_atOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := memstore.New()
		one := started(t, mailbox.Config{Runtime: &script{do: untilStopped}, Store: inner})
		r := request("t", "x")
		r.Key = "order 66"
		var first mailbox.Submission
		store := &leaving{Store: plain{inner}, left: 1, hook: func() { // before the interrupt of the second
			var err error
			first, err = one.Submit(t.Context(), r)
			must(t, err)
		}}
		two := started(t, mailbox.Config{Runtime: &script{}, Store: store})
		second, err := two.Submit(t.Context(), r)
		must(t, err)
		if second.Dispatch != first.Dispatch || second.Run != first.Run || !second.Repeated || !second.Running {
			t.Errorf("one request became %+v and %+v", first, second)
		}
		time.Sleep(time.Minute)
		wantStatus(t, one, first.Dispatch, mailbox.Claimed)
		equal(t, "epoch", record(t, one, "t").Epoch, 1)
	})
}

// Two mailboxes on one store are like two processes.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		dead := &script{do: func(ctx context.Context, _ *mailbox.Job) (mailbox.Result, error) {
			<-ctx.Done()
			return mailbox.Result{}, ctx.Err()
		}}
		a := started(t, mailbox.Config{Runtime: dead, Store: store, Owner: "a"})
		sub := background(t, a, request("t", "x"))
		synctest.Wait()
		heir := &script{}
		b := started(t, mailbox.Config{Runtime: heir, Store: store, Owner: "b"})
		time.Sleep(2 * (30 * time.Second))
		heir.wantRan(t)
		// The first process hands over when it closes.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		must(t, a.Close(ctx))
		time.Sleep(time.Second)
		synctest.Wait()
		heir.wantRan(t, "x")
		if d := wantStatus(t, b, sub.Dispatch, mailbox.Acked); d.Attempts != 0 || d.Owner != "b" {
			t.Errorf("dispatch is %+v", d)
		}
	})
}
