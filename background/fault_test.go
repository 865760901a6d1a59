package background_test

import (
	"context"
	"errors"
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
