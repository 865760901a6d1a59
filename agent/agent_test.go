package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

func TestRunFiresEveryPhaseInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "hi")), says("done")}}, agent.Config{})
	result, err := b.agent.Run(t.Context(), request(user("go")))
	if err != nil {
		t.Fatal(err)
	}
	if result.Termination.Type != agent.NaturalEnd || result.Steps != 2 || result.Response != "done" {
		t.Errorf("result %+v", result)
	}
	want := []abi.Phase{
		abi.RunStart, abi.StepStart, abi.BeforeInference, abi.AfterInference,
		abi.ToolGate, abi.BeforeToolExecute, abi.AfterToolExecute, abi.StepEnd,
		abi.StepStart, abi.BeforeInference, abi.AfterInference, abi.StepEnd, abi.RunEnd,
	}
	if got := b.phases(); !slices.Equal(got, want) {
		t.Errorf("phases\n got %v\nwant %v", got, want)
	}
	log := b.agent.Thread("t").Messages()
	if got, want := texts(log), []string{"user: go", "assistant: ", "tool: hi", "assistant: done"}; !slices.Equal(got, want) {
		t.Errorf("log %q, want %q", got, want)
	}
	if err := phases.CheckStructure(log); err != nil {
		t.Error(err)
	}
}

func TestTransformSeesAResultBeforeAnyoneElse(t *testing.T) {
	t.Parallel()
	redact := &hook{
		name: "redact", phase: abi.AfterToolExecute, mode: abi.ModeTransform, view: abi.ViewLast,
		do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			return &abi.Reply{Effects: []abi.Effect{{
				Type: abi.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: []abi.ContentBlock{abi.Text("[REDACTED]")},
			}}}, nil
		},
	}
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "secret")), says("done")}}, agent.Config{}, redact)
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.model.requests {
		if strings.Contains(strings.Join(texts(r.Messages), " "), "secret") {
			t.Errorf("the model saw %q", texts(r.Messages))
		}
	}
	for _, e := range b.events {
		if e.Type == agent.EventToolCallDone && e.Result.Content[0].Text != "[REDACTED]" {
			t.Errorf("the listener saw %+v", e.Result)
		}
	}
	if got := b.agent.Thread("t").Messages()[2].Text(); got != "[REDACTED]" {
		t.Errorf("the log holds %q", got)
	}
}

func TestGateBlocksACallAndTheRestOfTheStep(t *testing.T) {
	t.Parallel()
	gate := &hook{
		name: "gate", phase: abi.ToolGate, mode: abi.ModeGate,
		do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			if e.Call.Name != "shell" {
				return &abi.Reply{}, nil
			}
			return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "not here"}}, nil
		},
	}
	answer := says("", calls("c1", "echo", "a"), calls("c2", "shell", "rm"), calls("c3", "echo", "b"))
	b := newBench(t, &script{answers: []abi.Message{answer}}, agent.Config{}, gate)
	result, err := b.agent.Run(t.Context(), request(user("go")))
	if err != nil {
		t.Fatal(err)
	}
	if result.Termination.Type != agent.Blocked || result.Termination.Detail != "not here" {
		t.Errorf("termination %+v", result.Termination)
	}
	if !slices.Equal(b.tools.calls, []string{"c1"}) {
		t.Errorf("ran %v, want c1 only", b.tools.calls)
	}
	log := b.agent.Thread("t").Messages()
	if err := phases.CheckStructure(log); err != nil {
		t.Error(err)
	}
	if got := log[3].Text(); got != "Denied: not here" {
		t.Errorf("blocked call answered %q", got)
	}
	if got := log[4].Text(); !strings.Contains(got, "interrupted") {
		t.Errorf("later call answered %q", got)
	}
	if b.count(agent.EventRunFinish) != 1 || !slices.Contains(b.phases(), abi.RunEnd) {
		t.Error("run_end or run_finish is missing")
	}
}

func TestFailedInferenceLeavesByTheOneExit(t *testing.T) {
	t.Parallel()
	cause := &llm.Error{Kind: llm.KindUnauthorized, Message: "no key"}
	b := newBench(t, &script{err: cause}, agent.Config{})
	result, err := b.agent.Run(t.Context(), request(user("go")))
	if !errors.Is(err, cause) {
		t.Errorf("error %v, want the model's", err)
	}
	if result.Termination.Type != agent.Failed {
		t.Errorf("termination %+v", result.Termination)
	}
	if b.count(agent.EventRunFinish) != 1 {
		t.Errorf("%d run_finish events", b.count(agent.EventRunFinish))
	}
	if !slices.Contains(b.phases(), abi.RunEnd) {
		t.Error("run_end did not fire")
	}
	if got := texts(b.agent.Thread("t").Messages()); !slices.Equal(got, []string{"user: go"}) {
		t.Errorf("log %q", got)
	}
}

