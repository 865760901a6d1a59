package background_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/background"
)

// sample is a record with every field set.
func sample() background.Info {
	return background.Info{
		ID: "bg_0", Thread: "t", Type: "shell", Name: "build", Description: "builds", Class: background.Detached,
		Status: background.Completed, Result: map[string]any{"lines": int64(1) << 60, "ok": true},
		CreatedAt: time.UnixMilli(1), EndedAt: time.UnixMilli(2),
		Parent: background.Lineage{TaskID: "bg_9", RunID: "r", CallID: "c", AgentID: "a"}, Attempt: 2,
	}
}

func roundtrip(t *testing.T, in background.Info) (background.Info, string) {
	t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out background.Info
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out, string(data)
}

func TestInfo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"task_status_terminal_check": func(t *testing.T) {
			t.Helper()
			for status, want := range map[background.Status]bool{
				background.Queued: false, background.Running: false,
				background.Completed: true, background.Failed: true, background.Cancelled: true,
			} {
				if status.Terminal() != want {
					t.Errorf("%s: terminal is %v", status, !want)
				}
			}
		},
		"task_status_as_str": func(t *testing.T) {
			t.Helper()
			got := []background.Status{background.Running, background.Completed, background.Failed, background.Cancelled}
			if !reflect.DeepEqual(got, []background.Status{"running", "completed", "failed", "cancelled"}) {
				t.Errorf("statuses are written %q", got)
			}
		},
		"persisted_task_meta_from_summary": func(t *testing.T) {
			t.Helper()
			inBubble(t, func(t *testing.T, m *background.Manager, l *ledger) {
				t.Helper()
				parent := background.Lineage{TaskID: "bg_9", RunID: "r", CallID: "c", AgentID: "a"}
				id, err := m.Spawn(t.Context(), background.Spec{
					Thread: "t", Type: "shell", Name: "build", Description: "builds", Class: background.Detached, Parent: parent,
					Body: func(context.Context, *background.Task) (any, error) { return nil, errors.New("disk full") },
				})
				if err != nil {
					t.Fatal(err)
				}
				wait(t, m, "t")
				synctest.Wait()
				summary := status(t, m, id)
				kept := l.kept(t, "t", id)
				want := background.Info{
					ID: id, Thread: "t", Type: "shell", Name: "build", Description: "builds", Class: background.Detached, Parent: parent,
					Status: background.Failed, Error: "disk full", CreatedAt: summary.CreatedAt, EndedAt: summary.EndedAt, Attempt: 1,
				}
				if summary.CreatedAt.IsZero() || summary.EndedAt.IsZero() || !reflect.DeepEqual(summary, want) {
					t.Errorf("the summary is %+v, want %+v", summary, want)
				}
				if !kept.CreatedAt.Equal(want.CreatedAt) || !kept.EndedAt.Equal(want.EndedAt) {
					t.Errorf("the times that are kept are %v and %v", kept.CreatedAt, kept.EndedAt)
				}
				kept.CreatedAt, kept.EndedAt = want.CreatedAt, want.EndedAt
				if !reflect.DeepEqual(kept, want) {
					t.Errorf("what is kept is %+v, want %+v", kept, want)
				}
			})
		},
		"persisted_task_meta_serde_roundtrip": func(t *testing.T) {
			t.Helper()
			got, text := roundtrip(t, sample())
			if !reflect.DeepEqual(got, sample()) {
				t.Errorf("read back %+v", got)
			}
			for _, want := range []string{
				`"task_id":"bg_0"`, `"owner_thread_id":"t"`, `"task_type":"shell"`, `"name":"build"`, `"description":"builds"`,
				`"status":"completed"`, `"created_at_ms":1`, `"completed_at_ms":2`, `"task_id":"bg_9"`,
			} {
				if !strings.Contains(text, want) {
					t.Errorf("%s is not in %s", want, text)
				}
			}
		},
		"task_summary_serde_roundtrip": func(t *testing.T) {
			t.Helper()
			in := sample()
			in.Status, in.Result, in.Error, in.Name = background.Failed, nil, "no", ""
			if got, _ := roundtrip(t, in); !reflect.DeepEqual(got, in) {
				t.Errorf("read back %+v", got)
			}
		},
		"persisted_task_meta_result_field_roundtrip": func(t *testing.T) {
			t.Helper()
			for _, result := range []any{"text", int64(7), 1.5, true, []any{"a", int64(1)}, map[string]any{"k": nil}} {
				in := sample()
				in.Result = result
				if got, _ := roundtrip(t, in); !reflect.DeepEqual(got.Result, result) {
					t.Errorf("%#v came back as %#v", result, got.Result)
				}
			}
		},
		"persisted_task_meta_result_none_omitted_in_json": func(t *testing.T) {
			t.Helper()
			in := sample()
			in.Result = nil
			if _, text := roundtrip(t, in); strings.Contains(text, `"result"`) || strings.Contains(text, `"error"`) {
				t.Errorf("fields without a value are written: %s", text)
			}
		},
		"persisted_task_meta_with_parent_context_serde_roundtrip": func(t *testing.T) {
			t.Helper()
			if got, _ := roundtrip(t, sample()); got.Parent != sample().Parent {
				t.Errorf("lineage came back as %+v", got.Parent)
			}
		},
		"persisted_task_meta_without_parent_context_deserializes_default": func(t *testing.T) {
			t.Helper()
			var got background.Info
			err := json.Unmarshal([]byte(`{"task_id":"bg_1","task_type":"shell","description":"d","created_at_ms":1}`), &got)
			if err != nil || !got.Parent.IsZero() || got.Status != background.Running || got.Class != background.Blocking {
				t.Errorf("read %+v, %v", got, err)
			}
		},
		"task_parent_context_is_empty": func(t *testing.T) {
			t.Helper()
			if !(background.Lineage{}).IsZero() {
				t.Error("an empty lineage is not empty")
			}
			for _, l := range []background.Lineage{{TaskID: "x"}, {RunID: "x"}, {CallID: "x"}, {AgentID: "x"}} {
				if l.IsZero() {
					t.Errorf("%+v is empty", l)
				}
			}
		},
		"task_summary_with_empty_parent_context_omits_field_in_json": func(t *testing.T) {
			t.Helper()
			in := sample()
			in.Parent = background.Lineage{}
			if _, text := roundtrip(t, in); strings.Contains(text, "parent_context") {
				t.Errorf("an empty lineage is written: %s", text)
			}
		},
		"task_summary_with_parent_context_includes_field_in_json": func(t *testing.T) {
			t.Helper()
			in := sample()
			in.Parent = background.Lineage{RunID: "r"}
			if _, text := roundtrip(t, in); !strings.Contains(text, `"parent_context":{"run_id":"r"}`) {
				t.Errorf("the lineage is not written as it should be: %s", text)
			}
		},
		"record_without_id_is_refused": func(t *testing.T) {
			t.Helper()
			var got background.Info
			if err := json.Unmarshal([]byte(`{"task_type":"x"}`), &got); err == nil {
				t.Error("a record without an id was read")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// TestTaskResultStatus shows how each way to return ends a task.
func TestTaskResultStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Ledger: l})
		good := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return "x", nil })
		bad := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, errors.New("x") })
		gone := spawn(t, m, "a", untilCancelled)
		m.Cancel(gone)
		wait(t, m, "a")
		for id, want := range map[string]background.Status{good: background.Completed, bad: background.Failed, gone: background.Cancelled} {
			if got := status(t, m, id).Status; got != want {
				t.Errorf("status is %s, want %s", got, want)
			}
		}
		closeManager(t, m)
	})
}

// FuzzInfo reads records that another program may have written.
func FuzzInfo(f *testing.F) {
	data, err := json.Marshal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"task_id":"x","created_at_ms":-9223372036854775808,"result":[[[[1e999]]]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var info background.Info
		if json.Unmarshal(data, &info) != nil {
			return
		}
		again, err := json.Marshal(info)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		var second background.Info
		if err := json.Unmarshal(again, &second); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, again)
		}
	})
}
