package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestClose(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"abandons_a_deaf_run":          closeDeaf,
		"abandons_a_deaf_maintenance":  closeMaintenance,
		"waits_for_a_run_that_is_slow": closeSlow,
		"waits_for_what_a_stop_left":   closeAfterStop,
		"takes_nothing_new":            closeTakesNothing,
	})
}

// closeTakesNothing holds that whatever is asked of a closed mailbox fails at once, and changes nothing.
func closeTakesNothing(t *testing.T) {
	s := memstore.New()
	m := open(t, mailbox.Config{Runtime: &script{}, Store: s})
	sub := background(t, m, request("t", "x"))
	waits := make(chan error, 1)
	go func() {
		_, err := m.Await(t.Context(), sub.Dispatch)
		waits <- err
	}()
	sleep(0)
	must(t, m.Close(t.Context()))
	before := record(t, m, "t")
	calls := map[string]func() error{
		"await that had begun": func() error { return <-waits },
		"await":                func() error { _, err := m.Await(t.Context(), sub.Dispatch); return err },
		"foreground":           func() error { _, err := m.Submit(t.Context(), request("t", "y")); return err },
		"background":           func() error { _, err := m.SubmitBackground(t.Context(), request("t", "y")); return err },
		"live":                 func() error { _, err := m.SubmitLive(t.Context(), request("t", "y"), ""); return err },
		"within":               func() error { _, err := m.SubmitWithin(t.Context(), s, request("t", "y")); return err },
		"batch":                func() error { return m.SubmitBatch(t.Context(), []mailbox.Request{request("t", "y")})[0].Err },
		"decision": func() error {
			_, err := m.Decide(t.Context(), sub.Run, mailbox.Decision{Call: "c"})
			return err
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, mailbox.ErrShutdown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := record(t, m, "t"); after.UpdatedAt != before.UpdatedAt || after.Seq != 1 || after.Epoch != 0 {
		t.Errorf("the thread is %+v, and was %+v", after, before)
	}
}

// closeAfterStop holds that Close waits for what a Stop did not wait for: the store is closed after it.
func closeAfterStop(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{})
	m := started(t, mailbox.Config{Runtime: &script{}, Retention: mailbox.Retention{Interval: time.Minute, Maintain: func(context.Context) error {
		close(entered)
		<-release
		return nil
	}}})
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := m.Stop(ctx); err == nil {
		t.Error("stopped in the middle of maintenance")
	}
	must(t, m.Start(t.Context()))
	if err := m.Stop(ctx); err == nil {
		t.Error("stopped without waiting for what another stop left")
	}
	if _, err := closed(t, m); err == nil || !strings.Contains(err.Error(), "Config.Retention.Maintain") {
		t.Errorf("close gave %v", err)
	}
	close(release)
	_, err := closed(t, m)
	must(t, err)
}

// deafRun is a runtime that ignores its context. When it is released it tries to write, and returns the error of that.
func deafRun(release <-chan struct{}) *script {
	return &script{do: func(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
		<-release
		err := j.Commit(context.WithoutCancel(ctx), mailbox.Commit{ID: "late", From: j.Messages, Append: []mailbox.Message{{ID: "late"}}})
		if !errors.Is(err, mailbox.ErrConflict) {
			panic(fmt.Sprint("a commit after the lease: ", err))
		}
		return mailbox.Result{Response: "late"}, err
	}}
}

// closed closes a mailbox within a second, and returns how long that took.
func closed(t *testing.T, m *mailbox.Mailbox) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	err := m.Close(ctx)
	return time.Since(begin), err
}

func closeDeaf(t *testing.T) {
	store := memstore.New()
	release := make(chan struct{})
	w := &witness{}
	m := started(t, mailbox.Config{Runtime: deafRun(release), Store: store, Observers: []mailbox.Observer{w}})
	sub := background(t, m, request("t", "x"))
	sleep(time.Second)
	for range 2 {
		took, err := closed(t, m)
		equal(t, "time to close", took, time.Second+5*time.Second)
		if err == nil || !strings.Contains(err.Error(), sub.Dispatch) || !strings.Contains(err.Error(), `thread "t"`) || !strings.Contains(err.Error(), "heed its context") {
			t.Errorf("close gave %v", err)
		}
		equal(t, "abandoned", w.count("abandon error"), 1)
	}
	if e, err := sub.Events.Next(t.Context(), 0); !errors.Is(err, mailbox.ErrShutdown) {
		t.Errorf("the event of an execution that was abandoned is %+v, %v", e, err)
	}
	s := &script{}
	heir := started(t, mailbox.Config{Runtime: s, Store: store})
	sleep(30*time.Second + 2*time.Second)
	d := wantStatus(t, heir, sub.Dispatch, mailbox.Acked)
	s.wantRan(t, "x")
	close(release)
	sleep(time.Minute)
	if late := wantStatus(t, heir, sub.Dispatch, mailbox.Acked); late.Response != d.Response || late.Token != d.Token {
		t.Errorf("changed by a run that was abandoned: %+v", late)
	}
	equal(t, "messages", record(t, heir, "t").Messages, 0)
	took, err := closed(t, m)
	must(t, err)
	equal(t, "time to close at last", took, 0)
}

func closeMaintenance(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{})
	m := started(t, mailbox.Config{Runtime: &script{}, Retention: mailbox.Retention{Interval: time.Minute, Maintain: func(context.Context) error {
		close(entered)
		<-release
		return nil
	}}})
	<-entered
	took, err := closed(t, m)
	equal(t, "time to close", took, time.Second+5*time.Second)
	if err == nil || !strings.Contains(err.Error(), "Config.Retention.Maintain") {
		t.Errorf("close gave %v", err)
	}
	close(release)
	sleep(0)
}

func closeSlow(t *testing.T) {
	s := &script{do: func(ctx context.Context, _ *mailbox.Job) (mailbox.Result, error) {
		<-ctx.Done()
		timer := time.NewTimer(5*time.Second - time.Millisecond) // what it has to put in order
		defer timer.Stop()
		<-timer.C
		return mailbox.Result{}, context.Cause(ctx)
	}}
	m := started(t, mailbox.Config{Runtime: s})
	sub := background(t, m, request("t", "x"))
	sleep(0)
	if _, err := closed(t, m); err != nil {
		t.Errorf("close gave %v", err)
	}
	d := wantStatus(t, m, sub.Dispatch, mailbox.Queued)
	equal(t, "end of its claim", d.End, mailbox.EndReleased)
	equal(t, "attempts", d.Attempts, 0)
}
