package background_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
)

func TestNewNamesTheField(t *testing.T) {
	t.Parallel()
	ok := &ledger{}
	for field, cfg := range map[string]background.Config{
		"Ledger":     {},
		"MaxRunning": {Ledger: ok, Limits: background.Limits{MaxRunning: -1}},
		"MaxQueued":  {Ledger: ok, Limits: background.Limits{MaxQueued: -1}},
		"Keep":       {Ledger: ok, Limits: background.Limits{Keep: -1}},
		"Timeout":    {Ledger: ok, Limits: background.Limits{Timeout: -1}},
		"Grace":      {Ledger: ok, Limits: background.Limits{Grace: -1}},
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
			t.Helper()
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
			t.Helper()
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
			t.Helper()
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, errors.New("disk full") })
			wait(t, m, "a")
			if info := status(t, m, id); info.Status != background.Failed || info.Error != "disk full" {
				t.Fatalf("task is %+v", info)
			}
			if got := l.of("a"); len(got) != 1 || got[0].Kind != abi.NoticeFailed || got[0].Error != "disk full" {
				t.Fatalf("notices are %+v", got)
			}
		},
		"manager_task_ids_are_sequential": func(t *testing.T, _ *background.Manager, l *ledger) {
			t.Helper()
			m := newManager(t, background.Config{Ledger: l, Limits: background.Limits{MaxPerThread: 64, MaxRunning: 64}})
			last := ""
			for range 50 {
				id := spawn(t, m, "a", untilCancelled)
				if !strings.HasPrefix(id, "bg_") || id <= last {
					t.Fatalf("id %s comes after %s", id, last)
				}
				last = id
			}
			closeManager(t, m)
		},
		"config_new_id_names_the_tasks": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			for i := range 3 {
				if id := spawn(t, m, "a", untilCancelled); id != fmt.Sprintf("bg_%d", i) {
					t.Fatalf("id %d is %s", i, id)
				}
			}
		},
		"manager_get_nonexistent_returns_none": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			if info, ok := m.Get("bg_9"); ok {
				t.Fatalf("got %+v", info)
			}
		},
		"manager_cancel": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
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
			t.Helper()
			if m.Cancel("bg_9") {
				t.Fatal("cancelled a task that does not exist")
			}
		},
		"manager_cancel_already_completed_returns_false": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
			wait(t, m, "a")
			if m.Cancel(id) {
				t.Fatal("cancelled an ended task")
			}
		},
		"pattern_cancel_all_thread_isolation": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
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
			t.Helper()
			for _, name := range []string{"parent", "self", "all", "broadcast"} {
				_, err := m.Spawn(t.Context(), background.Spec{Thread: "a", Type: "x", Name: name, Body: untilCancelled})
				if err == nil || !strings.Contains(err.Error(), "'"+name+"' is a reserved name") {
					t.Fatalf("error is %v", err)
				}
			}
		},
		"spawn_rejects_duplicate_name": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
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
		"spawn_allows_same_name_after_completion": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			for status, body := range map[background.Status]background.Body{
				background.Completed: func(context.Context, *background.Task) (any, error) { return "built", nil },
				background.Failed:    func(context.Context, *background.Task) (any, error) { return nil, errors.New("no") },
			} {
				spec := background.Spec{Thread: "a", Type: "x", Name: "build", Body: body}
				for range 2 {
					id, err := m.Spawn(t.Context(), spec)
					if err != nil {
						t.Fatalf("after a task that %s: %v", status, err)
					}
					wait(t, m, "a")
					if info, _ := m.Get(id); info.Status != status || info.Name != "build" {
						t.Fatalf("task is %+v", info)
					}
				}
			}
		},
		"task_context_emit_delivers_structured_custom_event": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
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
			t.Helper()
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
			t.Helper()
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
				m := newManager(t, background.Config{Ledger: l, NewID: counter()})
				test(t, m, l)
				closeManager(t, m)
			})
		})
	}
}

// TestNewID refuses ids that a record could not have.
func TestNewID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id string
		ok bool
	}{{"", false}, {strings.Repeat("x", 128), true}, {strings.Repeat("x", 129), false}} {
		m := newManager(t, background.Config{Ledger: &ledger{}, NewID: func() string { return c.id }})
		spec := background.Spec{Thread: "a", Type: "x", Body: func(context.Context, *background.Task) (any, error) { return nil, nil }}
		if _, err := m.Spawn(t.Context(), spec); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "Config.NewID") {
			t.Errorf("an id of %d bytes: %v", len(c.id), err)
		}
		closeManager(t, m)
	}
}

// TestRecover_many resumes more tasks than may wait: none is refused.
func TestRecover_many(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, ended := &ledger{}, 0
		for i := range 5 {
			record := fmt.Appendf(nil, `{"task_id":"%d","owner_thread_id":"a","task_type":"x","status":"running","owner":"gone"}`, i)
			if err := l.Commit(t.Context(), "a", fmt.Sprint(i), record, nil); err != nil {
				t.Fatal(err)
			}
		}
		m := newManager(t, background.Config{
			Ledger: l, Limits: background.Limits{MaxRunning: 1, MaxQueued: 1},
			Resume: func(background.Info) background.Body {
				return func(context.Context, *background.Task) (any, error) {
					ended++
					return nil, nil
				}
			},
		})
		if err := m.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait(t, m, "a")
		if ended != 5 {
			t.Errorf("%d of 5 tasks were resumed", ended)
		}
		closeManager(t, m)
	})
}
