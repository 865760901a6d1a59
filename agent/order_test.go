package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/phases"
)

// checkEvents fails when the events of one thread are not in order: a run lies
// between run_start and run_finish, a step between step_start and step_end, and
// each tool_call_done follows the tool_call_start of the same call.
func checkEvents(t *testing.T, events []agent.Event) {
	t.Helper()
	runID, step, started := "", 0, map[string]bool{}
	for i, e := range events {
		switch {
		case (e.Type == agent.EventRunStart) != (runID == ""):
			t.Fatalf("event %d: %s in run %q", i, e.Type, runID)
		case runID != "" && e.RunID != runID:
			t.Fatalf("event %d: %s of run %q within run %q", i, e.Type, e.RunID, runID)
		}
		switch e.Type {
		case agent.EventRunStart:
			runID, step = e.RunID, 0
		case agent.EventStepStart:
			if step != 0 {
				t.Fatalf("event %d: step %d starts within step %d", i, e.Step, step)
			}
			step = e.Step
		case agent.EventStepEnd:
			if step != e.Step || len(started) > 0 {
				t.Fatalf("event %d: step %d ends within step %d, open calls %v", i, e.Step, step, started)
			}
			step = 0
		case agent.EventToolCallStart:
			if step == 0 || started[e.Call.ID] {
				t.Fatalf("event %d: call %q starts in step %d, open calls %v", i, e.Call.ID, step, started)
			}
			started[e.Call.ID] = true
		case agent.EventToolCallDone:
			if !started[e.Call.ID] {
				t.Fatalf("event %d: call %q is done, but %v were started", i, e.Call.ID, started)
			}
			delete(started, e.Call.ID)
		case agent.EventToolCallCancel:
			delete(started, e.Call.ID) // it may be a ticket's
		case agent.EventStreamReset:
			clear(started)
		case agent.EventRunFinish:
			if step != 0 {
				t.Fatalf("event %d: the run finishes within step %d", i, step)
			}
			runID = ""
		default:
		}
	}
	if runID != "" {
		t.Fatalf("run %q does not finish", runID)
	}
}

func TestEventsPairHoweverARunEnds(t *testing.T) {
	t.Parallel()
	three := says("try", calls("c1", "echo", "a"), calls("c2", "shell", "b"), calls("c3", "echo", "c"))
	block := &hook{name: "gate", phase: abi.ToolGate, mode: abi.ModeGate, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		if e.Call.Name != "shell" {
			return nil, nil
		}
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "no"}}, nil
	}}
	broken := func(p abi.Phase) *hook {
		return &hook{name: "broken", phase: p, mode: abi.ModeObserve, fail: abi.FailRun, do: func(context.Context, *abi.Event) (*abi.Reply, error) {
			return nil, errors.New("broken")
		}}
	}
	for name, plugin := range map[string]*hook{
		"blocked": block, "cancelled in a tool": nil, "failed inference": nil, "cancelled before": nil,
		"step_start fails": broken(abi.StepStart), "after_inference fails": broken(abi.AfterInference),
		"tool_gate fails": broken(abi.ToolGate), "after_tool_execute fails": broken(abi.AfterToolExecute),
		"step_end fails": broken(abi.StepEnd), "run_end fails": broken(abi.RunEnd),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			model := &script{answers: []abi.Message{three, says("done")}}
			b := newBench(t, model, agent.Config{}, list(plugin)...)
			switch name {
			case "failed inference":
				model.err = errors.New("down")
			case "cancelled before":
				cancel()
			case "cancelled in a tool":
				b.tools.do = func(context.Context, abi.ToolCall) (abi.ToolResult, error) { cancel(); return abi.ToolResult{}, nil }
			}
			_, _ = b.agent.Run(ctx, request(user("go")))
			checkEvents(t, b.events)
			checkLog(t, b)
			if !slices.Contains(b.phases(), abi.RunEnd) {
				t.Error("run_end did not fire")
			}
		})
	}
}

func TestNextRunStartsAfterRunFinish(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{says("a"), says("b")}}, agent.Config{})
	second := make(chan error, 1)
	tried := false
	b.listen = func(e agent.Event) {
		if e.Type == agent.EventRunFinish && !tried {
			tried = true
			_, err := b.agent.Run(t.Context(), request(user("too early")))
			second <- err
		}
	}
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, agent.ErrThreadBusy) {
		t.Errorf("a run started before run_finish was received: %v", err)
	}
	checkEvents(t, b.events)
}

func TestNoticesSurviveAFailedPhase(t *testing.T) {
	t.Parallel()
	broken := &hook{name: "broken", phase: abi.RunStart, mode: abi.ModeObserve, fail: abi.FailRun, do: func(context.Context, *abi.Event) (*abi.Reply, error) {
		return nil, errors.New("broken")
	}}
	var seen []string
	reader := &hook{name: "reader", phase: abi.RunEnd, mode: abi.ModeObserve, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		for _, n := range e.Notices {
			seen = append(seen, n.TaskID)
		}
		return nil, nil
	}}
	b := newBench(t, &script{answers: []abi.Message{says("a")}}, agent.Config{}, broken, reader)
	if err := b.agent.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeCompleted, TaskID: "bg_1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err == nil {
		t.Fatal("the run did not fail")
	}
	if !slices.Equal(seen, []string{"bg_1"}) {
		t.Errorf("plugins were shown %q", seen)
	}
}

func TestWaitingNoticesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{says("a"), says("b"), says("c"), says("d")}}, agent.Config{Notifications: agent.Notifications{InboxDepth: 2}})
	notice := func(id string) abi.Notice { return abi.Notice{Kind: abi.NoticeCompleted, TaskID: id} }
	for _, id := range []string{"n1", "n2"} {
		if err := b.agent.Deliver(t.Context(), "t", notice(id)); err != nil {
			t.Fatal(err)
		}
	}
	full, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.agent.Deliver(full, "t", notice("refused")); !errors.Is(err, context.Canceled) {
		t.Errorf("a third notice was taken: %v", err)
	}
	waits := make(chan error, 1)
	go func() { waits <- b.agent.Deliver(t.Context(), "t", notice("n3")) }()
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil {
		t.Fatal(err)
	}
	if _, err := b.agent.Run(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(texts(b.agent.Thread("t").Messages()), "\n")
	for id, want := range map[string]int{"n1": 1, "n2": 1, "n3": 1, "refused": 0} {
		if got := strings.Count(all, `task_id="`+id+`"`); got != want {
			t.Errorf("notice %s stands %d times, want %d", id, got, want)
		}
	}
}

func TestCancelAfterTheEndChangesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := newBench(t, &script{answers: []abi.Message{says("done")}}, agent.Config{})
	b.listen = func(e agent.Event) {
		if e.Type == agent.EventStepEnd {
			cancel()
		}
	}
	result, err := b.agent.Run(ctx, request(user("go")))
	if err != nil || result.Termination.Type != agent.NaturalEnd {
		t.Errorf("a run that was done says %+v, %v", result.Termination, err)
	}
}

func list(h *hook) []phases.Plugin {
	if h == nil {
		return nil
	}
	return []phases.Plugin{h}
}
