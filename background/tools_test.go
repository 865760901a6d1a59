package background_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
)

type args = map[string]any

// call uses a tool of thread "a".
func call(t *testing.T, ctx context.Context, m *background.Manager, tool string, arguments any) abi.ToolResult { //nolint:revive // t first, as in every helper
	t.Helper()
	return callAs(t, ctx, m, background.ToolsConfig{Thread: "a", Agent: "me"}, tool, arguments)
}

func callAs(t *testing.T, ctx context.Context, m *background.Manager, cfg background.ToolsConfig, tool string, arguments any) abi.ToolResult { //nolint:revive // t first, as in every helper
	t.Helper()
	tools, err := m.Tools(cfg)
	if err != nil {
		t.Fatal(err)
	}
	result, err := tools.CallTool(ctx, abi.ToolCall{ID: "c1", Name: tool, Arguments: arguments})
	if err != nil || result.CallID != "c1" || result.ToolName != tool {
		t.Fatalf("result is %+v, %v", result, err)
	}
	return result
}

// receiptOf checks fields of a result's data.
func receiptOf(t *testing.T, r abi.ToolResult, want args) {
	t.Helper()
	data, _ := r.Data.(map[string]any)
	for k, v := range want {
		if data[k] != v {
			t.Fatalf("%s is %v, want %v, in %+v", k, data[k], v, r)
		}
	}
}

func target(relation, name string) args {
	return args{"target": args{"relation": relation, "name": name}}
}

func TestCancelTool(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *background.Manager, *ledger){
		"self_cancel_cascades_to_descendants": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			ids := grown(t, m)
			ctx := background.WithLineage(t.Context(), background.Lineage{TaskID: ids[0]})
			receiptOf(t, call(t, ctx, m, "cancel_task", target("self", "")), args{"status": "accepted", "root_task_id": ids[0], "cancelled_count": int64(3)})
		},
		"self_cancel_from_run_context_cascades_run_children": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			ctx := background.WithLineage(t.Context(), background.Lineage{RunID: "run"})
			if _, err := m.Spawn(ctx, background.Spec{Thread: "a", Type: "x", Body: untilCancelled}); err != nil {
				t.Fatal(err)
			}
			stopped := ""
			cfg := background.ToolsConfig{Thread: "a", Stop: func(run string) { stopped = run }}
			receiptOf(t, callAs(t, ctx, m, cfg, "cancel_task", target("self", "")), args{"status": "accepted", "cancelled_count": int64(2)})
			if stopped != "run" {
				t.Fatalf("run %q was stopped", stopped)
			}
		},
		"self_cancel_without_task_context_fails": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			if r := call(t, t.Context(), m, "cancel_task", target("self", "")); r.Status != abi.ToolError || r.Message != "current_task_unavailable" {
				t.Fatalf("result is %+v", r)
			}
		},
		"child_by_name_and_by_id_only_direct_ones": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			ids := grown(t, m)
			ctx := background.WithLineage(t.Context(), background.Lineage{TaskID: ids[0]})
			receiptOf(t, call(t, ctx, m, "cancel_task", target("child", ids[2])), args{"status": "failed", "error": "task_not_found", "cancelled_count": int64(0)})
			named, err := m.Spawn(ctx, background.Spec{Thread: "a", Type: "x", Name: "kid", Body: untilCancelled})
			if err != nil {
				t.Fatal(err)
			}
			receiptOf(t, call(t, ctx, m, "cancel_task", target("child", "kid")), args{"status": "accepted", "root_task_id": named, "cancelled_count": int64(1)})
			receiptOf(t, call(t, ctx, m, "cancel_task", target("child", ids[1])), args{"status": "accepted", "root_task_id": ids[1], "cancelled_count": int64(2)})
		},
		"arguments": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			ctx := background.WithLineage(t.Context(), background.Lineage{RunID: "run"})
			for want, arguments := range map[string]any{
				"missing 'target'":          args{},
				"missing 'target.relation'": args{"target": args{}},
				"child requires 'name'":     target("child", ""),
				"unknown relation 'aunt'":   target("aunt", ""),
				"want an object":            "not json",
			} {
				if r := call(t, ctx, m, "cancel_task", arguments); r.Status != abi.ToolError || !strings.Contains(r.Message, want) {
					t.Fatalf("result is %+v, want %q", r, want)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, test)
		})
	}
}

