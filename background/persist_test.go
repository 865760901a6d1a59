package background_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
)

// book is a Ledger in memory that fails on demand.
type book struct {
	ledger

	mu      sync.Mutex
	records map[string]map[string][]byte
	fail    func(task string, terminal bool) error
}

func (b *book) Commit(ctx context.Context, thread, task string, record []byte, n *abi.Notice) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		if err := b.fail(task, n != nil && n.Kind != abi.NoticeCustom); err != nil {
			return err
		}
	}
	if b.records == nil {
		b.records = map[string]map[string][]byte{}
	}
	if b.records[thread] == nil {
		b.records[thread] = map[string][]byte{}
	}
	if task != "" {
		b.records[thread][task] = record
	}
	if n == nil {
		return nil
	}
	return b.deliver(ctx, thread, *n)
}

func (b *book) Forget(_ context.Context, thread string, tasks ...string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range tasks {
		delete(b.records[thread], id)
	}
	return nil
}

func (b *book) Threads(context.Context) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for thread := range b.records {
		out = append(out, thread)
	}
	return out, nil
}

func (b *book) Records(_ context.Context, thread string) (map[string][]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.records[thread]), nil
}

func (b *book) Unread(_ context.Context, thread string) (out []string, _ error) {
	for _, n := range b.of(thread) {
		if n.Kind != abi.NoticeCustom {
			out = append(out, n.TaskID)
		}
	}
	return out, nil
}

// kept reads the record of a task.
func (b *book) kept(t *testing.T, thread, id string) background.Info {
	t.Helper()
	records, _ := b.Records(t.Context(), thread)
	var info background.Info
	if err := json.Unmarshal(records[id], &info); err != nil {
		t.Fatalf("record of %s: %v", id, err)
	}
	return info
}

func snapshotOf(infos ...background.Info) background.Snapshot {
	return background.Snapshot{}.ReplaceAll(infos)
}

func old(id string, status background.Status) background.Info {
	return background.Info{ID: id, Type: "shell", Description: "old", Status: status, CreatedAt: time.UnixMilli(1)}
}

