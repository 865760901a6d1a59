package inbox_test

import (
	"context"
	"errors"
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

// TestTasks has the behaviours of the notification store that the design takes
// over, by their names there.
func TestTasks(t *testing.T) {
	t.Parallel()
	each(t, background.Config{Limits: background.Limits{Keep: 32}}, map[string]func(*testing.T, *desk){
		"insert_then_get_returns_running": func(t *testing.T, d *desk) {
			t.Helper()
			if info := d.info(t, d.start(t, hanging)); info.Status != background.Running {
				t.Fatalf("task is %+v", info)
			}
		},
		"get_on_missing_returns_none": func(t *testing.T, d *desk) {
			t.Helper()
			if info, ok := d.Get("t404"); ok {
				t.Fatalf("task is %+v", info)
			}
		},
		"cancel_all_aborts_in_flight_tasks": func(t *testing.T, d *desk) {
			t.Helper()
			aborted := make(chan struct{})
			d.end(t, "done before")
			id := d.start(t, func(ctx context.Context, _ *background.Task) (any, error) {
				<-ctx.Done()
				close(aborted)
				return nil, ctx.Err()
			})
			if n := d.CancelAll("a"); n != 1 {
				t.Fatalf("%d of 1 were asked to end", n)
			}
			<-aborted
			synctest.Wait()
			list := d.read(t)
			if d.info(t, id).Status != background.Cancelled || len(list) != 2 || list[0].Result != "done before" || list[1].Kind != abi.NoticeCancelled {
				t.Fatalf("notifications are %+v", list)
			}
		},
		"regression_get_is_read_only_after_completion": func(t *testing.T, d *desk) {
			t.Helper()
			id := d.end(t, "kept")[0]
			for range 3 {
				if d.info(t, id).Result != "kept" || len(d.List("a")) != 1 {
					t.Fatalf("task is %+v", d.info(t, id))
				}
			}
		},
		"notify_pushes_completed_to_pending_queue": func(t *testing.T, d *desk) {
			t.Helper()
			id := d.end(t, "x")[0]
			if list := take(t, d.out).Notifications(); len(list) != 1 || list[0].TaskID != id || list[0].Kind != abi.NoticeCompleted {
				t.Fatalf("notifications are %+v", list)
			}
		},
		"regression_notify_relays_large_completed_payload": func(t *testing.T, d *desk) {
			t.Helper()
			id := d.end(t, strings.Repeat("line\n", 5000))[0]
			stored, _ := d.info(t, id).Result.(string)
			_, rest, _ := strings.Cut(stored, "stored as ")
			handle, _, _ := strings.Cut(rest, ". Use")
			page, err := d.blobs.Read(t.Context(), "a", handle, 0, 5)
			if err != nil || page.Text != "line\n" || !strings.Contains(stored, "`read_output`") || len(stored) > 2000 {
				t.Fatalf("stored is %q", stored)
			}
		},
		"regression_notify_truncates_failed_error": func(t *testing.T, d *desk) {
			t.Helper()
			text := d.info(t, d.end(t, errors.New(strings.Repeat("e", 6000)))[0]).Error
			if head, mark, _ := strings.Cut(text, "\n"); head != strings.Repeat("e", 3000) || !strings.Contains(mark, "truncated: dropped 3000 of 6000 bytes") {
				t.Fatalf("error is %q", text)
			}
		},
		"small_completed_payload_passes_through_relay_verbatim": func(t *testing.T, d *desk) {
			t.Helper()
			const text = "a < b &\n  tabs\tand é\n"
			id := d.end(t, text)[0]
			if list := d.read(t); d.info(t, id).Result != text || list[0].Result != text {
				t.Fatalf("stored is %q, told %q", d.info(t, id).Result, list[0].Result)
			}
		},
		"notify_on_missing_id_is_noop": func(t *testing.T, d *desk) {
			t.Helper()
			tasks := make(chan *background.Task, 1)
			d.start(t, func(_ context.Context, task *background.Task) (any, error) { tasks <- task; return nil, nil })
			synctest.Wait()
			d.read(t)
			for range 33 { // it is forgotten
				d.end(t, "x")
				d.read(t)
			}
			if (<-tasks).Emit("late", nil) || d.out.Waiting("a") != 0 {
				t.Fatal("a task that is not there any more reported")
			}
			if _, ok := d.Get("t0"); ok {
				t.Fatal("the task is there again")
			}
		},
		"notify_with_running_state_is_noop": func(t *testing.T, d *desk) {
			t.Helper()
			id := d.start(t, hanging)
			if err := d.out.Commit(t.Context(), "a", id, []byte(`{"status":"running"}`), nil); err != nil {
				t.Fatal(err)
			}
			if d.out.Waiting("a") != 0 || d.info(t, id).Status != background.Running {
				t.Fatal("a task that runs was notified of")
			}
			// The record of a running task is kept, and wakes no run, however long it runs.
			records, err := d.out.Records(t.Context(), "a")
			if err != nil || !strings.Contains(string(records[id]), `"status":"running"`) {
				t.Fatalf("records are %s, %v", records, err)
			}
			<-time.After(background.DefaultGrace)
			synctest.Wait()
			got := take(t, d.out)
			defer got.Release()
			if n := len(notices(got)); n != 0 || d.out.Waiting("a") != 0 {
				t.Fatalf("%d notifications of a task that runs", n)
			}
		},
		"regression_double_notify_enqueues_once": func(t *testing.T, d *desk) {
			t.Helper()
			goOn := make(chan struct{})
			id := d.start(t, func(context.Context, *background.Task) (any, error) { <-goOn; return "second", nil })
			d.Cancel(id)
			<-time.After(background.DefaultGrace) // abandoned: that is the first end
			synctest.Wait()
			first := d.info(t, id)
			close(goOn)
			synctest.Wait()
			late := completed(id, "second")
			if err := d.out.Commit(t.Context(), "a", id, []byte("{}"), &late); err != nil {
				t.Fatal(err)
			}
			list := d.read(t)
			if len(list) != 1 || list[0].Error != first.Error || d.info(t, id).Status != background.Failed || first.Status != background.Failed {
				t.Fatalf("notifications are %+v, the task %+v", list, d.info(t, id))
			}
			if err := d.out.Commit(t.Context(), "a", id, []byte("{}"), &late); err != nil || d.out.Waiting("a") != 0 {
				t.Fatal("after it was read a second end came")
			}
		},
		"drain_returns_pending_then_empties_queue": func(t *testing.T, d *desk) {
			t.Helper()
			ids := d.end(t, "one", errors.New("two"))
			list := d.read(t)
			if len(list) != 2 || list[0].TaskID != ids[0] || list[0].Result != "one" || list[1].TaskID != ids[1] || list[1].Error != "two" {
				t.Fatalf("notifications are %+v", list)
			}
			if again := d.read(t); len(again) != 0 || d.info(t, ids[0]).Result != "one" || d.info(t, ids[1]).Error != "two" {
				t.Fatalf("read again: %+v", again)
			}
		},
		"drain_is_empty_when_nothing_pending": func(t *testing.T, d *desk) {
			t.Helper()
			if list := d.read(t); len(list) != 0 {
				t.Fatalf("notifications are %+v", list)
			}
		},
		"regression_lru_evicts_oldest_at_capacity": func(t *testing.T, d *desk) {
			t.Helper()
			var all []string
			for range 33 {
				all = append(all, d.end(t, "x")...)
			}
			if len(d.List("a")) != 33 {
				t.Fatal("what is not used yet was forgotten")
			}
			d.read(t)
			_, first := d.Get(all[0])
			_, last := d.Get(all[32])
			if len(d.List("a")) != 32 || first || !last {
				t.Fatalf("%d are kept, the first: %v, the last: %v", len(d.List("a")), first, last)
			}
		},
		"regression_notify_on_evicted_id_is_noop": func(t *testing.T, d *desk) {
			t.Helper()
			goOn := make(chan struct{})
			oldest := d.start(t, func(context.Context, *background.Task) (any, error) { <-goOn; return "late", nil })
			for range 40 {
				d.end(t, "x")
				d.read(t)
			}
			if d.info(t, oldest).Status != background.Running {
				t.Fatal("a running task was forgotten")
			}
			close(goOn)
			synctest.Wait()
			if list := d.read(t); len(list) != 1 || list[0].Result != "late" {
				t.Fatalf("notifications are %+v", list)
			}
		},
		"clones_share_state": func(t *testing.T, d *desk) {
			t.Helper()
			one, err := d.Tools(background.ToolsConfig{Thread: "a"})
			if err != nil {
				t.Fatal(err)
			}
			two, err := d.Tools(background.ToolsConfig{Thread: "a"})
			if err != nil {
				t.Fatal(err)
			}
			ctx := background.WithLineage(t.Context(), background.Lineage{RunID: "run"})
			id, err := d.Spawn(ctx, background.Spec{Thread: "a", Type: "x", Body: hanging})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = one.CallTool(ctx, abi.ToolCall{Name: "cancel_task", Arguments: map[string]any{"target": map[string]any{"relation": "child", "name": id}}})
			synctest.Wait()
			r, _ := two.CallTool(ctx, abi.ToolCall{Name: "task_result", Arguments: map[string]any{"task_id": id}})
			if list := d.read(t); len(list) != 1 || !strings.HasSuffix(r.Content[0].Text, "state: cancelled") {
				t.Fatalf("notifications are %+v, result %+v", list, r)
			}
		},
		"regression_drain_returns_snapshotted_state_after_eviction": func(t *testing.T, d *desk) {
			t.Helper()
			for range 8*32 + 1 {
				d.end(t, "kept text")
			}
			if _, ok := d.Get("t0"); ok {
				t.Fatal("memory is not bounded: nothing was dropped")
			}
			if list := take(t, d.out).Notifications(); list[0].TaskID != "t0" || list[0].Result != "kept text" {
				t.Fatalf("notifications are %+v", list[0])
			}
		},
		"concurrent_inserts_and_notifies": func(t *testing.T, d *desk) {
			t.Helper()
			var wg sync.WaitGroup
			for i := range 32 {
				wg.Go(func() { d.start(t, func(context.Context, *background.Task) (any, error) { return int64(i), nil }) })
			}
			wg.Wait()
			synctest.Wait()
			seen := map[any]bool{}
			for _, n := range d.read(t) {
				seen[n.Result] = true
			}
			if len(seen) != 32 || d.out.Waiting("a") != 0 {
				t.Fatalf("%d of 32 came", len(seen))
			}
		},
	})
}

// TestReinsert gives a task an id that is taken.
func TestReinsert(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		next := sequence()
		same := false
		d := newDesk(t, background.Config{Limits: background.Limits{Keep: 32}, NewID: func() string {
			if same {
				return "t5"
			}
			return next()
		}})
		for range 32 {
			d.end(t, "x")
		}
		d.read(t)
		same = true
		_, err := d.Spawn(t.Context(), background.Spec{Thread: "a", Type: "x", Body: hanging})
		if err == nil || len(d.List("a")) != 32 || d.info(t, "t0").Result != "x" || d.info(t, "t5").Status != background.Completed {
			t.Fatalf("error is %v, task %+v", err, d.info(t, "t5"))
		}
		if err := d.Manager.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		closeInbox(t, d.out)
	})
}