func TestCancelKeepsWhatWasSaidAndAnswersEveryCall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := newBench(t, &script{answers: []abi.Message{says("I try", calls("c1", "echo", "a"), calls("c2", "echo", "b"))}}, agent.Config{})
	b.tools.do = func(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
		cancel()
		<-ctx.Done()
		return abi.ToolResult{}, ctx.Err()
	}
	result, err := b.agent.Run(ctx, request(user("go")))
	if !errors.Is(err, context.Canceled) || result.Termination.Type != agent.Cancelled {
		t.Errorf("error %v, termination %+v", err, result.Termination)
	}
	log := b.agent.Thread("t").Messages()
	if len(log) != 4 || log[1].Text() != "I try" {
		t.Fatalf("log %q", texts(log))
	}
	if err := phases.CheckStructure(log); err != nil {
		t.Error(err)
	}
	if !slices.Contains(b.phases(), abi.RunEnd) || b.count(agent.EventRunFinish) != 1 {
		t.Error("run_end or run_finish is missing")
	}
}

func TestToolThatIgnoresCancelIsAbandoned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause      error
		want, code string
	}{
		{agent.ErrCancelled, "tool: [Tool execution was interrupted: the run was cancelled]", ""},
		{agent.ErrContinued, "tool: [Tool execution was interrupted: the process ended, and the call may have been executed]", agent.Continued},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		release := make(chan struct{})
		b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a"))}}, agent.Config{Limits: agent.Limits{Grace: time.Millisecond}})
		b.tools.do = func(context.Context, abi.ToolCall) (abi.ToolResult, error) {
			cancel(c.cause)
			<-release
			return abi.ToolResult{}, nil
		}
		if r, err := b.agent.Run(ctx, request(user("go"))); !errors.Is(err, context.Canceled) || r.Termination.Code != c.code {
			t.Errorf("%v: %+v, error %v", c.cause, r.Termination, err)
		}
		if got := toolTexts(b); len(got) != 1 || got[0] != c.want {
			t.Errorf("%v: the results are %q", c.cause, got)
		}
		if err := phases.CheckStructure(b.agent.Thread("t").Messages()); err != nil {
			t.Error(err)
		}
		close(release)
	}
}

func TestMaxRoundsStopsBeforeOneTooMany(t *testing.T) {
	t.Parallel()
	var answers []abi.Message
	for i := range 5 {
		answers = append(answers, says("", calls(fmt.Sprint("c", i), "echo", "x")))
	}
	b := newBench(t, &script{answers: answers}, agent.Config{Limits: agent.Limits{MaxRounds: 3}})
	result, err := b.agent.Run(t.Context(), request(user("go")))
	if err != nil {
		t.Fatal(err)
	}
	if result.Termination.Code != string(agent.StopMaxRounds) || len(b.model.requests) != 3 {
		t.Errorf("%d inferences, termination %+v", len(b.model.requests), result.Termination)
	}
}

