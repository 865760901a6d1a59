package agent_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/state"
)

// ledger is a plugin whose state tools change: it has an exclusive, a commutative and
// a run-scoped key, an action and an effect, and sees each result.
type ledger struct {
	// saw is its state at each after_tool_execute, told its arguments.
	saw  []map[string]any
	told []any
}

func (*ledger) Describe() abi.Description {
	return abi.Description{
		Name: "book", Version: "1", ABI: abi.VersionRange{Min: 1, Max: 1},
		Hooks: []abi.Hook{{Phase: abi.AfterToolExecute, Mode: abi.ModeObserve}, {Phase: abi.StepEnd, Mode: abi.ModeObserve}},
		State: []abi.StateKey{
			{Name: "owner", Scope: abi.ScopeThread}, {Name: "sum", Scope: abi.ScopeThread, Merge: abi.MergeCommutative}, {Name: "tmp"},
		},
		Actions: []abi.Handler{{Name: "close"}},
		Effects: []abi.Handler{{Name: "tell"}},
	}
}

func (l *ledger) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	switch {
	case e.Action != nil:
		l.told = append(l.told, fmt.Sprint(e.Phase, " ", e.Action.Payload, " by ", e.Action.By))
	case e.Effect != nil:
		l.told = append(l.told, e.Effect.Payload)
	case e.Phase == abi.AfterToolExecute:
		l.saw = append(l.saw, e.State)
	}
	return nil, nil
}

func put(key string, op abi.Op, value any) phases.Command {
	return phases.Command{Batch: state.Batch{Updates: []state.Update{{Key: key, Op: op, Value: value}}}}
}

// A tool's changes are done before the plugins see its result, with the actions and
// effects that it asks for.
func TestToolChangesTheRun(t *testing.T) {
	t.Parallel()
	book := &ledger{}
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a"), calls("c2", "echo", "b")), says("done")}}, agent.Config{}, book)
	var read []any
	b.tools.do = func(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
		c := agent.CallOf(ctx)
		owner, _ := c.State("book/owner")
		read = append(read, owner)
		c.Change(put("book/owner", abi.OpSet, call.ID))
		c.Change(put("book/sum", abi.OpAdd, int64(20)))
		c.Change(phases.Command{
			Actions: []abi.Action{{Phase: abi.StepEnd, Key: "book/close", Payload: call.ID}},
			Effects: []abi.Effect{{Type: abi.EffectCustom, Key: "book/tell", Payload: "told " + call.ID}},
		})
		return abi.ToolResult{Message: "ok"}, nil
	}
	mustRun(t, b, request(user("go")))
	if want := []any{nil, "c1"}; !reflect.DeepEqual(read, want) {
		t.Errorf("the tools read %v, want %v", read, want)
	}
	want := []map[string]any{{"owner": "c1", "sum": int64(20)}, {"owner": "c2", "sum": int64(40)}}
	if !reflect.DeepEqual(book.saw, want) {
		t.Errorf("the plugin saw %v, want %v", book.saw, want)
	}
	if want := []any{"told c1", "told c2", "step_end c1 by tool echo", "step_end c2 by tool echo"}; !reflect.DeepEqual(book.told, want) {
		t.Errorf("told %v, want %v", book.told, want)
	}
}

// What is refused leaves nothing behind, and the model reads why; a tool that fails
// changes nothing.
func TestRefusedChanges(t *testing.T) {
	t.Parallel()
	good := put("book/sum", abi.OpAdd, int64(1))
	extend := func(c phases.Command, err error) phases.Command {
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, c := range map[string]struct {
		ask  phases.Command
		fail error
		says string
	}{
		"unknown key":   {extend(good.Extend(put("book/none", abi.OpSet, 1))), nil, "unknown key: book/none"},
		"wrong type":    {extend(good.Extend(put("book/sum", abi.OpAdd, "x"))), nil, "book/sum"},
		"runtime's own": {put("_runtime/pending_actions", abi.OpSet, 1), nil, "the runtime's own"},
		"too large":     {put("book/owner", abi.OpSet, strings.Repeat("x", 1<<20)), nil, "book/owner"},
		"no handler":    {extend(good.Extend(phases.Command{Effects: []abi.Effect{{Type: abi.EffectCustom, Key: "book/none"}}})), nil, "no effect handler registered for book/none"},
		"not custom":    {extend(good.Extend(phases.Command{Effects: []abi.Effect{{Type: abi.EffectStop, Code: "x"}}})), nil, `type "stop" is not custom`},
		"two bases":     {phases.Command{Batch: state.Batch{Base: new(uint64(3))}}, nil, "base revision mismatch"},
		"it fails":      {good, errors.New("broken"), "Execution failed: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("done")}}, agent.Config{}, &ledger{})
			b.tools.do = func(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
				if name == "two bases" {
					agent.CallOf(ctx).Change(phases.Command{Batch: state.Batch{Base: new(uint64(1)), Updates: good.Batch.Updates}})
				}
				agent.CallOf(ctx).Change(c.ask)
				return abi.ToolResult{Message: "fine"}, c.fail
			}
			mustRun(t, b, request(user("go")))
			got := toolTexts(b)
			if len(got) != 1 || !strings.Contains(got[0], c.says) || strings.Contains(got[0], "fine") {
				t.Errorf("the model reads %q, want %q", got, c.says)
			}
			if s := b.agent.Thread("t").State(); len(s) != 0 {
				t.Errorf("state %v", s)
			}
		})
	}
}

