package background_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
)

func TestNewNamesTheField(t *testing.T) {
	t.Parallel()
	ok := func(context.Context, string, abi.Notice) error { return nil }
	for field, cfg := range map[string]background.Config{
		"Deliver":    {},
		"MaxRunning": {Deliver: ok, MaxRunning: -1},
		"MaxQueued":  {Deliver: ok, MaxQueued: -1},
		"Keep":       {Deliver: ok, Keep: -1},
		"Timeout":    {Deliver: ok, Timeout: -1},
		"Grace":      {Deliver: ok, Grace: -1},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			if _, err := background.New(cfg); err == nil || !strings.Contains(err.Error(), field) {
				t.Fatalf("error is %v, want one that names %s", err, field)
			}
		})
	}
}

func TestManager(t *testing.T) {
	t.Parallel()
	// Each test runs in a bubble of its own: no real time passes, and a deadlock
	// is found at once.
	for name, test := range map[string]func(*testing.T, *background.Manager, *ledger){
		"manager_spawn_and_list": func(t *testing.T, m *background.Manager, _ *ledger) {
			id := spawn(t, m, "a", untilCancelled)
			list := m.List("a")
			if len(list) != 1 || list[0].ID != id || list[0].Status != background.Running ||
				list[0].Type != "test" || list[0].Description != "a test" {
				t.Fatalf("list is %+v", list)
			}
			if len(m.List("b")) != 0 {
				t.Fatal("another thread sees the task")
			}
		},
		"manager_task_completes": func(t *testing.T, m *background.Manager, l *ledger) {
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return map[string]any{"n": 7}, nil })
			wait(t, m, "a")
			info := status(t, m, id)
			result, _ := info.Result.(map[string]any)
			if info.Status != background.Completed || result["n"] != int64(7) || info.EndedAt.IsZero() {
				t.Fatalf("task is %+v", info)
			}
			if got := l.of("a"); len(got) != 1 || got[0].Kind != abi.NoticeCompleted || got[0].TaskID != id || got[0].Housekeeping {
				t.Fatalf("notices are %+v", got)
			}
		},
		"manager_task_fails": func(t *testing.T, m *background.Manager, l *ledger) {
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, errors.New("disk full") })
			wait(t, m, "a")
			if info := status(t, m, id); info.Status != background.Failed || info.Error != "disk full" {
				t.Fatalf("task is %+v", info)
			}
			if got := l.of("a"); len(got) != 1 || got[0].Kind != abi.NoticeFailed || got[0].Error != "disk full" {
				t.Fatalf("notices are %+v", got)
			}
		},
		"manager_task_ids_are_sequential": func(t *testing.T, m *background.Manager, _ *ledger) {
			for i := range 3 {
				if id := spawn(t, m, "a", untilCancelled); id != fmt.Sprintf("bg_%d", i) {
					t.Fatalf("id %d is %s", i, id)
				}
			}
		},
		"manager_get_nonexistent_returns_none": func(t *testing.T, m *background.Manager, _ *ledger) {
			if info, ok := m.Get("bg_9"); ok {
				t.Fatalf("got %+v", info)
			}
		},
		"manager_cancel": func(t *testing.T, m *background.Manager, l *ledger) {
			id := spawn(t, m, "a", untilCancelled)
			if !m.Cancel(id) {
				t.Fatal("cancel found no task")
			}
			wait(t, m, "a")
			if info := status(t, m, id); info.Status != background.Cancelled {
				t.Fatalf("task is %+v", info)
			}
			if got := l.of("a"); len(got) != 1 || got[0].Kind != abi.NoticeCancelled {
				t.Fatalf("notices are %+v", got)
			}
		},
		"manager_cancel_nonexistent": func(t *testing.T, m *background.Manager, _ *ledger) {
			if m.Cancel("bg_9") {
				t.Fatal("cancelled a task that does not exist")
			}
		},
		"manager_cancel_already_completed_returns_false": func(t *testing.T, m *background.Manager, _ *ledger) {
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
			wait(t, m, "a")
			if m.Cancel(id) {
				t.Fatal("cancelled an ended task")
			}
		},
		"pattern_cancel_all_thread_isolation": func(t *testing.T, m *background.Manager, _ *ledger) {
			for range 3 {
				spawn(t, m, "a", untilCancelled)
			}
			other := spawn(t, m, "b", untilCancelled)
			if n := m.CancelAll("a"); n != 3 {
				t.Fatalf("cancelled %d", n)
			}
			wait(t, m, "a")
			if info := status(t, m, other); info.Status != background.Running {
				t.Fatalf("the other thread's task is %s", info.Status)
			}
		},
		"spawn_rejects_reserved_name": func(t *testing.T, m *background.Manager, _ *ledger) {
			for _, name := range []string{"parent", "self", "all", "broadcast"} {
				_, err := m.Spawn(t.Context(), background.Spec{Thread: "a", Type: "x", Name: name, Body: untilCancelled})
				if err == nil || !strings.Contains(err.Error(), "'"+name+"' is a reserved name") {
					t.Fatalf("error is %v", err)
				}
			}
		},
		"spawn_rejects_duplicate_name": func(t *testing.T, m *background.Manager, _ *ledger) {
			spec := background.Spec{Thread: "a", Type: "x", Name: "build", Body: untilCancelled}
			id, err := m.Spawn(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Spawn(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "a running task named 'build' already exists") {
				t.Fatalf("error is %v", err)
			}
			spec.Thread = "b"
			if _, err := m.Spawn(t.Context(), spec); err != nil {
				t.Fatalf("another thread: %v", err)
			}
			m.Cancel(id)
			wait(t, m, "a")
			spec.Thread = "a"
			if _, err := m.Spawn(t.Context(), spec); err != nil {
				t.Fatalf("after completion: %v", err)
			}
		},
		"task_context_emit_delivers_structured_custom_event": func(t *testing.T, m *background.Manager, l *ledger) {
			id := spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) {
				for i := range 3 {
					task.Emit("progress", struct {
						Done int `json:"done"`
					}{i})
				}
				return "ok", nil
			})
			wait(t, m, "a")
			got := l.of("a")
			if len(got) != 4 || got[3].Kind != abi.NoticeCompleted || got[3].Result != "ok" {
				t.Fatalf("notices are %+v", got)
			}
			for i := range 3 {
				p, _ := got[i].Payload.(map[string]any)
				if got[i].Kind != abi.NoticeCustom || got[i].EventType != "progress" || got[i].TaskID != id || p["done"] != int64(i) {
					t.Fatalf("notice %d is %+v", i, got[i])
				}
			}
		},
		"emit_after_cancel_still_delivers": func(t *testing.T, m *background.Manager, l *ledger) {
			id := spawn(t, m, "a", func(ctx context.Context, task *background.Task) (any, error) {
				<-ctx.Done()
				if !task.Emit("cleanup", nil) {
					return nil, errors.New("emit refused")
				}
				return nil, ctx.Err()
			})
			m.Cancel(id)
			wait(t, m, "a")
			if got := l.of("a"); len(got) != 2 || got[0].EventType != "cleanup" || got[1].Kind != abi.NoticeCancelled {
				t.Fatalf("notices are %+v", got)
			}
		},
		"has_running_tracks_lifecycle": func(t *testing.T, m *background.Manager, _ *ledger) {
			for _, class := range []background.Class{background.Detached, background.Service, background.Housekeeping} {
				if _, err := m.Spawn(t.Context(), background.Spec{Thread: "a", Type: "x", Class: class, Body: untilCancelled}); err != nil {
					t.Fatal(err)
				}
			}
			if m.HasBlocking("a") {
				t.Fatal("a task that nobody waits for counts as blocking")
			}
			id := spawn(t, m, "a", untilCancelled)
			if !m.HasBlocking("a") || m.HasBlocking("b") {
				t.Fatal("the blocking task is not seen, or seen by another thread")
			}
			m.Cancel(id)
			synctest.Wait()
			if m.HasBlocking("a") {
				t.Fatal("an ended task still counts")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{}
				m := newManager(t, background.Config{Deliver: l.deliver, NewID: counter()})
				test(t, m, l)
				closeManager(t, m)
			})
		})
	}
}

