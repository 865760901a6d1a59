package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestSteer(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			var received []string
			s := &script{do: untilStopped, steer: func(run string, r mailbox.Request) bool {
				received = append(received, fmt.Sprintf("%s messages %d, decisions %d", run, len(r.Messages), len(r.Decisions)))
				return len(r.Messages) == 0 || string(r.Messages[0].Data) != "no"
			}}
			here := started(t, mailbox.Config{Runtime: s, Store: store})
			from := here
			if remote {
				from = open(t, mailbox.Config{Runtime: &script{}, Store: store})
			}
			first := background(t, here, request("t", "first"))
			synctest.Wait()
			sub, err := from.SubmitLive(t.Context(), request("t", "yes"), first.Run)
			must(t, err)
			if sub.Dispatch != first.Dispatch || !sub.Running {
				t.Errorf("submission is %+v, want that of %+v", sub, first)
			}
			sub, err = from.SubmitLive(t.Context(), request("t", "no"), "")
			must(t, err)
			if sub.Dispatch == first.Dispatch {
				t.Error("what was refused counts as delivered")
			}
			wantStatus(t, here, sub.Dispatch, mailbox.Queued)
			sub, err = from.SubmitLive(t.Context(), request("t", "yes"), "another run")
			must(t, err)
			wantStatus(t, here, sub.Dispatch, mailbox.Queued)
			if len(received) != 2 || received[0] != first.Run+" messages 1, decisions 0" {
				t.Errorf("received %q", received)
			}
			ok, err := from.Decide(t.Context(), first.Run, mailbox.Decision{Call: "c"})
			must(t, err)
			if !ok || received[2] != first.Run+" messages 0, decisions 1" {
				t.Errorf("decision accepted: %v, received %q", ok, received)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			s := &script{do: untilStopped}
			here := started(t, mailbox.Config{Runtime: s, Store: store})
			from := here
			if remote {
				from = open(t, mailbox.Config{Runtime: &script{}, Store: store})
			}
			first := background(t, here, request("t", "first"))
			second := background(t, here, request("t", "second"))
			synctest.Wait()
			for _, id := range []string{second.Dispatch, first.Dispatch} {
				ok, err := from.Cancel(t.Context(), id)
				must(t, err)
				if !ok {
					t.Errorf("%q was not cancelled", id)
				}
			}
			synctest.Wait()
			for _, sub := range []mailbox.Submission{first, second} {
				wantStatus(t, here, sub.Dispatch, mailbox.Cancelled)
				wantRun(t, here, sub.Run, mailbox.RunDone, mailbox.TerminationCancelled)
			}
			ok, err := from.Cancel(t.Context(), "unknown")
			must(t, err)
			if ok {
				t.Error("cancelled what is not there")
			}
			s.wantRan(t, "first")
		})
	}
}

// No process receives the command, and the owner observes it when it renews its lease.
func TestCancelIsDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		deaf := plain{store} // no commands
		s := &script{do: untilStopped}
		here := started(t, mailbox.Config{Runtime: s, Store: deaf})
		there := open(t, mailbox.Config{Runtime: &script{}, Store: deaf})
		sub := background(t, here, request("t", "x"))
		synctest.Wait()
		ok, err := there.CancelRun(t.Context(), sub.Run)
		must(t, err)
		if !ok {
			t.Error("not cancelled")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantStatus(t, here, sub.Dispatch, mailbox.Cancelled)
	})
}

func TestWaitingRunGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
			if len(j.Request.Decisions) == 0 {
				return mailbox.Result{Status: mailbox.RunWaiting, Wait: "tool_permission"}, nil
			}
			return mailbox.Result{Termination: "natural"}, nil
		}}
		m := started(t, mailbox.Config{Runtime: s})
		sub := background(t, m, request("t", "x"))
		synctest.Wait()
		wantStatus(t, m, sub.Dispatch, mailbox.Acked)
		wantRun(t, m, sub.Run, mailbox.RunWaiting, "")
		ok, err := m.Decide(t.Context(), sub.Run, mailbox.Decision{Call: "c", Data: []byte("yes")})
		must(t, err)
		if !ok {
			t.Error("the decision was not taken")
		}
		synctest.Wait()
		wantRun(t, m, sub.Run, mailbox.RunDone, "natural")
		ok, err = m.Decide(t.Context(), sub.Run, mailbox.Decision{Call: "c"})
		must(t, err)
		if ok {
			t.Error("a decision was taken by a run that is done")
		}
	})
}