// Of calls that run at the same time each sees the state as it was before. Of two that
// change one key exclusively, the later one is refused, whichever was faster.
func TestChangesOfParallelCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{
		says("", calls("c1", "echo", "a"), calls("c2", "echo", "b"), calls("c3", "echo", "c")), says("done"),
	}}, agent.Config{Execution: agent.Execution{ToolMode: agent.ParallelBatch}}, &ledger{})
	after := map[string]chan bool{"c1": make(chan bool), "c2": make(chan bool), "c3": nil}
	b.tools.do = func(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
		// c3 ends first, and c1 last.
		if wait := after[call.ID]; wait != nil {
			<-wait
		}
		c := agent.CallOf(ctx)
		if _, there := c.State("book/sum"); there {
			return abi.ToolResult{}, errors.New("it sees what another call did")
		}
		c.Change(put("book/sum", abi.OpAdd, int64(1)))
		if call.ID != "c3" {
			c.Change(put("book/owner", abi.OpSet, call.ID))
		}
		switch call.ID {
		case "c3":
			close(after["c2"])
		case "c2":
			close(after["c1"])
		}
		return abi.ToolResult{Message: "ok " + call.ID}, nil
	}
	mustRun(t, b, request(user("go")))
	got := toolTexts(b)
	if got[0] != "tool: ok c1" || got[2] != "tool: ok c3" || !strings.Contains(got[1], `exclusive key "book/owner" by tool calls [c1] and [c2]`) {
		t.Errorf("the model reads %q", got)
	}
	if want := map[string]any{"book/owner": "c1", "book/sum": int64(2)}; !reflect.DeepEqual(b.agent.Thread("t").State(), want) {
		t.Errorf("state %v, want %v", b.agent.Thread("t").State(), want)
	}
}

// A call that was resumed may change the run too.
func TestResumedCallChangesTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "a")), says("done")}}, agent.Config{}, asking(""), &ledger{})
	b.tools.do = func(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
		agent.CallOf(ctx).Change(put("book/owner", abi.OpSet, call.ID))
		return abi.ToolResult{Message: "ok"}, agent.CallOf(ctx).Output(ctx, "working")
	}
	mustRun(t, b, request(user("go")))
	mustRun(t, b, decide("c1", agent.ActionResume, nil))
	if owner := b.agent.Thread("t").State()["book/owner"]; owner != "c1" || b.count(agent.EventToolCallStreamDelta) != 1 {
		t.Errorf("owner %v, %d deltas", owner, b.count(agent.EventToolCallStreamDelta))
	}
}

