package background_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestSpawnIsDetachedFromItsContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Ledger: l})
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
		m := newManager(t, background.Config{Ledger: l, NewID: counter(), Limits: background.Limits{MaxRunning: 2, MaxQueued: 2}})
		var running, most atomic.Int32
		goOn := make(chan struct{})
		body := func(ctx context.Context, _ *background.Task) (any, error) {
			raise(&most, running.Add(1))
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
		for range ids { // those that have ended need no place
			spawn(t, m, "a", body)
		}
		wait(t, m, "a")
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
		m := newManager(t, background.Config{Ledger: l, NewID: counter(), Limits: background.Limits{Keep: 3}})
		alive := spawn(t, m, "a", untilCancelled)
		for range 10 {
			id := spawn(t, m, "b", func(context.Context, *background.Task) (any, error) { return nil, nil })
			wait(t, m, "b")
			m.Acknowledge(t.Context(), "b", id)
		}
		records, _ := l.Records(t.Context(), "b")
		if n := len(m.List("b")); n != 3 || len(records) != 3 {
			t.Fatalf("%d ended tasks and %d records are kept", n, len(records))
		}
		own := housekeep(t, m, func(context.Context, *background.Task) (any, error) { return nil, nil })
		synctest.Wait()
		m.Acknowledge(t.Context(), "a", own)
		if _, known := m.Get(own); known {
			t.Fatal("housekeeping is kept after it was used")
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
		m := newManager(t, background.Config{Ledger: l})
		if err := m.Housekeep(t.Context(), "a", "sweep-1", "sweep", "sweeps", func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := m.Housekeep(t.Context(), "a", "sweep-1", "sweep", "", func(context.Context) error { return nil }); err == nil || !strings.Contains(err.Error(), "Spec.ID sweep-1 is taken") {
			t.Fatalf("the same id again: %v", err)
		}
		wait(t, m, "a")
		got := l.of("a")
		if len(got) != 1 || !got[0].Housekeeping || got[0].TaskID != "sweep-1" || got[0].Kind != abi.NoticeCompleted {
			t.Fatalf("notifications are %+v", got)
		}
		if err := m.Housekeep(t.Context(), "a", "", "sweep", "", nil); err == nil {
			t.Fatal("a task without a body was accepted")
		}
		closeManager(t, m)
	})
}

func TestPlainValues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		var log bytes.Buffer
		m := newManager(t, background.Config{Ledger: l, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) {
			task.Emit("v", []string{"x"})
			task.Emit("v", map[string]any{"f": 1.5, "l": []any{uint8(2)}})
			task.Emit("v", func() {})
			loop := map[string]any{}
			loop["self"] = loop
			task.Emit("loop", loop)
			task.Emit("nan", []any{math.NaN()})
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
		if _, ok := got[2].Payload.(string); !ok || got[5].Result != int64(time.Second) {
			t.Fatalf("payload is %#v, result %#v", got[2].Payload, got[5].Result)
		}
		if got[3].Payload != "[a value that cannot be written as JSON: map[string]interface {}]" {
			t.Fatalf("a value that holds itself was delivered as %#v", got[3].Payload)
		}
		if got[4].Payload != "[a value that cannot be written as JSON: []interface {}]" || !strings.Contains(log.String(), "NaN") {
			t.Fatalf("a value that is no number in JSON was delivered as %#v, and logged as %s", got[4].Payload, log.String())
		}
		closeManager(t, m)
	})
}

// TestRace spawns, cancels, looks and emits from many goroutines.
func TestRace(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	m := newManager(t, background.Config{Ledger: l, Limits: background.Limits{MaxRunning: 4}})
	var wg sync.WaitGroup
	var want sync.Map // how each task must end, by id
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
				want.Store(id, abi.NoticeCompleted)
				if i%3 == 0 {
					want.Store(id, abi.NoticeCancelled)
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
			if n.Kind == abi.NoticeCustom {
				continue
			}
			ends++
			if kind, ok := want.LoadAndDelete(n.TaskID); !ok || n.Kind != kind {
				t.Errorf("task %s ended as %s, want %v", n.TaskID, n.Kind, kind)
			}
		}
	}
	if ends != 8*60 {
		t.Fatalf("%d terminal notices for %d tasks", ends, 8*60)
	}
	closeManager(t, m)
}

// TestEndInADroppedThread drops a thread whose tasks run: what they report and how they end leaves nothing there.
func TestEndInADroppedThread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		box, err := inbox.New(t.Context(), inbox.Config{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		m := newManager(t, background.Config{Ledger: box, Limits: background.Limits{Keep: 1}})
		goOn := make(chan struct{})
		body := func(_ context.Context, task *background.Task) (any, error) {
			<-goOn
			return task.Emit("late", "x"), nil
		}
		id := spawn(t, m, "a", body)
		housekeep(t, m, body)
		if _, err := s.Apply(t.Context(), store.Batch{ID: "drop", Thread: "a", Base: store.AnyRevision, Drop: true}); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		wait(t, m, "a")
		synctest.Wait()
		if info := status(t, m, id); info.Status != background.Completed || info.Result != false {
			t.Errorf("the task is %+v", info)
		}
		if threads, err := box.Threads(t.Context()); err != nil || len(threads) != 0 || box.Waiting("a") != 0 {
			t.Errorf("threads %q have something, %v; %d notifications wait", threads, err, box.Waiting("a"))
		}
		if stats := m.Stats(); stats.Running != 0 || stats.Unsaved != 0 || len(stats.CommitFailures) != 0 {
			t.Errorf("stats are %+v", stats)
		}
		closeManager(t, m)
		if err := box.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