// TestObserver has the behaviours of the channel to a user interface.
func TestObserver(t *testing.T) {
	t.Parallel()
	each(t, background.Config{Limits: background.Limits{Keep: 1}}, map[string]func(*testing.T, *desk){
		"ui_sink_receives_completion_event": func(t *testing.T, d *desk) {
			t.Helper()
			id := d.end(t, "x")[0]
			if got := d.finished(); len(got) != 1 || got[0].ID != id || got[0].Status != background.Completed || got[0].Result != "x" {
				t.Fatalf("observed %+v", got)
			}
		},
		"ui_sink_receives_failure_event": func(t *testing.T, d *desk) {
			t.Helper()
			id := d.end(t, errors.New("no"))[0]
			if got := d.finished(); len(got) != 1 || got[0].ID != id || got[0].Status != background.Failed || got[0].Error != "no" {
				t.Fatalf("observed %+v", got)
			}
		},
		"ui_sink_event_carries_relayed_payload": func(t *testing.T, d *desk) {
			t.Helper()
			text := strings.Repeat("line\n", 5000)
			d.end(t, text)
			if got, _ := d.finished()[0].Result.(string); len(got) > len(text)/2 || !strings.Contains(got, "`read_output`") {
				t.Fatalf("observed %q", got)
			}
		},
		"ui_sink_does_not_receive_running_state": func(t *testing.T, d *desk) {
			t.Helper()
			d.start(t, func(ctx context.Context, task *background.Task) (any, error) {
				task.Emit("running", nil)
				return hanging(ctx, task)
			})
			synctest.Wait()
			if got := d.finished(); len(got) != 0 {
				t.Fatalf("observed %+v", got)
			}
		},
		"ui_sink_no_event_for_evicted_id": func(t *testing.T, d *desk) {
			t.Helper()
			goOn := make(chan struct{})
			id := d.start(t, func(context.Context, *background.Task) (any, error) { <-goOn; return nil, nil })
			d.Cancel(id)
			<-time.After(background.DefaultGrace)
			synctest.Wait()
			d.read(t)
			d.end(t, "x", "y")
			d.read(t)
			before := len(d.finished())
			if _, ok := d.Get(id); ok || before != 3 {
				t.Fatalf("the task is not forgotten, or %d ends were observed", before)
			}
			close(goOn)
			synctest.Wait()
			if after := len(d.finished()); after != before || d.out.Waiting("a") != 0 {
				t.Fatal("a body that was abandoned and forgotten was observed again")
			}
		},
		"notify_started_fires_only_on_ui_sink": func(t *testing.T, d *desk) {
			t.Helper()
			id := d.start(t, hanging)
			synctest.Wait()
			if len(d.seen) != 1 || d.seen[0].Kind != background.EventStarted || d.seen[0].Task.ID != id || len(d.read(t)) != 0 {
				t.Fatalf("observed %+v", d.seen)
			}
		},
	})
	for name, observe := range map[string]func(background.Event){
		"notify_started_with_no_ui_sink_is_noop":        nil,
		"ui_sink_send_after_receiver_dropped_is_silent": func(background.Event) { panic("send on closed channel") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newInbox(t, inbox.Config{})
				m, err := background.New(background.Config{Ledger: o, Observe: observe})
				if err != nil {
					t.Fatal(err)
				}
				d := &desk{Manager: m, out: o}
				d.end(t, "x")
				if list := d.read(t); len(list) != 1 || list[0].Result != "x" {
					t.Fatalf("notifications are %+v", list)
				}
				if err := m.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				closeInbox(t, o)
			})
		})
	}
}

// TestRecordsDoNotPileUp runs several managers one after the other on one outbox:
// whatever they acknowledged is forgotten, also by those that come later.
func TestRecordsDoNotPileUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		for life := range 5 {
			var m *background.Manager
			o := newInbox(t, inbox.Config{Store: store, Acknowledged: func(ctx context.Context, thread string, ids ...string) { m.Acknowledge(ctx, thread, ids...) }})
			var err error
			m, err = background.New(background.Config{Ledger: o, Limits: background.Limits{Keep: 2}})
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			d := &desk{Manager: m, out: o}
			for range 8*2 + 5 { // more than memory keeps of what is not acknowledged
				d.end(t, "x")
			}
			if unread, err := o.Unread(t.Context(), "a"); err != nil || len(unread) != 21 {
				t.Fatalf("life %d: %d unread, %v", life, len(unread), err)
			}
			d.read(t)
			if records, err := o.Records(t.Context(), "a"); err != nil || len(records) > 2 {
				t.Fatalf("life %d: %d records are left, %v", life, len(records), err)
			}
			if err := m.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			closeInbox(t, o)
		}
	})
}