// What a tool reports while it runs is sent between the start and the end of its call,
// in its order.
func TestToolTellsHowItGetsOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("done")}}, agent.Config{})
	long := strings.Repeat("é", 50<<10)
	b.tools.do = func(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
		c := agent.CallOf(ctx)
		return abi.ToolResult{Message: "ok"}, errors.Join(
			c.Output(ctx, "one"), c.Output(ctx, ""), c.Output(ctx, long),
			c.Show(ctx, agent.Activity{Type: "plan", Content: map[string]any{"steps": int64(2)}}),
			c.Patch(ctx, "", "plan", agent.PatchOp{Op: "replace", Path: "/steps", Value: int64(1)}),
			c.Show(ctx, agent.Activity{ID: "own", Type: "search", Content: "x", Replace: true}),
		)
	}
	mustRun(t, b, request(user("go")))
	var got []agent.Event
	output, open := "", false
	for _, e := range b.events {
		switch e.Type {
		case agent.EventToolCallStart, agent.EventToolCallDone:
			open = e.Type == agent.EventToolCallStart
		case agent.EventToolCallStreamDelta:
			output += e.Delta
			if len(e.Delta) > 64<<10 || !open || e.Call.ID != "c1" || e.Call.Name != "echo" {
				t.Errorf("delta of %d bytes, call %+v, open %v", len(e.Delta), e.Call, open)
			}
		case agent.EventActivitySnapshot, agent.EventActivityDelta:
			got = append(got, e)
		default:
		}
	}
	if output != "one"+long {
		t.Errorf("%d bytes of output", len(output))
	}
	if len(got) != 3 || got[0].MessageID != "c1" || got[0].ActivityType != "plan" || got[1].Type != agent.EventActivityDelta ||
		got[1].Patch[0].Path != "/steps" || got[2].MessageID != "own" || !got[2].Replace || got[2].Content != "x" {
		t.Errorf("activities %+v", got)
	}
}

// Tools at the same time may all talk, also when more wait for a place.
func TestParallelToolsTalk(t *testing.T) {
	t.Parallel()
	const n = 12
	var all []abi.ToolCall
	for i := range n {
		all = append(all, calls(fmt.Sprint("c", i), "echo", "a"))
	}
	b := newBench(t, &script{answers: []abi.Message{says("", all...), says("done")}}, agent.Config{Execution: agent.Execution{ToolMode: agent.ParallelStreaming, MaxParallel: 2}})
	b.tools.do = func(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
		c := agent.CallOf(ctx)
		return abi.ToolResult{Message: "ok"}, errors.Join(c.Output(ctx, "1"), c.Output(ctx, "2"), c.Output(ctx, "3"))
	}
	mustRun(t, b, request(user("go")))
	each := make(map[string]string)
	for _, e := range b.events {
		if e.Type == agent.EventToolCallStreamDelta {
			each[e.Call.ID] += e.Delta
		}
	}
	for id, said := range each {
		if said != "123" {
			t.Errorf("%s said %q", id, said)
		}
	}
	if len(each) != n {
		t.Errorf("%d calls were received", len(each))
	}
}

// A tool that was abandoned is ignored, and changes nothing.
func TestAbandonedToolIsNotHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("done")}},
			agent.Config{Execution: agent.Execution{ToolTimeout: time.Second}, Limits: agent.Limits{Grace: time.Second}}, &ledger{})
		late := make(chan error, 1)
		b.tools.do = func(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
			time.Sleep(time.Minute)
			c := agent.CallOf(ctx)
			c.Change(put("book/owner", abi.OpSet, "late"))
			late <- c.Output(context.WithoutCancel(ctx), "late")
			return abi.ToolResult{Message: "late"}, nil
		}
		mustRun(t, b, request(user("go")))
		if err := <-late; !errors.Is(err, agent.ErrCallOver) {
			t.Errorf("error %v", err)
		}
		if s := b.agent.Thread("t").State(); len(s) != 0 || b.count(agent.EventToolCallStreamDelta) != 0 {
			t.Errorf("state %v", s)
		}
		if got := toolTexts(b); !slices.Equal(got, []string{"tool: Execution failed: the tool did not come back within 1s"}) {
			t.Errorf("the model reads %q", got)
		}
	})
}

// A tool that is tested without a run has a call that does nothing.
func TestNoCall(t *testing.T) {
	t.Parallel()
	c := agent.CallOf(t.Context())
	c.Change(put("book/owner", abi.OpSet, 1))
	_, there := c.State("book/owner")
	err := errors.Join(c.Output(t.Context(), "x"), c.Show(t.Context(), agent.Activity{}), c.Patch(t.Context(), "", "plan"))
	if c != nil || there || err != nil {
		t.Errorf("call %v, state %v, error %v", c, there, err)
	}
}

func ExampleCallOf() {
	// A tool that counts how often it was called, in the state of a plugin.
	count := func(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
		call := agent.CallOf(ctx)
		if err := call.Output(ctx, "counting…"); err != nil {
			return abi.ToolResult{}, err
		}
		call.Change(phases.Command{Batch: state.Batch{Updates: []state.Update{{Key: "book/sum", Op: abi.OpAdd, Value: int64(1)}}}})
		return abi.ToolResult{Message: "counted"}, nil
	}
	result, err := count(context.Background(), abi.ToolCall{ID: "c1", Name: "count"})
	fmt.Println(result.Message, err)
	// Output: counted <nil>
}