func TestBodyFaults(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
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
				m := newManager(t, background.Config{Deliver: l.deliver, Timeout: time.Minute})
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
		m := newManager(t, background.Config{Deliver: l.deliver, Grace: 3 * time.Second, MaxRunning: 1})
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

func TestSpawnIsDetachedFromItsContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Deliver: l.deliver})
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
		goOn := make(chan struct{})
		id, err := m.Spawn(ctx, background.Spec{Thread: "a", Type: "x", Body: func(ctx context.Context, _ *background.Task) (any, error) {
			<-goOn
			return ctx.Value(key{}), ctx.Err()
		}})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		close(goOn)
		wait(t, m, "a")
		if info := status(t, m, id); info.Status != background.Completed || info.Result != "kept" {
			t.Fatalf("task is %+v", info)
		}
		closeManager(t, m)
	})
}

func TestQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Deliver: l.deliver, NewID: counter(), MaxRunning: 2, MaxQueued: 2})
		var running, most atomic.Int32
		goOn := make(chan struct{})
		body := func(ctx context.Context, _ *background.Task) (any, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			select {
			case <-goOn:
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		ids := make([]string, 4)
		for i := range ids {
			ids[i] = spawn(t, m, "a", body)
		}
		synctest.Wait()
		if status(t, m, ids[1]).Status != background.Running || status(t, m, ids[2]).Status != background.Queued {
			t.Fatalf("tasks are %+v", m.List("a"))
		}
		if _, err := m.Spawn(t.Context(), background.Spec{Thread: "a", Type: "x", Body: body}); !errors.Is(err, background.ErrQueueFull) {
			t.Fatalf("spawn: %v", err)
		}
		m.Cancel(ids[3])
		synctest.Wait()
		if status(t, m, ids[3]).Status != background.Cancelled {
			t.Fatal("a queued task cannot be cancelled")
		}
		close(goOn)
		wait(t, m, "a")
		if most.Load() > 2 {
			t.Fatalf("%d bodies ran at a time", most.Load())
		}
		if got := l.of("a"); len(got) != 4 {
			t.Fatalf("notices are %+v", got)
		}
		closeManager(t, m)
		if _, err := m.Spawn(t.Context(), background.Spec{Thread: "a", Type: "x", Body: body}); !errors.Is(err, background.ErrClosed) {
			t.Fatalf("spawn after close: %v", err)
		}
	})
}

func TestEndedTasksAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Deliver: l.deliver, NewID: counter(), Keep: 3})
		alive := spawn(t, m, "a", untilCancelled)
		for range 10 {
			spawn(t, m, "b", func(context.Context, *background.Task) (any, error) { return nil, nil })
			wait(t, m, "b")
		}
		if n := len(m.List("b")); n != 3 {
			t.Fatalf("%d ended tasks are kept", n)
		}
		if status(t, m, alive).Status != background.Running {
			t.Fatal("a running task was forgotten")
		}
		closeManager(t, m)
	})
}

func TestHousekeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Deliver: l.deliver})
		id, err := m.Housekeep(t.Context(), "a", "sweep", "sweeps", func(_ context.Context, emit func(string, any) bool) error {
			emit("swept", int64(3))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		wait(t, m, "a")
		got := l.of("a")
		if len(got) != 2 || !got[0].Housekeeping || !got[1].Housekeeping || got[0].Payload != int64(3) || got[1].TaskID != id {
			t.Fatalf("notices are %+v", got)
		}
		if _, err := m.Housekeep(t.Context(), "a", "sweep", "", nil); err == nil {
			t.Fatal("a task without a body was accepted")
		}
		closeManager(t, m)
	})
}

// TestOneCommit shows that neither half of an end is ever seen alone: when no
// blocking task is left, its notice is there; when its notice is there, the task
// is not seen as running.
func TestOneCommit(t *testing.T) {
	t.Parallel()
	box, err := inbox.New(inbox.Config{Depth: 4})
	if err != nil {
		t.Fatal(err)
	}
	deliver := func(ctx context.Context, _ string, n abi.Notice) error { return box.Send(ctx, n) }
	m := newManager(t, background.Config{Deliver: deliver})
	for range 500 {
		id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		var wg sync.WaitGroup
		wg.Go(func() {
			n, err := box.Recv(t.Context())
			if err != nil || n.TaskID != id {
				t.Errorf("received %v %v", n, err)
			}
			if m.HasBlocking("a") || !status(t, m, id).Status.Terminal() {
				t.Error("the notice was there before the status")
			}
		})
		wg.Wait()
	}
	for range 500 {
		spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		for m.HasBlocking("a") {
			runtime.Gosched()
		}
		if n := len(box.Drain()); n != 1 {
			t.Fatalf("the task has ended and %d notices are there", n)
		}
	}
	closeManager(t, m)
}