func TestSendTool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		var sent []background.Message
		m := newManager(t, background.Config{Ledger: l, Forward: func(_ context.Context, message background.Message) (string, error) {
			if message.Thread == "broken" {
				return "", errors.New("no route")
			}
			sent = append(sent, message)
			return fmt.Sprint("dispatch_", len(sent)), nil
		}})
		spec := background.Spec{Thread: "a", Name: "kid"}
		kid, err := m.SpawnAgent(t.Context(), spec, echo(2))
		if err != nil {
			t.Fatal(err)
		}
		foreign := agent(t, m, "b", echo(1))
		plain := spawn(t, m, "a", untilCancelled)
		send := func(to args) abi.ToolResult {
			return call(t, t.Context(), m, "send_message", args{"to": to, "message": "hello"})
		}
		child := func(name string) abi.ToolResult { return send(args{"relation": "child", "name": name}) }
		receiptOf(t, child("kid"), args{"status": "accepted"})
		receiptOf(t, child(kid), args{"status": "accepted"})
		receiptOf(t, child(foreign), args{"status": "failed", "error": "permission_denied"})
		receiptOf(t, child("nobody"), args{"status": "failed", "error": "recipient_not_found"})
		receiptOf(t, child(plain), args{"status": "failed", "error": "recipient_unavailable"})
		receiptOf(t, send(args{"relation": "parent"}), args{"status": "failed", "error": "recipient_unavailable"})
		receiptOf(t, send(args{"relation": "agent", "thread_id": "z", "agent_id": "q"}), args{"status": "accepted", "message_id": "dispatch_1"})
		receiptOf(t, send(args{"relation": "agent", "thread_id": "broken"}), args{"status": "failed", "error": "transport_failed: no route"})
		parent := background.ToolsConfig{Thread: "a", Agent: "me", ParentThread: "p"}
		receiptOf(t, callAs(t, t.Context(), m, parent, "send_message", args{"to": args{"relation": "parent"}, "message": ""}), args{"status": "accepted", "message_id": "dispatch_2"})
		if len(sent) != 2 || sent[0] != (background.Message{Thread: "z", Agent: "q", From: "me", Content: "hello"}) || sent[1].Thread != "p" {
			t.Fatalf("sent %+v", sent)
		}
		m.CancelAll("a")
		m.CancelAll("b")
		wait(t, m, "a")
		receiptOf(t, child(kid), args{"status": "failed", "error": "recipient_not_found"})
		for want, arguments := range map[string]any{
			"missing 'to'": args{"message": "x"}, "missing 'to.relation'": args{"to": args{}, "message": "x"},
			"missing 'message'": args{"to": args{"relation": "parent"}}, "agent requires 'thread_id'": args{"to": args{"relation": "agent"}, "message": "x"},
			"child requires 'name'": args{"to": args{"relation": "child"}, "message": "x"}, "unknown relation 'x'": args{"to": args{"relation": "x"}, "message": "x"},
			"at most": args{"to": args{"relation": "parent"}, "message": strings.Repeat("x", background.DefaultMaxPayload+1)},
		} {
			if r := call(t, t.Context(), m, "send_message", arguments); r.Status != abi.ToolError || !strings.Contains(r.Message, want) {
				t.Fatalf("result is %+v, want %q", r, want)
			}
		}
		closeManager(t, m)
	})
}

func text(r abi.ToolResult) string {
	if len(r.Content) == 0 {
		return r.Message
	}
	return r.Content[0].Text
}

func TestReadTools(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *background.Manager, _ *ledger) {
		t.Helper()
		goOn := make(chan struct{})
		slow := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { <-goOn; return "the answer", nil })
		bad := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, errors.New("no") })
		foreign := spawn(t, m, "b", untilCancelled)
		hidden := housekeep(t, m, untilCancelled)
		synctest.Wait()
		result := func(id string) abi.ToolResult { return call(t, t.Context(), m, "task_result", args{"task_id": id}) }
		if got := text(result(slow)); got != "task_id: "+slow+"\nstate: running" {
			t.Fatalf("running: %q", got)
		}
		if got := text(result(bad)); got != "task_id: "+bad+"\nstate: failed\n\nerror: no" {
			t.Fatalf("failed: %q", got)
		}
		for _, id := range []string{foreign, hidden, "bg_404", ""} {
			if r := result(id); r.Status != abi.ToolError || !strings.Contains(r.Message, "task not found: "+id+" (either it never existed") {
				t.Fatalf("%q: %+v", id, r)
			}
		}
		listed, _ := call(t, t.Context(), m, "list_tasks", nil).Data.(map[string]any)
		if list, _ := listed["tasks"].([]any); len(list) != 2 {
			t.Fatalf("listed %+v", listed)
		}
		start := time.Now()
		got := text(call(t, t.Context(), m, "wait_task", args{"task_id": slow, "timeout_seconds": int64(5)}))
		if !strings.HasPrefix(got, "task_id: "+slow+"\nstate: running\n\nnot ended within 5s") || time.Since(start) != 5*time.Second {
			t.Fatalf("waited %s: %q", time.Since(start), got)
		}
		time.AfterFunc(time.Second, func() { close(goOn) })
		if got := text(call(t, t.Context(), m, "wait_task", args{})); got != "task_id: "+slow+"\nstate: completed\n\nthe answer" {
			t.Fatalf("waited for all: %q", got)
		}
		if got := text(call(t, t.Context(), m, "wait_task", args{"timeout_seconds": 1e300})); got != "no background task is running" {
			t.Fatalf("waited for nothing: %q", got)
		}
	})
}

func TestToolsAreDescribed(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	m := newManager(t, background.Config{Ledger: l})
	if _, err := m.Tools(background.ToolsConfig{}); err == nil || !strings.Contains(err.Error(), "Thread") {
		t.Fatalf("error is %v", err)
	}
	tools, err := m.Tools(background.ToolsConfig{Thread: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools() {
		schema, _ := tool.Parameters.(map[string]any)
		if tool.Description == "" || schema["type"] != "object" {
			t.Errorf("%s is not described", tool.Name)
		}
		if r, err := tools.CallTool(t.Context(), abi.ToolCall{Name: tool.Name}); err != nil || r.Status == "" {
			t.Errorf("%s without arguments: %+v, %v", tool.Name, r, err)
		}
	}
	if _, err := tools.CallTool(t.Context(), abi.ToolCall{Name: "rm"}); err == nil {
		t.Error("an unknown tool was called")
	}
	closeManager(t, m)
}
