package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
)

// shelf keeps notifications until they are done, and counts.
type shelf struct {
	list       []abi.Notice
	takes      int
	released   int
	takeFails  error
	doneFails  error
	doneCalled [][]string
}

func (s *shelf) take(context.Context, string) (agent.Delivery, error) {
	s.takes++
	if s.takeFails != nil {
		return nil, s.takeFails
	}
	return s, nil
}

func (s *shelf) All() iter.Seq2[string, abi.Notice] {
	list := slices.Clone(s.list)
	return func(yield func(string, abi.Notice) bool) {
		for _, n := range list {
			if !yield("key of "+n.TaskID, n) {
				return
			}
		}
	}
}

func (s *shelf) Done(_ context.Context, keys ...string) error {
	s.doneCalled = append(s.doneCalled, keys)
	if s.doneFails != nil {
		return s.doneFails
	}
	s.list = slices.DeleteFunc(s.list, func(n abi.Notice) bool { return slices.Contains(keys, "key of "+n.TaskID) })
	return nil
}

func (s *shelf) Release() { s.released++ }

func TestUntakenStays(t *testing.T) {
	t.Parallel()
	s := &shelf{list: []abi.Notice{{Kind: abi.NoticeCompleted, TaskID: "bg_1"}}, takeFails: errors.New("disk on fire")}
	b := newBench(t, &script{answers: []abi.Message{says("ok")}}, agent.Config{Notifications: agent.Notifications{Take: s.take}})
	r := mustRun(t, b, request(user("go")))
	if r.Status != agent.StatusDone || s.takes != 2 || len(s.list) != 1 || len(b.agent.Thread("t").Messages()) != 2 {
		t.Errorf("%+v after %d takes: %q", r, s.takes, texts(b.agent.Thread("t").Messages()))
	}
}

// TestUnacknowledgedComesAgain: it is not written a second time, and the model is not asked
// about it a second time.
func TestUnacknowledgedComesAgain(t *testing.T) {
	t.Parallel()
	s := &shelf{list: []abi.Notice{{Kind: abi.NoticeCompleted, TaskID: "bg_1", Result: "x"}}, doneFails: errors.New("disk on fire")}
	store := agent.NewMemory()
	b := newBench(t, &script{answers: []abi.Message{says("ok")}}, agent.Config{Notifications: agent.Notifications{Take: s.take}, Checkpoints: store})
	mustRun(t, b, request(user("go")))
	c, _, err := store.LoadThread(t.Context(), "t")
	if err != nil || len(c.Taken) != 1 || !c.Taken["key of bg_1"] {
		t.Errorf("the checkpoint holds %v, %v", c.Taken, err)
	}
	// In another process.
	next := newBench(t, &script{answers: []abi.Message{says("more")}}, agent.Config{Notifications: agent.Notifications{Take: s.take}, Checkpoints: store})
	s.doneFails = nil
	mustRun(t, next, agent.Request{ThreadID: "t", Mode: abi.RunInternalWake})
	if len(next.model.requests) != 0 || len(s.list) != 0 {
		t.Errorf("asked %d times, %d notifications are left", len(next.model.requests), len(s.list))
	}
	mustRun(t, next, request(user("more")))
	all := strings.Join(texts(next.agent.Thread("t").Messages()), "\n")
	if strings.Count(all, "<background-task-event") != 1 || s.released == 0 {
		t.Errorf("the log is %s", all)
	}
	if c, _, _ := store.LoadThread(t.Context(), "t"); len(c.Taken) != 0 {
		t.Errorf("the checkpoint still holds %v", c.Taken)
	}
}

// TestDeliveryOfAnotherProcess: a process whose queue has nothing runs the thread in between, and the first one,
// which could not acknowledge its notification, delivers it again: it is not written a second time.
func TestDeliveryOfAnotherProcess(t *testing.T) {
	t.Parallel()
	s := &shelf{list: []abi.Notice{{Kind: abi.NoticeCompleted, TaskID: "bg_1", Result: "x"}}, doneFails: errors.New("killed")}
	store := agent.NewMemory()
	mustRun(t, newBench(t, &script{answers: []abi.Message{says("one")}}, agent.Config{Notifications: agent.Notifications{Take: s.take}, Checkpoints: store}), request(user("go")))
	other := newBench(t, &script{answers: []abi.Message{says("two")}}, agent.Config{Notifications: agent.Notifications{Take: new(shelf).take}, Checkpoints: store})
	mustRun(t, other, request(user("more")))
	s.doneFails = nil
	back := newBench(t, &script{answers: []abi.Message{says("three")}}, agent.Config{Notifications: agent.Notifications{Take: s.take}, Checkpoints: store})
	mustRun(t, back, request(user("again")))
	all := strings.Join(texts(back.agent.Thread("t").Messages()), "\n")
	if strings.Count(all, "<background-task-event") != 1 || len(s.list) != 0 {
		t.Errorf("%d notifications are left, the log is %s", len(s.list), all)
	}
}