func TestSnapshotOfManager(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *background.Manager, *ledger){
		"manager_persisted_snapshot_includes_all_tasks": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			ids := []string{spawn(t, m, "a", untilCancelled), spawn(t, m, "a", untilCancelled)}
			ended := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return "x", nil })
			other := spawn(t, m, "b", untilCancelled)
			synctest.Wait()
			ids = append(ids, ended)
			// A snapshot is of one thread; those of all threads together have every task.
			for thread, want := range map[string][]string{"a": ids, "b": {other}, "c": nil} {
				s := m.Snapshot(thread)
				for _, id := range want {
					if got := s.Tasks[id]; got.ID != id || got.Thread != thread || got.Status != status(t, m, id).Status {
						t.Fatalf("task %s of thread %s is %+v", id, thread, got)
					}
				}
				if len(s.Tasks) != len(want) {
					t.Fatalf("the snapshot of thread %s is %+v", thread, s)
				}
			}
		},
		"persisted_snapshot_includes_result_value": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return map[string]any{"n": 7}, nil })
			wait(t, m, "a")
			data, err := json.Marshal(m.Snapshot("a"))
			if err != nil || !strings.Contains(string(data), `"result":{"n":7}`) || !strings.Contains(string(data), id) {
				t.Fatalf("snapshot is %s, %v", data, err)
			}
		},
		"persisted_snapshot_excludes_running_tasks": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			running := spawn(t, m, "a", untilCancelled)
			done := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
			synctest.Wait()
			s := m.Snapshot("a")
			if len(s.Tasks) != 2 || s.Tasks[running].Status != background.Running || !s.Tasks[running].EndedAt.IsZero() ||
				!s.Tasks[done].Status.Terminal() || s.Tasks[done].EndedAt.IsZero() {
				t.Fatalf("snapshot is %+v", s)
			}
		},
		"manager_restore_skips_existing_live_tasks": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			live := spawn(t, m, "a", untilCancelled)
			if err := m.Restore(t.Context(), "a", snapshotOf(old(live, background.Failed), old("bg_9", background.Completed))); err != nil {
				t.Fatal(err)
			}
			if status(t, m, live).Status != background.Running || status(t, m, "bg_9").Status != background.Completed {
				t.Fatalf("tasks are %+v", m.List("a"))
			}
		},
		"restore_updates_counter_correctly": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			if err := m.Restore(t.Context(), "a", snapshotOf(old("bg_0", background.Completed), old("bg_1", background.Completed))); err != nil {
				t.Fatal(err)
			}
			id := spawn(t, m, "a", untilCancelled)
			if id != "bg_2" || len(m.List("a")) != 3 {
				t.Fatalf("the next id is %s of %+v", id, m.List("a"))
			}
		},
		"restore_degrades_orphaned_running_tasks_to_failed": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			if err := m.Restore(t.Context(), "a", snapshotOf(old("bg_5", background.Running), old("bg_6", background.Queued))); err != nil {
				t.Fatal(err)
			}
			wait(t, m, "a")
			for i, id := range []string{"bg_5", "bg_6"} {
				info := status(t, m, id)
				if info.Status != background.Failed || info.Error != "task orphaned: runtime restarted while running" || info.EndedAt.IsZero() || info.Thread != "a" {
					t.Fatalf("task is %+v", info)
				}
				if got := l.of("a"); len(got) != 2 || got[i].Kind != abi.NoticeFailed || got[i].Error != background.Orphaned {
					t.Fatalf("notices are %+v", got)
				}
			}
		},
		"restore_preserves_terminal_task_status": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			failed := old("bg_5", background.Failed)
			failed.Error = "as it was"
			completed := old("bg_7", background.Completed)
			completed.Result = "what it found"
			if err := m.Restore(t.Context(), "a", snapshotOf(failed, old("bg_6", background.Cancelled), completed)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if status(t, m, "bg_5").Error != "as it was" || status(t, m, "bg_6").Status != background.Cancelled ||
				status(t, m, "bg_7").Status != background.Completed || status(t, m, "bg_7").Result != "what it found" || len(l.of("a")) != 0 || m.HasBlocking("a") {
				t.Fatalf("tasks are %+v, notices %+v", m.List("a"), l.of("a"))
			}
		},
		"restore_does_not_degrade_live_running_tasks": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			live := spawn(t, m, "a", untilCancelled)
			for range 2 {
				if err := m.Restore(t.Context(), "a", m.Snapshot("a")); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if status(t, m, live).Status != background.Running || len(l.of("a")) != 0 {
				t.Fatalf("task is %+v", status(t, m, live))
			}
		},
		"result_persists_after_handle_dropped": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return "kept", nil })
			wait(t, m, "a")
			for range 3 {
				if status(t, m, id).Result != "kept" || m.Cancel(id) {
					t.Fatalf("task is %+v", status(t, m, id))
				}
			}
		},
		"restore_names_what_is_wrong": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			bad := old("bg_5", background.Running)
			bad.Type = strings.Repeat("x", 1000)
			err := m.Restore(t.Context(), "a", snapshotOf(bad, old("bg_6", background.Completed)))
			if err == nil || !strings.Contains(err.Error(), "bg_5") || !strings.Contains(err.Error(), "Spec.Type") || status(t, m, "bg_6").ID == "" {
				t.Fatalf("error is %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, test)
		})
	}
}

