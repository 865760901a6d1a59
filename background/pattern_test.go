package background_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// ticking emits until it is cancelled.
func ticking(ctx context.Context, task *background.Task) (any, error) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		task.Emit("tick", int64(i))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *background.Manager, *ledger){
		"pattern_one_shot_completes_with_result": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return map[string]any{"answer": 42}, nil })
			wait(t, m, "a")
			result, _ := l.of("a")[0].Result.(map[string]any)
			if info := status(t, m, id); info.Status != background.Completed || result["answer"] != int64(42) {
				t.Fatalf("task is %+v, notices %+v", info, l.of("a"))
			}
		},
		"manager_task_result_retrieval_after_success": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return []any{"x"}, nil })
			wait(t, m, "a")
			for range 2 {
				if got, _ := status(t, m, id).Result.([]any); len(got) != 1 || got[0] != "x" {
					t.Fatalf("result is %v", got)
				}
			}
		},
		"manager_task_status_transitions_correctly": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			goOn := make(chan struct{})
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { <-goOn; return nil, nil })
			before := status(t, m, id)
			close(goOn)
			wait(t, m, "a")
			after := status(t, m, id)
			if before.Status != background.Running || !before.EndedAt.IsZero() || after.Status != background.Completed || after.EndedAt.IsZero() {
				t.Fatalf("before %+v, after %+v", before, after)
			}
		},
		"pattern_long_running_with_progress_events": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) {
				for i := range 5 {
					<-time.After(10 * time.Millisecond)
					task.Emit("progress", int64(i))
				}
				return "done", nil
			})
			wait(t, m, "a")
			got := l.of("a")
			for i := range 5 {
				if got[i].EventType != "progress" || got[i].Payload != int64(i) {
					t.Fatalf("notice %d is %+v", i, got[i])
				}
			}
			if len(got) != 6 || got[5].Result != "done" {
				t.Fatalf("notices are %+v", got)
			}
		},
		"long_running_task_with_events_and_cancel": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			id := spawn(t, m, "a", ticking)
			<-time.After(20 * time.Millisecond)
			m.Cancel(id)
			wait(t, m, "a")
			if n, last := custom(t, l.of("a"), id); n < 10 || last.Kind != abi.NoticeCancelled {
				t.Fatalf("%d events, the last notice is %+v", n, last)
			}
		},
		"cancel_all_during_concurrent_emits": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			for range 6 {
				spawn(t, m, "a", ticking)
			}
			<-time.After(5 * time.Millisecond)
			if n := m.CancelAll("a"); n != 6 {
				t.Fatalf("%d of 6 were asked to end", n)
			}
			wait(t, m, "a")
			for _, info := range m.List("a") {
				if n, last := custom(t, l.of("a"), info.ID); n == 0 || last.Kind != abi.NoticeCancelled {
					t.Fatalf("%d events of %s, the last notice is %+v", n, info.ID, last)
				}
			}
		},
		"pattern_cancel_all_stops_all_tasks": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			for range 3 {
				spawn(t, m, "a", untilCancelled)
			}
			if n := m.CancelAll("a"); n != 3 {
				t.Fatalf("%d of 3 were asked to end", n)
			}
			wait(t, m, "a")
			for _, info := range m.List("a") {
				if info.Status != background.Cancelled {
					t.Fatalf("task is %+v", info)
				}
			}
		},
		"pattern_task_fails_with_error": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, errors.New("no such file") })
			wait(t, m, "a")
			if got := l.of("a"); len(got) != 1 || got[0].Kind != abi.NoticeFailed || got[0].Error != "no such file" || status(t, m, id).Error != "no such file" {
				t.Fatalf("notices are %+v", got)
			}
		},
		"pattern_cancel_completed_is_noop": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return "x", nil })
			wait(t, m, "a")
			if m.Cancel(id) || m.CancelAll("a") != 0 || m.CancelTree(id) != 0 || status(t, m, id).Status != background.Completed || len(l.of("a")) != 1 {
				t.Fatal("a task that had ended was cancelled")
			}
		},
		"task_context_provides_inbox_sender": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			id := spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) { return task.Emit("hello", "x"), nil })
			wait(t, m, "a")
			if status(t, m, id).Result != true || l.of("a")[0].Payload != "x" {
				t.Fatalf("notices are %+v", l.of("a"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, test)
		})
	}
}

