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
	"github.com/mortise-dev/mortise/store/memstore"
)

// gate is a plan that holds up "due", which recovery asks first, until it is opened.
type gate struct {
	entered atomic.Int32
	open    chan struct{}
	fail    atomic.Int32
}

func (g *gate) plan(ctx context.Context, operation string) mailboxtest.Fault {
	if operation != "scan ready" {
		return mailboxtest.FaultNone
	}
	g.entered.Add(1)
	if g.open != nil {
		select {
		case <-g.open:
		case <-ctx.Done():
		}
	}
	if g.fail.Add(-1) >= 0 {
		return mailboxtest.FaultBefore
	}
	return mailboxtest.FaultNone
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"start_lifecycle_ready_fails_when_startup_recovery_fails": func(t *testing.T) {
			g := &gate{}
			g.fail.Store(1 << 20)
			m := open(t, mailbox.Config{Runtime: &script{}, Store: &mailboxtest.Faulty{Store: memstore.New(), Plan: g.plan}})
			err := m.Start(t.Context())
			if !errors.Is(err, mailboxtest.ErrInjected) || !strings.Contains(err.Error(), mailboxtest.ErrInjected.Error()) {
				t.Errorf("start gave %v", err)
			}
			equal(t, "running", m.Running(), false)
			sub := background(t, m, request("t", "x"))
			sleep(time.Minute)
			wantStatus(t, m, sub.Dispatch, mailbox.Queued)
		},
		"start_lifecycle_ready_retries_startup_recovery_until_ready": func(t *testing.T) {
			g := &gate{}
			g.fail.Store(2)
			m := open(t, mailbox.Config{
				Runtime: &script{}, Store: &mailboxtest.Faulty{Store: memstore.New(), Plan: g.plan},
				Retry: mailbox.Retry{Starts: 3, StartDelay: time.Second},
			})
			begin := time.Now()
			must(t, m.Start(t.Context()))
			equal(t, "time to start", time.Since(begin), 2*time.Second)
			equal(t, "running", m.Running(), true)
		},
		"start_lifecycle_ready_serializes_concurrent_recovery":                        startsConcurrently(2),
		"concurrent_start_lifecycle_is_idempotent":                                    startsConcurrently(32),
		"start_lifecycle_does_not_bypass_ready_transition":                            startWaits,
		"start_lifecycle_is_idempotent_and_drop_does_not_abort_recovery":              startOutlivesCaller,
		"start_lifecycle_handle_drop_keeps_lifecycle_running":                         startOutlivesCaller,
		"start_lifecycle_explicit_abort_allows_restart":                               restarts,
		"maintenance_callback_runs_on_gc_tick":                                        maintains,
		"lifecycle_shutdown_waits_for_maintenance_to_quiesce":                         stopWaits,
		"start_lifecycle_runs_startup_recovery_for_existing_queued_dispatches":        startsQueued,
		"start_lifecycle_reclaims_expired_claimed_dispatches_and_executes_them":       startsExpired,
		"recover_only_enqueues_orphaned_background_task_waiting_runs":                 wakesOrphans,
		"recover_reconciles_terminal_cancelled_and_superseded_dispatches_after_crash": crashAtEnd,
	})
}

func startsConcurrently(n int) func(*testing.T) {
	return func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		m := open(t, mailbox.Config{Runtime: &script{}, Store: &mailboxtest.Faulty{Store: memstore.New(), Plan: g.plan}, Poll: time.Hour})
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if err := m.Start(t.Context()); err != nil || !m.Running() {
					t.Errorf("start: %v, running %v", err, m.Running())
				}
			})
		}
		synctest.Wait()
		equal(t, "recoveries at once", g.entered.Load(), 1)
		equal(t, "running before it is recovered", m.Running(), false)
		close(g.open)
		wg.Wait()
		synctest.Wait()
		equal(t, "looks: one of the recovery, one of the loop", g.entered.Load(), 2)
		must(t, m.Stop(t.Context()))
		equal(t, "running after the stop", m.Running(), false)
	}
}