// TestLedger runs a manager on a ledger that fails on demand.
func TestLedger(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *background.Manager, *book){
		"get_reads_from_state_store": func(t *testing.T, m *background.Manager, b *book) {
			t.Helper()
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return "x", nil })
			wait(t, m, "a")
			if kept, seen := b.kept(t, "a", id), status(t, m, id); kept.Status != seen.Status || kept.Result != seen.Result || kept.Result != "x" {
				t.Fatalf("kept is %+v, seen is %+v", kept, seen)
			}
		},
		"spawn_agent_fails_when_background_keys_are_not_registered": func(t *testing.T, m *background.Manager, b *book) {
			t.Helper()
			unknown := errors.New("unknown key: background_task_state")
			b.fail = func(string, bool) error { return unknown }
			_, err := m.SpawnAgent(t.Context(), background.Spec{Thread: "a", Name: "n"}, echo(1))
			if !errors.Is(err, unknown) || len(m.List("a")) != 0 || m.HasBlocking("a") {
				t.Fatalf("error is %v, tasks are %+v", err, m.List("a"))
			}
			b.fail = nil
			if _, err := m.SpawnAgent(t.Context(), background.Spec{Thread: "a", Name: "n"}, echo(1)); err != nil {
				t.Fatalf("a spawn that failed kept its name or place: %v", err)
			}
		},
		"completion_metadata_commit_failure_leaves_store_stuck_at_running": func(t *testing.T, m *background.Manager, b *book) {
			t.Helper()
			id := spawn(t, m, "a", untilCancelled)
			failing := true
			b.fail = func(_ string, terminal bool) error {
				if terminal && failing {
					return errors.New("disk full")
				}
				return nil
			}
			m.Cancel(id)
			<-time.After(10 * time.Second)
			if status(t, m, id).Status != background.Running || b.kept(t, "a", id).Status != background.Running || !m.HasBlocking("a") || len(b.of("a")) != 0 {
				t.Fatal("the end was seen before it was kept")
			}
			b.mu.Lock()
			failing = false
			b.mu.Unlock()
			wait(t, m, "a")
			if status(t, m, id).Status != background.Cancelled || b.kept(t, "a", id).Status != background.Cancelled || len(b.of("a")) != 1 {
				t.Fatalf("task is %+v, notices %+v", status(t, m, id), b.of("a"))
			}
		},
		"completion_metadata_commit_failure_increments_observability_metric": func(t *testing.T, m *background.Manager, b *book) {
			t.Helper()
			left := 3
			b.fail = func(_ string, terminal bool) error {
				if terminal && left > 0 {
					left--
					return errors.New("disk full")
				}
				return nil
			}
			spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
			wait(t, m, "a")
			agent(t, m, "a", echo(0))
			if got := m.Stats().CommitFailures; got["task_completion"] != 3 || len(got) != 1 {
				t.Fatalf("failures were counted as %v, want 3 of task_completion", got)
			}
			left = 2
			agent(t, m, "a", echo(0))
			m.CancelAll("a")
			wait(t, m, "a")
			if got := m.Stats().CommitFailures; got["task_completion"] != 3 || got["sub_agent_completion"] != 2 {
				t.Fatalf("failures were counted as %v, want 2 of sub_agent_completion", got)
			}
		},
		"end_that_cannot_be_kept_is_an_orphan": func(t *testing.T, m *background.Manager, b *book) {
			t.Helper()
			id := spawn(t, m, "a", untilCancelled)
			b.fail = func(_ string, terminal bool) error {
				if terminal {
					return errors.New("disk full")
				}
				return nil
			}
			closeManager(t, m)
			if m.Stats().Unsaved != 1 || b.kept(t, "a", id).Status != background.Running {
				t.Fatalf("stats are %+v", m.Stats())
			}
			b.fail = nil
			next := newManager(t, background.Config{Ledger: b})
			if err := next.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			wait(t, next, "a")
			if got := b.of("a"); len(got) != 1 || got[0].Error != background.Orphaned {
				t.Fatalf("notices are %+v", got)
			}
			closeManager(t, next)
		},
		"results_stay_until_acknowledged": func(t *testing.T, m *background.Manager, b *book) {
			t.Helper()
			var ids []string
			for range 6 {
				ids = append(ids, spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil }))
				wait(t, m, "a")
			}
			if n := len(m.List("a")); n != 6 {
				t.Fatalf("%d of 6 results are there before they were used", n)
			}
			m.Acknowledge(t.Context(), "b", ids...)
			m.Acknowledge(t.Context(), "a", ids[1:]...)
			left, _ := b.Records(t.Context(), "a")
			if n := len(m.List("a")); n != 3 || len(left) != 3 || left[ids[0]] == nil {
				t.Fatalf("%d results and %d records are kept, want 2 that were used and 1 that was not", n, len(left))
			}
		},
		"resumed": func(t *testing.T, m *background.Manager, b *book) {
			t.Helper()
			closeManager(t, m)
			for id, status := range map[string]background.Status{"bg_a": background.Running, "bg_b": background.Queued, "bg_c": background.Running} {
				info := old(id, status)
				info.Thread, info.Attempt = "a", 1
				if id == "bg_c" {
					info.Attempt = background.DefaultMaxAttempts
				}
				data, _ := json.Marshal(info)
				_ = b.Commit(t.Context(), "a", id, data, nil)
			}
			_ = b.Commit(t.Context(), "a", "bg_d", []byte("{broken"), nil)
			next := newManager(t, background.Config{Ledger: b, Resume: func(info background.Info) background.Body {
				if info.ID == "bg_b" {
					return nil
				}
				return func(context.Context, *background.Task) (any, error) { return fmt.Sprint("again ", info.ID), nil }
			}})
			if err := next.Recover(t.Context()); err == nil || !strings.Contains(err.Error(), "bg_d") {
				t.Fatalf("error is %v, want one that names bg_d", err)
			}
			wait(t, next, "a")
			a := b.kept(t, "a", "bg_a")
			if a.Result != "again bg_a" || a.Attempt != 2 || b.kept(t, "a", "bg_b").Error != background.Orphaned || b.kept(t, "a", "bg_c").Error != background.Orphaned {
				t.Fatalf("tasks are %+v", next.List("a"))
			}
			if n := len(b.of("a")); n != 3 {
				t.Fatalf("%d notices for 3 tasks", n)
			}
			closeManager(t, next)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &book{}
				m := newManager(t, background.Config{Ledger: b, NewID: counter(), Keep: 2})
				test(t, m, b)
				closeManager(t, m)
			})
		})
	}
}