// TestNoOwner is task_context_inbox_is_none_by_default: when the owner takes
// nothing, Emit returns an error and the task continues.
func TestNoOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, background.Config{Ledger: &ledger{give: func(_ context.Context, _ string, n abi.Notice) error {
			if n.Kind == abi.NoticeCustom {
				return inbox.ErrClosed
			}
			return nil
		}}})
		id := spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) { return task.Emit("hello", "x"), nil })
		wait(t, m, "a")
		if info := status(t, m, id); info.Status != background.Completed || info.Result != false {
			t.Fatalf("task is %+v", info)
		}
		closeManager(t, m)
	})
}

// TestLateCompletion is on_closed_fires_for_late_task_completion: no run of the thread is there any more when
// the task ends, and the thread is woken.
func TestLateCompletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, err := inbox.New(t.Context(), inbox.Config{Store: memstore.New()})
		if err != nil {
			t.Fatal(err)
		}
		woken := make(chan *inbox.Delivery, 1)
		o.Start(func(ctx context.Context, thread string) error {
			d, err := o.Take(ctx, thread)
			woken <- d
			return err
		})
		m := newManager(t, background.Config{Ledger: o})
		goOn := make(chan struct{})
		id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { <-goOn; return "late", nil })
		if d, err := o.Take(t.Context(), "a"); err != nil || len(d.Notifications()) != 0 {
			t.Fatalf("the run took %+v, %v", d, err)
		}
		close(goOn)
		wait(t, m, "a")
		if got := (<-woken).Notifications(); len(got) != 1 || got[0].TaskID != id || got[0].Result != "late" {
			t.Fatalf("the thread was woken for %+v", got)
		}
		closeManager(t, m)
		if err := o.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSizesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Ledger: l, Limits: background.Limits{MaxPayload: 100}})
		id := spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) {
			task.Emit("small", strings.Repeat("s", 100))
			task.Emit("large", map[string]any{"text": strings.Repeat("é", 200)})
			if task.Emit(strings.Repeat("t", 65), nil) {
				return nil, errors.New("an endless event type was accepted")
			}
			return nil, errors.New(strings.Repeat("é", 4000))
		})
		wait(t, m, "a")
		got := l.of("a")
		large, _ := got[1].Payload.(string)
		if len(got) != 3 || got[0].Payload != strings.Repeat("s", 100) || len(large) > 300 || !strings.Contains(large, "task output truncated: dropped") {
			t.Fatalf("notices are %+v", got)
		}
		text := status(t, m, id).Error
		if head, mark, _ := strings.Cut(text, "\n"); head != strings.Repeat("é", 1500) || mark != "…[task error truncated: dropped 5000 of 8000 bytes; narrow the command (head/grep) to keep context lean]" {
			t.Fatalf("error is %q", text)
		}
		for field, spec := range map[string]background.Spec{
			"Type": {Type: strings.Repeat("x", 65)}, "Name": {Type: "x", Name: strings.Repeat("x", 129)},
			"Description": {Type: "x", Description: strings.Repeat("x", 5000)},
		} {
			spec.Thread, spec.Body = "a", untilCancelled
			if _, err := m.Spawn(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "Spec."+field) {
				t.Fatalf("error is %v, want one that names %s", err, field)
			}
		}
		closeManager(t, m)
	})
}

func TestEventRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Ledger: l, Limits: background.Limits{EventsPerSecond: 10}})
		start := time.Now()
		id := spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) {
			for i := range 40 {
				task.Emit("tick", int64(i))
			}
			return nil, nil
		})
		wait(t, m, "a")
		if n, _ := custom(t, l.of("a"), id); n != 40 {
			t.Fatalf("%d of 40 events came", n)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Fatalf("10 at once and 30 at 10 a second took %s", took)
		}
		closeManager(t, m)
	})
}

// TestPlacesPerThread shows that one thread cannot take all places, that services
// take none from work, and that none is refused.
func TestPlacesPerThread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Ledger: l, NewID: counter(), Limits: background.Limits{MaxRunning: 3, MaxPerThread: 2}})
		var ids []string
		for range 4 {
			ids = append(ids, spawn(t, m, "a", untilCancelled))
		}
		other := spawn(t, m, "b", untilCancelled)
		var services []string
		for _, class := range []background.Class{background.Service, background.Housekeeping} {
			id, err := m.Spawn(t.Context(), background.Spec{Thread: "a", Type: "x", Class: class, Body: untilCancelled})
			if err != nil {
				t.Fatal(err)
			}
			services = append(services, id)
		}
		synctest.Wait()
		if got := fmt.Sprint(standings(m, ids), standings(m, []string{other}), standings(m, services)); got != "[running running queued queued] [running] [running running]" {
			t.Fatalf("tasks are %s", got)
		}
		m.Cancel(ids[0])
		synctest.Wait()
		if got := fmt.Sprint(standings(m, ids)); got != "[cancelled running running queued]" {
			t.Fatalf("tasks are %s", got)
		}
		if s := m.Stats(); s.Running != 5 || s.Queued != 1 || s.Ended != 1 {
			t.Fatalf("stats are %+v", s)
		}
		closeManager(t, m)
	})
}

func standings(m *background.Manager, ids []string) (out []background.Status) {
	for _, id := range ids {
		info, _ := m.Get(id)
		out = append(out, info.Status)
	}
	return out
}

// TestParentsDoNotStarveTheirChildren has more parents that wait than places.
func TestParentsDoNotStarveTheirChildren(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Ledger: l, Limits: background.Limits{MaxRunning: 2}})
		start := time.Now()
		for range 6 {
			spawn(t, m, "a", func(ctx context.Context, _ *background.Task) (any, error) {
				var wg sync.WaitGroup
				for range 2 {
					child, err := m.Spawn(ctx, background.Spec{Thread: "a", Type: "child", Body: func(context.Context, *background.Task) (any, error) { return "x", nil }})
					if err != nil {
						return nil, err
					}
					wg.Go(func() { _, _ = m.WaitTask(ctx, child) })
				}
				wg.Wait()
				return "parent", nil
			})
		}
		wait(t, m, "a")
		if took := time.Since(start); took > time.Second {
			t.Fatalf("it took %s: parents held the places of their children", took)
		}
		for _, info := range m.List("a") {
			if info.Status != background.Completed {
				t.Fatalf("task is %+v", info)
			}
		}
		if s := m.Stats(); s.Running+s.Queued != 0 {
			t.Fatalf("stats are %+v", s)
		}
		closeManager(t, m)
	})
}

// TestNameRace spawns one name from many goroutines: one task gets it.
func TestNameRace(t *testing.T) {
	t.Parallel()
	for range 2000 {
		inBubble(t, func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			won := make(chan string, 4)
			for range 4 {
				go func() {
					id, _ := m.Spawn(t.Context(), background.Spec{Thread: "a", Type: "x", Name: "n", Body: untilCancelled})
					if id != "" && !m.Cancel(id) {
						t.Error("a task that was just spawned cannot be cancelled")
					}
					won <- id
				}()
			}
			synctest.Wait()
			got := 0
			for range 4 {
				if <-won != "" {
					got++
				}
			}
			if got == 0 || len(m.List("a")) != got {
				t.Fatalf("%d spawns got the name, %d tasks are there", got, len(m.List("a")))
			}
			wait(t, m, "a")
		})
	}
}
