package background_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
)

func TestBodyFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body background.Body
		want string
	}{
		"panic":           {func(context.Context, *background.Task) (any, error) { panic("no such key") }, "panic: no such key"},
		"goexit":          {func(context.Context, *background.Task) (any, error) { runtime.Goexit(); return nil, nil }, "without returning"},
		"timeout":         {untilCancelled, "timed out after 1m0s"},
		"timeout_own_err": {func(ctx context.Context, _ *background.Task) (any, error) { <-ctx.Done(); return nil, errors.New("x") }, "timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{}
				m := newManager(t, background.Config{Ledger: l, Limits: background.Limits{Timeout: time.Minute}})
				id := spawn(t, m, "a", test.body)
				wait(t, m, "a")
				info := status(t, m, id)
				if info.Status != background.Failed || !strings.Contains(info.Error, test.want) {
					t.Fatalf("task is %+v", info)
				}
				if got := l.of("a"); len(got) != 1 || got[0].Kind != abi.NoticeFailed || got[0].Error != info.Error {
					t.Fatalf("notices are %+v", got)
				}
				closeManager(t, m)
			})
		})
	}
}

func TestBodyIgnoresCancellation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		release := make(chan struct{})
		late := make(chan bool, 1)
		m := newManager(t, background.Config{Ledger: l, Limits: background.Limits{Grace: 3 * time.Second, MaxRunning: 1}})
		start := time.Now()
		id := spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) {
			<-release
			late <- task.Emit("too late", nil)
			return "too late", nil
		})
		m.Cancel(id)
		wait(t, m, "a")
		if took := time.Since(start); took != 3*time.Second {
			t.Fatalf("abandoned after %s", took)
		}
		if info := status(t, m, id); info.Status != background.Failed || !strings.Contains(info.Error, "abandoned") {
			t.Fatalf("task is %+v", info)
		}
		// The place is free again, and what the body does later changes nothing.
		next := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		wait(t, m, "a")
		close(release)
		if <-late {
			t.Fatal("an abandoned body could still emit")
		}
		synctest.Wait()
		if got := l.of("a"); len(got) != 2 || got[0].Kind != abi.NoticeFailed || got[1].TaskID != next {
			t.Fatalf("notices are %+v", got)
		}
		if err := m.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "1 task bodies ignored cancellation") {
			t.Fatalf("close: %v", err)
		}
	})
}

// TestUnkept waits for a task whose record the ledger does not keep: it was never there.
func TestUnkept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := make(chan error)
		m := newManager(t, background.Config{Ledger: &ledger{fail: func(string, bool) error { return <-broken }}})
		spec := background.Spec{ID: "x", Thread: "a", Type: "x", Body: untilCancelled}
		go func() {
			if _, err := m.Spawn(t.Context(), spec); err == nil {
				t.Error("a task was started without a record")
			}
		}()
		synctest.Wait()
		waited := make(chan error)
		go func() {
			_, err := m.WaitTask(t.Context(), "x")
			waited <- err
		}()
		synctest.Wait()
		broken <- errors.New("the disk is full")
		if err := <-waited; !errors.Is(err, background.ErrNotFound) {
			t.Errorf("after: %v", err)
		}
		closeManager(t, m)
	})
}

// panics is a ledger of which some method panics.
type panics struct {
	ledger
	claim, forget bool
}

func (p *panics) Claim(ctx context.Context, thread, task string, was, record []byte) (bool, error) {
	if p.claim {
		panic("bad claim")
	}
	return p.ledger.Claim(ctx, thread, task, was, record)
}

func (p *panics) Forget(ctx context.Context, thread string, tasks ...string) error {
	if p.forget {
		panic("bad forget")
	}
	return p.ledger.Forget(ctx, thread, tasks...)
}

// TestPanics has each part of the Config panic: tasks end, and the log has what panicked and why.
func TestPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := &panics{forget: true}
		failed := false
		l.give = func(context.Context, string, abi.Notice) error {
			if !failed {
				failed = true
				panic("bad commit")
			}
			return nil
		}
		m := newManager(t, background.Config{
			Ledger: l, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Observe: func(background.Event) { panic("bad observer") },
			Shorten: func(context.Context, string, string, string) string { panic("bad shortener") },
		})
		id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return "done", nil })
		wait(t, m, "a")
		m.Acknowledge(t.Context(), "a", id, "unknown")
		if info := status(t, m, id); info.Status != background.Completed || info.Result != "done" {
			t.Errorf("the task is %+v", info)
		}
		closeManager(t, m)
		for _, want := range []string{
			"panic of Config.Ledger: bad commit", "panic of Config.Ledger: bad forget", "panic of Config.Observe: bad observer", "panic of Config.Shorten: bad shortener",
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q: %s", want, log.String())
			}
		}
		l.claim = true
		next := newManager(t, background.Config{Ledger: l, Resume: func(background.Info) background.Body { return untilCancelled }})
		record := []byte(`{"task_id":"y","owner_thread_id":"a","task_type":"x","status":"running","owner":"gone"}`)
		if err := l.Commit(t.Context(), "a", "y", record, nil); err != nil {
			t.Fatal(err)
		}
		if err := next.Recover(t.Context()); err == nil || !strings.Contains(err.Error(), "panic of Config.Ledger: bad claim") {
			t.Errorf("recovered: %v", err)
		}
		closeManager(t, next)
	})
}