// An execution whose store is away for a while keeps its lease; one whose store stays away ends
// when its lease does, before anybody else begins.
func TestLeaseAndStoreFaults(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]time.Duration{"a while": 15 * time.Second, "for good": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New()
				begin := time.Now()
				faulty := &mailboxtest.Faulty{Store: store, Plan: func(context.Context, string) mailboxtest.Fault {
					if at := time.Since(begin); at > time.Second && at < away {
						return mailboxtest.FaultBefore
					}
					return mailboxtest.FaultNone
				}}
				ended := make(chan time.Duration, 1)
				s := &script{do: func(ctx context.Context, _ *mailbox.Job) (mailbox.Result, error) {
					select {
					case <-ctx.Done():
						ended <- time.Since(begin)
						return mailbox.Result{}, context.Cause(ctx)
					case <-time.After(5 * time.Minute):
						ended <- 0
						return mailbox.Result{}, nil
					}
				}}
				here := started(t, mailbox.Config{Runtime: s, Store: faulty, Owner: "here"})
				sub := background(t, here, request("t", "x"))
				heir := &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
					select {
					case at := <-ended:
						if at == 0 || at > 30*time.Second+time.Second {
							t.Errorf("the first execution ended at %v", at)
						}
					default:
						t.Error("two executions at once")
					}
					return mailbox.Result{}, nil
				}}
				there := started(t, mailbox.Config{Runtime: heir, Store: store, Owner: "there"})
				time.Sleep(6 * time.Minute)
				synctest.Wait()
				d := wantStatus(t, there, sub.Dispatch, mailbox.Acked)
				if want := map[bool]string{true: "there", false: "here"}[away > time.Minute]; d.Owner != want {
					t.Errorf("executed by %q, want %q", d.Owner, want)
				}
			})
		})
	}
}

func TestPanicIsAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) { panic("oh") }}
		m := started(t, mailbox.Config{Runtime: s, Retry: mailbox.Retry{Attempts: 1}})
		sub := background(t, m, request("t", "x"))
		synctest.Wait()
		if d := wantStatus(t, m, sub.Dispatch, mailbox.DeadLetter); !strings.Contains(d.LastError, "panicked: oh") {
			t.Errorf("last error is %q", d.LastError)
		}
	})
}

func TestCaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		now, most := 0, 0
		tenants := map[string]int{}
		s := &script{}
		s.do = func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
			s.mu.Lock()
			now++
			most = max(most, now)
			tenants[j.Request.Tenant]++
			if tenants[j.Request.Tenant] > 2 {
				t.Errorf("%d executions of tenant %q", tenants[j.Request.Tenant], j.Request.Tenant)
			}
			s.mu.Unlock()
			<-release
			s.mu.Lock()
			now--
			tenants[j.Request.Tenant]--
			s.mu.Unlock()
			return mailbox.Result{}, nil
		}
		m := started(t, mailbox.Config{Runtime: s, Limits: mailbox.Limits{Workers: 3, TenantWorkers: 2}})
		for i := range 12 {
			r := request(string(rune('a'+i)), "x")
			r.Tenant = map[bool]string{true: "big", false: "small"}[i < 9]
			background(t, m, r)
		}
		synctest.Wait()
		if now != 3 || tenants["big"] != 2 || tenants["small"] != 1 {
			t.Errorf("%d executions at once, by tenant %v", now, tenants)
		}
		close(release)
		synctest.Wait()
		if len(s.ran()) != 12 || most != 3 {
			t.Errorf("%d executions, %d at once", len(s.ran()), most)
		}
	})
}

func TestFencedCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
			c := mailbox.Commit{ID: j.Dispatch.ID + "-1", From: j.Messages, Data: []byte("record")}
			for _, in := range j.Request.Messages {
				c.Append = append(c.Append, mailbox.Message{ID: in.ID, Run: j.Run.ID, Data: in.Data})
			}
			return mailbox.Result{}, j.Commit(ctx, c)
		}}
		store := memstore.New()
		m := started(t, mailbox.Config{Runtime: s, Store: store})
		background(t, m, request("t", "one"))
		background(t, m, request("t", "two"))
		synctest.Wait()
		log, err := m.Messages(t.Context(), "t", 1, 10)
		must(t, err)
		if len(log) != 2 || string(log[0].Data) != "one" || string(log[1].Data) != "two" {
			t.Errorf("log is %+v", log)
		}
		late := s.jobs[0]
		if err := late.Commit(t.Context(), mailbox.Commit{ID: "late", From: 2}); !errors.Is(err, mailbox.ErrConflict) {
			t.Errorf("written after the end: %v", err)
		}
	})
}
