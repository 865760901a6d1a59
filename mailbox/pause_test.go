package mailbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// untilPaused runs until its context ends, the first time, and is done the second time.
func untilPaused(causes *[]error) func(context.Context, *mailbox.Job) (mailbox.Result, error) {
	return func(ctx context.Context, _ *mailbox.Job) (mailbox.Result, error) {
		if len(*causes) > 0 {
			return mailbox.Result{Termination: "natural"}, nil
		}
		<-ctx.Done()
		*causes = append(*causes, context.Cause(ctx))
		return mailbox.Result{}, ctx.Err()
	}
}

// heldScan is a store that holds a listing of what is due when a test wants one.
type heldScan struct {
	*memstore.Store
	held atomic.Pointer[chan struct{}]
}

func (h *heldScan) Scan(ctx context.Context, q store.Scan) ([]store.Ref, error) {
	if release := h.held.Load(); release != nil && q.Index == "ready" {
		<-*release
	}
	return h.Store.Scan(ctx, q)
}

func TestPause(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"of a thread that is executed": func(t *testing.T) {
			var causes []error
			m := started(t, mailbox.Config{Runtime: &script{do: untilPaused(&causes)}})
			sub := background(t, m, request("t", "first"))
			synctest.Wait()
			h, err := m.PauseThread(t.Context(), "t")
			must(t, err)
			synctest.Wait()
			if h.PausedAt.IsZero() || len(causes) != 1 || !errors.Is(causes[0], mailbox.ErrPaused) {
				t.Errorf("thread %+v, causes %v", h, causes)
			}
			r, _, err := m.Run(t.Context(), sub.Run)
			must(t, err)
			if r.Status != mailbox.RunWaiting || r.Wait != mailbox.WaitPause {
				t.Errorf("run %+v", r)
			}
			second := background(t, m, request("t", "second"))
			if second.Run == sub.Run {
				t.Error("a new request continues the paused run")
			}
			sleep(time.Hour)
			wantStatus(t, m, sub.Dispatch, mailbox.Queued)
			_, err = m.ResumeThread(t.Context(), "t")
			must(t, err)
			synctest.Wait()
			d, _, err := m.Dispatch(t.Context(), sub.Dispatch)
			must(t, err)
			if d.Status != mailbox.Acked || d.Attempts != 0 {
				t.Errorf("dispatch %+v", d)
			}
			wantStatus(t, m, second.Dispatch, mailbox.Acked)
		},
		"of a thread that another process executes": func(t *testing.T) {
			var causes []error
			shared := memstore.New()
			there := started(t, mailbox.Config{Runtime: &script{do: untilPaused(&causes)}, Store: shared, Owner: "there"})
			here := open(t, mailbox.Config{Runtime: &script{}, Store: shared, Owner: "here"})
			sub := background(t, there, request("t", "first"))
			synctest.Wait()
			_, err := here.PauseThread(t.Context(), "t")
			must(t, err)
			synctest.Wait()
			equal(t, "executions that ended", len(causes), 1)
			wantStatus(t, here, sub.Dispatch, mailbox.Queued)
		},
		"a foreground request is refused, and interrupts nothing": func(t *testing.T) {
			s := &script{}
			m := started(t, mailbox.Config{Runtime: s})
			background(t, m, request("t", "first"))
			synctest.Wait()
			_, err := m.PauseThread(t.Context(), "t")
			must(t, err)
			queued := background(t, m, request("t", "second"))
			if _, err := m.Submit(t.Context(), request("t", "now")); !errors.Is(err, mailbox.ErrPaused) {
				t.Errorf("error %v", err)
			}
			wantStatus(t, m, queued.Dispatch, mailbox.Queued)
		},
		"a wait does not end while the thread is paused": func(t *testing.T) {
			m := started(t, mailbox.Config{Runtime: &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
				return mailbox.Result{Status: mailbox.RunWaiting, Wait: "tool_permission", WaitUntil: time.Now().Add(time.Minute)}, nil
			}}})
			sub := background(t, m, request("t", "first"))
			synctest.Wait()
			_, err := m.PauseThread(t.Context(), "t")
			must(t, err)
			sleep(time.Hour)
			r, _, err := m.Run(t.Context(), sub.Run)
			must(t, err)
			equal(t, "wait", r.Wait, "tool_permission")
			_, err = m.ResumeThread(t.Context(), "t")
			must(t, err)
			sleep(2 * time.Second)
			r, _, err = m.Run(t.Context(), sub.Run)
			must(t, err)
			equal(t, "status", r.Status, mailbox.RunDone)
		},
		"of a thread that is not there": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			if _, err := m.PauseThread(t.Context(), "t"); !errors.Is(err, mailbox.ErrNotFound) {
				t.Errorf("error %v", err)
			}
		},
		"of a tenant, in all processes": func(t *testing.T) {
			s, shared := &script{}, memstore.New()
			started(t, mailbox.Config{Runtime: s, Store: shared})
			here := open(t, mailbox.Config{Runtime: &script{}, Store: shared})
			must(t, here.Pause(t.Context(), "a"))
			sleep(2 * time.Second)
			for _, tenant := range []string{"a", "b"} {
				r := request("t-"+tenant, tenant)
				r.Tenant = tenant
				background(t, here, r)
			}
			sleep(time.Minute)
			s.wantRan(t, "b")
			list, err := here.Pauses(t.Context())
			must(t, err)
			if len(list) != 1 || list[0] != "a" {
				t.Errorf("paused: %q", list)
			}
			must(t, here.Resume(t.Context(), "a"))
			sleep(2 * time.Second)
			s.wantRan(t, "b", "a")
		},
		"while a round is under way": func(t *testing.T) {
			for _, tenant := range []string{"", "a"} {
				s, held, release := &script{}, &heldScan{Store: memstore.New()}, make(chan struct{})
				m := started(t, mailbox.Config{Runtime: s, Store: held})
				held.held.Store(&release)
				sleep(time.Minute) // a round has read what is paused, and lists now
				must(t, m.Pause(t.Context(), tenant))
				r := request("t", "first")
				r.Tenant = "a"
				background(t, m, r)
				close(release)
				sleep(time.Minute)
				s.wantRan(t)
				must(t, m.Resume(t.Context(), tenant))
				synctest.Wait()
				s.wantRan(t, "first")
			}
		},
		"of all": func(t *testing.T) {
			s := &script{}
			m := started(t, mailbox.Config{Runtime: s})
			must(t, m.Pause(t.Context(), ""))
			background(t, m, request("t", "first"))
			if _, err := m.Submit(t.Context(), request("u", "now")); !errors.Is(err, mailbox.ErrPaused) {
				t.Errorf("error %v", err)
			}
			sleep(time.Minute)
			s.wantRan(t)
			must(t, m.Resume(t.Context(), ""))
			sleep(2 * time.Second)
			s.wantRan(t, "first")
		},
	})
}