func TestRecoverNeedsALedger(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	m := newManager(t, background.Config{Deliver: l.deliver})
	if err := m.Recover(t.Context()); err == nil || !strings.Contains(err.Error(), "Ledger") {
		t.Fatalf("error is %v", err)
	}
	closeManager(t, m)
}

// TestPanickingOwner is owner_inbox_lock_recovers_after_panicking_holder: the lock
// that is held while Deliver panics is free again, and the notice comes all the same.
func TestPanickingOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		first := true
		m := newManager(t, background.Config{Deliver: func(ctx context.Context, thread string, n abi.Notice) error {
			if first {
				first = false
				panic("holder")
			}
			return l.deliver(ctx, thread, n)
		}})
		id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		wait(t, m, "a")
		if got := l.of("a"); len(got) != 1 || status(t, m, id).Status != background.Completed || m.HasBlocking("a") || m.Stats().LostNotices != 0 {
			t.Fatalf("notices are %+v", got)
		}
		closeManager(t, m)
	})
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, background.Config{Deliver: func(context.Context, string, abi.Notice) error { panic("always") }})
		spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) { return task.Emit("x", nil), nil })
		wait(t, m, "a")
		if s := m.Stats(); s.LostNotices != 1 || s.RefusedEvents != 1 {
			t.Fatalf("stats are %+v", s)
		}
		closeManager(t, m)
	})
}

// TestHousekeepingBesideALedger: with an owner alongside the ledger, housekeeping goes to
// the owner, and the ledger gets none of it.
func TestHousekeepingBesideALedger(t *testing.T) {
	t.Parallel()
	b, l := &book{}, &ledger{}
	m := newManager(t, background.Config{Ledger: b, Deliver: l.deliver, NewID: counter(), Keep: 1})
	for range 3 {
		housekeep(t, m, func(_ context.Context, task *background.Task) (any, error) {
			task.Emit("compacted", "x")
			return nil, nil
		})
		wait(t, m, "a")
	}
	spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return "mine", nil })
	wait(t, m, "a")
	if got := l.of("a"); len(got) != 6 || got[0].EventType != "compacted" || got[5].Kind != abi.NoticeCompleted || !got[5].Housekeeping {
		t.Errorf("the owner got %+v", got)
	}
	records, err := b.Records(t.Context(), "a")
	if err != nil || len(records) != 1 || records["bg_3"] == nil {
		t.Errorf("the ledger has %d records, %v", len(records), err)
	}
	closeManager(t, m)
}