// TestFullInboxDoesNotDeadlock ends more tasks than the owner has room for while
// the owner asks for their status before it reads.
func TestFullInboxDoesNotDeadlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box, err := inbox.New(inbox.Config{Depth: 1})
		if err != nil {
			t.Fatal(err)
		}
		deliver := func(ctx context.Context, _ string, n abi.Notice) error { return box.Send(ctx, n) }
		m := newManager(t, background.Config{Deliver: deliver})
		for range 8 {
			spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		}
		seen := map[string]int{}
		for m.HasBlocking("a") || box.Len() > 0 {
			for _, n := range box.Drain() {
				seen[n.TaskID]++
			}
			tick := time.NewTimer(time.Millisecond)
			<-tick.C
		}
		if len(seen) != 8 {
			t.Fatalf("%d of 8 tasks were reported", len(seen))
		}
		closeManager(t, m)
	})
}

// TestCloseGivesUpOnAFullInbox shows that Close ends although nobody reads.
func TestCloseGivesUpOnAFullInbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box, err := inbox.New(inbox.Config{Depth: 1})
		if err != nil {
			t.Fatal(err)
		}
		deliver := func(ctx context.Context, _ string, n abi.Notice) error { return box.Send(ctx, n) }
		m := newManager(t, background.Config{Deliver: deliver, Grace: time.Second})
		for range 3 {
			spawn(t, m, "a", untilCancelled)
		}
		closeManager(t, m)
		closeManager(t, m)
		for _, info := range m.List("a") {
			if info.Status != background.Cancelled {
				t.Fatalf("task is %+v", info)
			}
		}
	})
}

func TestCloseStopsWaitingWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Deliver: l.deliver, Grace: time.Hour})
		release := make(chan struct{})
		spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { <-release; return nil, nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("close: %v", err)
		}
		close(release)
		closeManager(t, m)
	})
}

func TestPlainValues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Deliver: l.deliver})
		spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) {
			task.Emit("v", []string{"x"})
			task.Emit("v", map[string]any{"f": 1.5, "l": []any{uint8(2)}})
			task.Emit("v", func() {})
			return time.Second, nil
		})
		wait(t, m, "a")
		got := l.of("a")
		list, _ := got[0].Payload.([]any)
		fields, _ := got[1].Payload.(map[string]any)
		inner, _ := fields["l"].([]any)
		if len(list) != 1 || list[0] != "x" || fields["f"] != 1.5 || len(inner) != 1 || inner[0] != int64(2) {
			t.Fatalf("payloads are %#v and %#v", got[0].Payload, got[1].Payload)
		}
		if _, ok := got[2].Payload.(string); !ok || got[3].Result != int64(time.Second) {
			t.Fatalf("payload is %#v, result %#v", got[2].Payload, got[3].Result)
		}
		closeManager(t, m)
	})
}

// TestRace spawns, cancels, looks and emits from many goroutines.
func TestRace(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	m := newManager(t, background.Config{Deliver: l.deliver, MaxRunning: 4})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			thread := fmt.Sprint("t", w%3)
			for i := range 60 {
				id, err := m.Spawn(t.Context(), background.Spec{Thread: thread, Type: "x", Body: func(ctx context.Context, task *background.Task) (any, error) {
					task.Emit("e", int64(i))
					if i%3 == 0 {
						return untilCancelled(ctx, task)
					}
					return nil, nil
				}})
				if err != nil {
					t.Errorf("spawn: %v", err)
					return
				}
				m.HasBlocking(thread)
				m.List(thread)
				if i%3 == 0 {
					m.Cancel(id)
				}
			}
		})
	}
	wg.Wait()
	ends := 0
	for w := range 3 {
		thread := fmt.Sprint("t", w)
		wait(t, m, thread)
		for _, n := range l.of(thread) {
			if n.Kind != abi.NoticeCustom {
				ends++
			}
		}
	}
	if ends != 8*60 {
		t.Fatalf("%d terminal notices for %d tasks", ends, 8*60)
	}
	closeManager(t, m)
}