// TestKeysAreForgottenInTheEnd: keys that never come again do not pile up without bound.
func TestKeysAreForgottenInTheEnd(t *testing.T) {
	t.Parallel()
	store := agent.NewMemory()
	keys := map[string]bool{}
	for i := range 1001 {
		keys[fmt.Sprint("old ", i)] = true
	}
	if err := store.SaveCheckpoint(t.Context(), agent.Checkpoint{Run: agent.Record{ThreadID: "t", RunID: "r", Status: agent.StatusDone}, Taken: keys}); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, &script{answers: []abi.Message{says("ok")}}, agent.Config{Notifications: agent.Notifications{Take: new(shelf).take}, Checkpoints: store})
	mustRun(t, b, request(user("go")))
	if c, _, err := store.LoadThread(t.Context(), "t"); err != nil || len(c.Taken) != 0 {
		t.Errorf("the checkpoint holds %d keys, %v", len(c.Taken), err)
	}
}

// TestStoredAndDeliveredTogether: what was delivered and what is kept come to one log,
// housekeeping only to the plugins, messages as they are.
func TestStoredAndDeliveredTogether(t *testing.T) {
	t.Parallel()
	s := &shelf{list: []abi.Notice{
		{Kind: abi.NoticeCompleted, TaskID: "bg_1"},
		{Kind: abi.NoticeCompleted, TaskID: "bg_2", Housekeeping: true},
		{Kind: abi.NoticeMessages, TaskID: "bg_3", Messages: []abi.Message{user("from afar")}},
		{Kind: abi.NoticeFailed, TaskID: "bg_4", Error: "broken"},
	}}
	var seen []string
	sees := &hook{name: "sees", phase: abi.RunStart, mode: abi.ModeObserve, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		for _, n := range e.Notices {
			seen = append(seen, n.TaskID)
		}
		return nil, nil
	}}
	b := newBench(t, &script{answers: []abi.Message{says("ok")}}, agent.Config{Notifications: agent.Notifications{Take: s.take}}, sees)
	if err := b.agent.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeCancelled, TaskID: "bg_0"}); err != nil {
		t.Fatal(err)
	}
	mustRun(t, b, request(user("go")))
	log := texts(b.agent.Thread("t").Messages())
	if len(log) != 6 || !strings.Contains(log[0], "bg_0") || !strings.Contains(log[1], "bg_1") || log[2] != "user: from afar" || !strings.Contains(log[3], "broken") || log[4] != "user: go" {
		t.Errorf("the log is %q", log)
	}
	slices.Sort(seen)
	if got := strings.Join(seen, " "); got != "bg_0 bg_1 bg_2 bg_3 bg_4" || len(s.list) != 0 {
		t.Errorf("the plugin saw %s, %d notifications are left", got, len(s.list))
	}
}

func TestToolContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	var got any
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("", calls("c2", "shell", "b")), says("ok")}}, agent.Config{
		AgentID: "boss",
		Execution: agent.Execution{ToolContext: func(ctx context.Context, run abi.RunIdentity, call abi.ToolCall) context.Context {
			if call.Name == "shell" {
				panic("no context")
			}
			return context.WithValue(ctx, key{}, run.AgentID+" "+run.ThreadID+" "+call.ID+" "+call.IdempotencyKey)
		}},
	})
	b.tools.do = func(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
		got = ctx.Value(key{})
		return abi.ToolResult{}, nil
	}
	r := mustRun(t, b, request(user("go")))
	if text, _ := got.(string); !strings.HasPrefix(text, "boss t c1 ") || !strings.HasSuffix(text, "/c1") || r.Status != agent.StatusDone {
		t.Errorf("the tool was given %q", got)
	}
	if tools := toolTexts(b); len(tools) != 2 || !strings.Contains(tools[1], "the tool panicked: no context") {
		t.Errorf("tools %q", tools)
	}
}