// startWaits: a second start does not come back before the first one is ready, and fails with its own
// context.
func startWaits(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	m := open(t, mailbox.Config{Runtime: &script{}, Store: &mailboxtest.Faulty{Store: memstore.New(), Plan: g.plan}, Poll: time.Hour})
	first := make(chan error, 1)
	go func() { first <- m.Start(t.Context()) }()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := m.Start(ctx); !errors.Is(err, context.DeadlineExceeded) || m.Running() {
		t.Errorf("the second start: %v, running %v", err, m.Running())
	}
	close(g.open)
	must(t, <-first)
	equal(t, "running", m.Running(), true)
}

func startOutlivesCaller(t *testing.T) {
	m := open(t, mailbox.Config{Runtime: &script{}})
	ctx, cancel := context.WithCancel(t.Context())
	must(t, m.Start(ctx))
	must(t, m.Start(ctx))
	cancel()
	sleep(time.Minute)
	equal(t, "running", m.Running(), true)
	sub := background(t, m, request("t", "x"))
	sleep(0)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
}

func restarts(t *testing.T) {
	m := started(t, mailbox.Config{Runtime: &script{}})
	must(t, m.Stop(t.Context()))
	must(t, m.Stop(t.Context()))
	sub := background(t, m, request("t", "x"))
	sleep(time.Minute)
	wantStatus(t, m, sub.Dispatch, mailbox.Queued)
	must(t, m.Start(t.Context()))
	sleep(0)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
	must(t, m.Close(t.Context()))
	if err := m.Start(t.Context()); !errors.Is(err, mailbox.ErrShutdown) {
		t.Errorf("start after the end: %v", err)
	}
}

func maintains(t *testing.T) {
	calls := 0
	m := open(t, mailbox.Config{Runtime: &script{}, Retention: mailbox.Retention{Interval: time.Minute, TTL: 90 * time.Second, Maintain: func(context.Context) error {
		calls++
		if calls == 2 {
			panic("oh") // the next one comes all the same
		}
		return errors.New("not now")
	}}})
	must(t, m.Start(t.Context()))
	sub := background(t, m, request("t", "x"))
	sleep(time.Minute + time.Second)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
	sleep(2 * time.Minute)
	equal(t, "calls", calls, 3)
	if _, found, err := m.Dispatch(t.Context(), sub.Dispatch); found || err != nil {
		t.Errorf("an old dispatch was not collected: %v", err)
	}
	must(t, m.Stop(t.Context()))
	sleep(time.Hour)
	equal(t, "calls after the stop", calls, 3)
}

func stopWaits(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	m := started(t, mailbox.Config{Runtime: &script{}, Retention: mailbox.Retention{Interval: time.Minute, Maintain: func(context.Context) error {
		close(entered)
		<-release
		return nil
	}}})
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- m.Stop(t.Context()) }()
	synctest.Wait()
	select {
	case err := <-stopped:
		t.Errorf("stopped while maintenance continued: %v", err)
	default:
	}
	if err := m.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop with a time: %v", err)
	}
	close(release)
	must(t, <-stopped)
}

func startsQueued(t *testing.T) {
	store := memstore.New()
	former := open(t, mailbox.Config{Runtime: &script{}, Store: plain{store}})
	sub := queued(t, former, request("t", "x"))
	s := &script{}
	m := started(t, mailbox.Config{Runtime: s, Store: plain{store}, Poll: time.Hour})
	sleep(0)
	s.wantRan(t, "x")
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
}

func startsExpired(t *testing.T) {
	store := memstore.New()
	former := open(t, mailbox.Config{Runtime: &script{}, Store: store})
	sub := queued(t, former, request("t", "x"))
	_, ok, err := former.Claim(t.Context(), "t", mailbox.ClaimRequest{Token: "dead", Owner: "dead", Lease: time.Second})
	must(t, err)
	equal(t, "claimed", ok, true)
	sleep(time.Minute)
	s := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
		equal(t, "attempt", j.Attempt, 2)
		return mailbox.Result{}, errors.Join(errors.New("no such agent"), mailbox.ErrPermanent)
	}}
	m := open(t, mailbox.Config{Runtime: s, Store: store})
	n, err := m.Recover(t.Context())
	must(t, err)
	equal(t, "recovered", n, 1)
	equal(t, "attempts after the recovery", wantStatus(t, m, sub.Dispatch, mailbox.Queued).Attempts, 1)
	must(t, m.Start(t.Context()))
	sleep(0)
	d := wantStatus(t, m, sub.Dispatch, mailbox.DeadLetter)
	if d.RunID == d.ID || d.Instance == "" || !strings.Contains(d.RunError, "no such agent") || !strings.Contains(d.LastError, "no such agent") {
		t.Errorf("dispatch is %+v", d)
	}
}