func TestToolErrorsAndPanicsBecomeResults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do   func(context.Context, abi.ToolCall) (abi.ToolResult, error)
		want string
	}{
		"error": {func(context.Context, abi.ToolCall) (abi.ToolResult, error) {
			return abi.ToolResult{}, errors.New("disk full")
		}, "Execution failed: disk full"},
		"panic": {
			func(context.Context, abi.ToolCall) (abi.ToolResult, error) { panic("oops") },
			"Internal error: the tool panicked: oops",
		},
		"data": {func(context.Context, abi.ToolCall) (abi.ToolResult, error) {
			return abi.ToolResult{Data: map[string]any{"n": int64(1)}}, nil
		}, `{"n":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("ok")}}, agent.Config{})
			b.tools.do = tc.do
			if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
				t.Fatal(err)
			}
			if got := b.agent.Thread("t").Messages()[2].Text(); got != tc.want {
				t.Errorf("result %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNoticesAreNeverLost(t *testing.T) {
	t.Parallel()
	model := &script{answers: []abi.Message{says("first"), says("second"), says("third")}}
	b := newBench(t, model, agent.Config{})
	notice := func(id string) abi.Notice { return abi.Notice{Kind: abi.NoticeCompleted, TaskID: id, Result: "<b>"} }
	if err := b.agent.Deliver(t.Context(), "t", notice("before")); err != nil {
		t.Fatal(err)
	}
	sent := false
	model.during = func() {
		if !sent {
			sent = true
			if err := b.agent.Deliver(t.Context(), "t", notice("meanwhile")); err != nil {
				t.Error(err)
			}
		}
	}
	// The notification that arrives during the first inference makes the run continue.
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	if err := b.agent.Deliver(t.Context(), "t", notice("after")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.agent.Run(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(texts(b.agent.Thread("t").Messages()), "\n")
	for _, id := range []string{"before", "meanwhile", "after"} {
		if strings.Count(all, `task_id="`+id+`"`) != 1 {
			t.Errorf("notice %q stands %d times in\n%s", id, strings.Count(all, `task_id="`+id+`"`), all)
		}
	}
	if strings.Contains(all, "<b>") {
		t.Error("a task's text was not escaped")
	}
}

func TestOneRunPerThread(t *testing.T) {
	t.Parallel()
	model := &script{answers: []abi.Message{says("a")}}
	b := newBench(t, model, agent.Config{})
	var second error
	model.during = func() { _, second = b.agent.Run(t.Context(), request(user("too"))) }
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(second, agent.ErrThreadBusy) {
		t.Errorf("second run: %v", second)
	}
}

func TestContextMessagesAndToolFilters(t *testing.T) {
	t.Parallel()
	adds := &hook{
		name: "adds", phase: abi.BeforeInference, mode: abi.ModeTransform,
		do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			return &abi.Reply{Effects: []abi.Effect{
				{Type: abi.EffectAddContext, Context: &abi.ContextMessage{
					Key: "k", Target: abi.TargetSuffixSystem,
					Content: []abi.ContentBlock{abi.Text("mind the gap")}, CooldownTurns: 2,
				}},
				{Type: abi.EffectExcludeTools, Tools: []string{"shell"}},
			}}, nil
		},
	}
	b := newBench(t, &script{answers: []abi.Message{
		says("", calls("c1", "echo", "a")), says("", calls("c2", "echo", "a")), says("done"),
	}}, agent.Config{Profile: agent.Profile{SystemPrompt: "be good"}}, adds)
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	for i, r := range b.model.requests {
		if r.Messages[0].Text() != "be good" || len(r.Tools) != 1 || r.Tools[0].Name != "echo" {
			t.Errorf("request %d: first %q, tools %v", i, r.Messages[0].Text(), r.Tools)
		}
		last := r.Messages[len(r.Messages)-1].Text()
		if shown := last == "mind the gap"; shown != (i != 1) {
			t.Errorf("request %d ends with %q: cooldown of 2 steps not kept", i, last)
		}
	}
	if strings.Contains(strings.Join(texts(b.agent.Thread("t").Messages()), " "), "mind the gap") {
		t.Error("a context message got into the log")
	}
}

func TestThreadStateOutlivesARun(t *testing.T) {
	t.Parallel()
	counts := &counter{}
	b := newBench(t, &script{answers: []abi.Message{says("a"), says("b")}}, agent.Config{}, counts)
	for range 2 {
		if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.agent.Thread("t").State()["counts/runs"]; got != int64(2) {
		t.Errorf("state %v, want 2", got)
	}
}

// counter counts runs in thread-scoped state.
type counter struct{}

func (counter) Describe() abi.Description {
	return abi.Description{
		Name: "counts", Version: "1", ABI: abi.VersionRange{Min: 1, Max: 1},
		Hooks: []abi.Hook{{Phase: abi.RunStart, Mode: abi.ModeObserve}},
		State: []abi.StateKey{{Name: "runs", Scope: abi.ScopeThread, Merge: abi.MergeCommutative}},
	}
}

func (counter) OnPhase(context.Context, *abi.Event) (*abi.Reply, error) {
	return &abi.Reply{Updates: []abi.Update{{Key: "runs", Op: abi.OpAdd, Value: int64(1)}}}, nil
}

func TestNewNamesTheMissingField(t *testing.T) {
	t.Parallel()
	rt, err := phases.New(phases.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for field, cfg := range map[string]agent.Config{
		"Config.Model":  {Profile: agent.Profile{Phases: rt}},
		"Config.Phases": {Profile: agent.Profile{Model: &script{}}},
		"Config.Grace":  {Profile: agent.Profile{Model: &script{}, Phases: rt}, Limits: agent.Limits{Grace: -1}},
	} {
		if _, err := agent.New(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error %v does not name %s", err, field)
		}
	}
}
