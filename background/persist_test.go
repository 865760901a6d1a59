package background_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
)

// recovered commits tasks of thread a as a process before did, and recovers them.
func recovered(t *testing.T, m *background.Manager, l *ledger, infos ...background.Info) error {
	t.Helper()
	for _, info := range infos {
		data, err := json.Marshal(info)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Commit(t.Context(), "a", info.ID, data, nil); err != nil {
			t.Fatal(err)
		}
	}
	return m.Recover(t.Context())
}

func old(id string, status background.Status) background.Info {
	return background.Info{ID: id, Type: "shell", Description: "old", Status: status, CreatedAt: time.UnixMilli(1)}
}

func TestSnapshotOfManager(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *background.Manager, *ledger){
		"manager_persisted_snapshot_includes_all_tasks": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			ids := []string{spawn(t, m, "a", untilCancelled), spawn(t, m, "a", untilCancelled)}
			ended := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return "x", nil })
			other := spawn(t, m, "b", untilCancelled)
			synctest.Wait()
			ids = append(ids, ended)
			for thread, want := range map[string][]string{"a": ids, "b": {other}, "c": nil} {
				for _, id := range want {
					if got := l.kept(t, thread, id); got.ID != id || got.Thread != thread || got.Status != status(t, m, id).Status {
						t.Fatalf("task %s of thread %s is %+v", id, thread, got)
					}
				}
				if records, _ := l.Records(t.Context(), thread); len(records) != len(want) {
					t.Fatalf("the records of thread %s are %q", thread, records)
				}
			}
		},
		"persisted_snapshot_includes_result_value": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return map[string]any{"n": 7}, nil })
			wait(t, m, "a")
			records, _ := l.Records(t.Context(), "a")
			if data := string(records[id]); !strings.Contains(data, `"result":{"n":7}`) || !strings.Contains(data, id) {
				t.Fatalf("the record is %s", data)
			}
		},
		"persisted_snapshot_excludes_running_tasks": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			running := spawn(t, m, "a", untilCancelled)
			done := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
			synctest.Wait()
			if r, d := l.kept(t, "a", running), l.kept(t, "a", done); r.Status != background.Running || !r.EndedAt.IsZero() || !d.Status.Terminal() || d.EndedAt.IsZero() {
				t.Fatalf("records are %+v and %+v", r, d)
			}
		},
		"background_task_state_snapshot_reduce_upsert": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			goOn := make(chan struct{})
			first := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { <-goOn; return "x", nil })
			before := l.kept(t, "a", first)
			second := spawn(t, m, "a", untilCancelled)
			close(goOn)
			synctest.Wait()
			after := l.kept(t, "a", first)
			if before.Status != background.Running || after.Status != background.Completed || after.Result != "x" || l.kept(t, "a", second).Status != background.Running {
				t.Fatalf("records are %+v, then %+v", before, after)
			}
		},
		"manager_restore_skips_existing_live_tasks": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			live := spawn(t, m, "a", untilCancelled)
			if err := recovered(t, m, l, old(live, background.Failed), old("bg_9", background.Completed)); err != nil {
				t.Fatal(err)
			}
			if status(t, m, live).Status != background.Running || status(t, m, "bg_9").Status != background.Completed {
				t.Fatalf("tasks are %+v", m.List("a"))
			}
		},
		"restore_updates_counter_correctly": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			if err := recovered(t, m, l, old("bg_0", background.Completed), old("bg_1", background.Completed)); err != nil {
				t.Fatal(err)
			}
			id := spawn(t, m, "a", untilCancelled)
			if id != "bg_2" || len(m.List("a")) != 3 {
				t.Fatalf("the next id is %s of %+v", id, m.List("a"))
			}
		},
		"restore_degrades_orphaned_running_tasks_to_failed": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			if err := recovered(t, m, l, old("bg_5", background.Running), old("bg_6", background.Queued)); err != nil {
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
			if err := recovered(t, m, l, failed, old("bg_6", background.Cancelled), completed); err != nil {
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
				if err := m.Recover(t.Context()); err != nil {
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
		"restore_names_what_is_wrong": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			bad := old("bg_5", background.Running)
			bad.Type = strings.Repeat("x", 1000)
			err := recovered(t, m, l, bad, old("bg_6", background.Completed))
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
	for name, test := range map[string]func(*testing.T, *background.Manager, *ledger){
		"get_reads_from_state_store": func(t *testing.T, m *background.Manager, b *ledger) {
			t.Helper()
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return "x", nil })
			wait(t, m, "a")
			if kept, seen := b.kept(t, "a", id), status(t, m, id); kept.Status != seen.Status || kept.Result != seen.Result || kept.Result != "x" {
				t.Fatalf("kept is %+v, seen is %+v", kept, seen)
			}
		},
		"spawn_agent_fails_when_background_keys_are_not_registered": func(t *testing.T, m *background.Manager, b *ledger) {
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
		"completion_metadata_commit_failure_leaves_store_stuck_at_running": func(t *testing.T, m *background.Manager, b *ledger) {
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
		"completion_metadata_commit_failure_increments_observability_metric": func(t *testing.T, m *background.Manager, b *ledger) {
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
		"end_that_cannot_be_kept_is_an_orphan": func(t *testing.T, m *background.Manager, b *ledger) {
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
		"run_start_restores_persisted_metadata_into_manager": func(t *testing.T, m *background.Manager, b *ledger) {
			t.Helper()
			done := old("bg_3", background.Completed)
			done.Result = "x"
			if err := recovered(t, m, b, done, old("bg_4", background.Running)); err != nil {
				t.Fatal(err)
			}
			wait(t, m, "a")
			if got := b.of("a"); status(t, m, "bg_3").Result != "x" || status(t, m, "bg_4").Error != background.Orphaned || len(got) != 1 || got[0].TaskID != "bg_4" {
				t.Fatalf("tasks are %+v, notifications %+v", m.List("a"), got)
			}
		},
		"housekeeping_is_not_restored": func(t *testing.T, m *background.Manager, b *ledger) {
			t.Helper()
			own := old("bg_4", background.Running)
			own.Class = background.Housekeeping
			if err := recovered(t, m, b, own); err != nil {
				t.Fatal(err)
			}
			wait(t, m, "a")
			records, _ := b.Records(t.Context(), "a")
			if len(m.List("a")) != 0 || len(b.of("a")) != 0 || len(records) != 0 {
				t.Fatalf("tasks are %+v, notifications %+v, %d records", m.List("a"), b.of("a"), len(records))
			}
		},
		"results_stay_until_acknowledged": func(t *testing.T, m *background.Manager, b *ledger) {
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
		"resumed": func(t *testing.T, m *background.Manager, b *ledger) {
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
				b := &ledger{}
				m := newManager(t, background.Config{Ledger: b, NewID: counter(), Limits: background.Limits{Keep: 2}})
				test(t, m, b)
				closeManager(t, m)
			})
		})
	}
}

// TestPanickingOwner is owner_inbox_lock_recovers_after_panicking_holder: the lock
// that is held while the ledger panics is free again, and the notice comes all the same.
func TestPanickingOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		first := true
		l.give = func(context.Context, string, abi.Notice) error {
			if first {
				first = false
				panic("holder")
			}
			return nil
		}
		m := newManager(t, background.Config{Ledger: l})
		id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		wait(t, m, "a")
		if got := l.of("a"); len(got) != 1 || status(t, m, id).Status != background.Completed || m.HasBlocking("a") || m.Stats().LostNotices != 0 {
			t.Fatalf("notices are %+v", got)
		}
		closeManager(t, m)
	})
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, background.Config{Ledger: &ledger{give: func(context.Context, string, abi.Notice) error { panic("always") }}})
		spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) { return task.Emit("x", nil), nil })
		synctest.Wait()
		closeManager(t, m)
		if s := m.Stats(); s.Unsaved != 1 || s.RefusedEvents != 1 || s.CommitFailures["task_completion"] == 0 {
			t.Fatalf("stats are %+v", s)
		}
	})
}