// wakesOrphans: whatever starts again, a run is woken once for each time that it came to wait.
func wakesOrphans(t *testing.T) {
	store := memstore.New()
	waits := func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
		return mailbox.Result{Status: mailbox.RunWaiting, Wait: string(j.Request.Messages[0].Data)}, nil
	}
	former := started(t, mailbox.Config{Runtime: &script{do: waits}, Store: store})
	tasks := background(t, former, request("tasks", "background_tasks"))
	input := background(t, former, request("input", "user_input"))
	sleep(0)
	must(t, former.Close(t.Context()))
	s := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
		equal(t, "run", j.Run.ID, tasks.Run)
		equal(t, "mode", j.Request.Mode, "internal_wake")
		equal(t, "origin", j.Request.Origin, mailbox.OriginInternal)
		equal(t, "adapter", j.Request.Adapter, mailbox.OriginInternal)
		return mailbox.Result{Status: mailbox.RunWaiting, Wait: "background_tasks"}, nil
	}}
	wake := func(mailbox.Run) (mailbox.Request, bool) {
		return mailbox.Request{Adapter: mailbox.OriginInternal, Messages: []mailbox.Input{{Data: []byte("wake")}}}, true
	}
	left := open(t, mailbox.Config{Runtime: s, Store: store, Wake: wake})
	for _, want := range []int{1, 0} {
		n, err := left.Recover(t.Context())
		must(t, err)
		equal(t, "woken", n, want)
	}
	must(t, left.Start(t.Context()))
	sleep(0)
	s.wantRan(t, "wake")
	wantRun(t, left, input.Run, mailbox.RunWaiting, "")
	must(t, left.Close(t.Context()))
	// It came to wait once more, and is woken once more.
	again := &script{}
	m := started(t, mailbox.Config{Runtime: again, Store: store, Wake: wake})
	sleep(0)
	again.wantRan(t, "wake")
	wantRun(t, m, tasks.Run, mailbox.RunDone, "natural")
	for range 2 {
		n, err := m.Recover(t.Context())
		must(t, err)
		equal(t, "woken at the end", n, 0)
	}
}

// crashAtEnd: a dispatch and its run end in one transition, so that a crash leaves nothing to repair.
func crashAtEnd(t *testing.T) {
	store := memstore.New()
	calm := open(t, mailbox.Config{Runtime: &script{}, Store: store})
	var crash atomic.Bool
	frail := open(t, mailbox.Config{Runtime: &script{}, Store: &mailboxtest.Faulty{
		Store: store, Plan: func(_ context.Context, operation string) mailboxtest.Fault {
			if crash.Load() && operation == "apply" {
				return mailboxtest.FaultAfter
			}
			return mailboxtest.FaultNone
		},
	}})
	cancelled := queued(t, calm, request("a", "x"))
	superseded := queued(t, calm, request("b", "x"))
	crash.Store(true)
	if _, err := frail.Cancel(t.Context(), cancelled.Dispatch); err == nil {
		t.Error("the process did not crash")
	}
	if _, err := frail.Interrupt(t.Context(), "b"); err == nil {
		t.Error("the process did not crash")
	}
	n, err := calm.Recover(t.Context())
	must(t, err)
	equal(t, "recovered", n, 0)
	wantStatus(t, calm, cancelled.Dispatch, mailbox.Cancelled)
	wantRun(t, calm, cancelled.Run, mailbox.RunDone, mailbox.TerminationCancelled)
	wantStatus(t, calm, superseded.Dispatch, mailbox.Superseded)
	wantRun(t, calm, superseded.Run, mailbox.RunDone, mailbox.TerminationCancelled)
}
