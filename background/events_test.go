package background_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
)

// custom counts the custom notifications of one task and checks that nothing follows
// its terminal one.
func custom(t *testing.T, notices []abi.Notice, id string) (n int, last abi.Notice) {
	t.Helper()
	for _, got := range notices {
		if got.TaskID != id {
			continue
		}
		if last.Kind != "" && last.Kind != abi.NoticeCustom {
			t.Fatalf("%+v came after the end of %s", got, id)
		}
		if got.Kind == abi.NoticeCustom {
			n++
		}
		last = got
	}
	return n, last
}

// TestEvents delivers through a real inbox.
func TestEvents(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *background.Manager, *inbox.Box){
		"pattern_all_events_arrive_in_inbox": func(t *testing.T, m *background.Manager, box *inbox.Box) {
			t.Helper()
			id := spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) {
				task.Emit("one", "first")
				task.Emit("two", int64(2))
				return nil, nil
			})
			wait(t, m, "a")
			got := box.Drain()
			if len(got) != 3 || got[0].EventType != "one" || got[0].Payload != "first" || got[1].EventType != "two" || got[1].Payload != int64(2) || got[2].Kind != abi.NoticeCompleted {
				t.Fatalf("notices are %+v", got)
			}
			for _, n := range got {
				if n.TaskID != id {
					t.Fatalf("notice %+v does not carry the id %s", n, id)
				}
			}
		},
		"rapid_sequential_emits_no_loss": func(t *testing.T, m *background.Manager, box *inbox.Box) {
			t.Helper()
			id := spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) {
				for i := range 1000 {
					task.Emit("tick", int64(i))
				}
				return nil, nil
			})
			wait(t, m, "a")
			got := box.Drain()
			for i := range 1000 {
				if got[i].Payload != int64(i) {
					t.Fatalf("notice %d carries %v", i, got[i].Payload)
				}
			}
			if n, last := custom(t, got, id); n != 1000 || last.Kind != abi.NoticeCompleted {
				t.Fatalf("%d notifications, the last is %+v", n, last)
			}
		},
		"events_do_not_change_task_result": func(t *testing.T, m *background.Manager, _ *inbox.Box) {
			t.Helper()
			id := spawn(t, m, "a", func(_ context.Context, task *background.Task) (any, error) {
				task.Emit("failed", "not really")
				return int64(42), nil
			})
			wait(t, m, "a")
			if info := status(t, m, id); info.Status != background.Completed || info.Result != int64(42) {
				t.Fatalf("task is %+v", info)
			}
		},
		"inbox_events_accumulate_until_drained": func(t *testing.T, m *background.Manager, box *inbox.Box) {
			t.Helper()
			for range 3 {
				spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
				wait(t, m, "a")
			}
			if box.Len() != 3 || len(box.Drain()) != 3 || len(box.Drain()) != 0 {
				t.Fatal("the notices did not wait to be read, or were read twice")
			}
		},
		"multiple_tasks_share_same_inbox": func(t *testing.T, m *background.Manager, box *inbox.Box) {
			t.Helper()
			good := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return "yes", nil })
			bad := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, errors.New("no") })
			wait(t, m, "a")
			got := box.Drain()
			_, first := custom(t, got, good)
			_, second := custom(t, got, bad)
			if len(got) != 2 || first.Result != "yes" || second.Kind != abi.NoticeFailed || second.Error != "no" {
				t.Fatalf("notices are %+v", got)
			}
		},
		"cancel_during_emit_loop": func(t *testing.T, m *background.Manager, box *inbox.Box) {
			t.Helper()
			started := make(chan struct{})
			var once sync.Once
			id := spawn(t, m, "a", func(ctx context.Context, task *background.Task) (any, error) {
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for {
					task.Emit("tick", nil)
					once.Do(func() { close(started) })
					select {
					case <-tick.C:
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
			})
			<-started
			m.Cancel(id)
			wait(t, m, "a")
			if n, last := custom(t, box.Drain(), id); n == 0 || last.Kind != abi.NoticeCancelled {
				t.Fatalf("%d notifications, the last is %+v", n, last)
			}
		},
		"pattern_spawn_notify_wait_for_kill": func(t *testing.T, m *background.Manager, box *inbox.Box) {
			t.Helper()
			id := spawn(t, m, "a", func(ctx context.Context, task *background.Task) (any, error) {
				task.Emit("ready", nil)
				return untilCancelled(ctx, task)
			})
			if n, err := box.Recv(t.Context()); err != nil || n.EventType != "ready" {
				t.Fatalf("received %+v %v", n, err)
			}
			m.Cancel(id)
			if n, err := box.Recv(t.Context()); err != nil || n.Kind != abi.NoticeCancelled || n.TaskID != id {
				t.Fatalf("received %+v %v", n, err)
			}
		},
		"unnamed_task_addressable_by_id_only": func(t *testing.T, m *background.Manager, _ *inbox.Box) {
			t.Helper()
			id := spawn(t, m, "a", untilCancelled)
			if m.Cancel("") || m.Cancel("test") || !m.Cancel(id) {
				t.Fatal("the task answers to something that is not its id, or not to its id")
			}
		},
		"manager_multiple_concurrent_tasks": func(t *testing.T, m *background.Manager, box *inbox.Box) {
			t.Helper()
			var meet sync.WaitGroup // none passes before all have come
			meet.Add(5)
			for range 5 {
				spawn(t, m, "a", func(context.Context, *background.Task) (any, error) {
					meet.Done()
					meet.Wait()
					return nil, nil
				})
			}
			wait(t, m, "a")
			if n := len(box.Drain()); n != 5 {
				t.Fatalf("%d of 5 tasks were reported", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				box := inbox.NewBox(0, nil)
				m := newManager(t, background.Config{
					Ledger: into(box),
				})
				test(t, m, box)
				closeManager(t, m)
			})
		})
	}
}
