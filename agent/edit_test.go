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

func replace(id, text string) *abi.Reply {
	return &abi.Reply{Effects: []abi.Effect{{
		Type: abi.EffectReplaceMessage, MessageID: id, Content: []abi.ContentBlock{abi.Text(text)},
	}}}
}

// TestEditsWithinAStepReachTheLog: a hook that sees two results of one step may
// change the first of them, and the assistant message, and the question.
func TestEditsWithinAStepReachTheLog(t *testing.T) {
	t.Parallel()
	for _, phase := range []abi.Phase{abi.ToolGate, abi.BeforeToolExecute, abi.AfterToolExecute} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			cleaner := &hook{name: "cleaner", phase: phase, mode: abi.ModeTransform, view: abi.ViewAll, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
				if e.Call.ID != "c2" {
					return nil, nil
				}
				reply := &abi.Reply{}
				for i := range e.Messages {
					if strings.Contains(e.Messages[i].Text(), "secret") {
						reply.Effects = append(reply.Effects, replace(e.Messages[i].ID, "clean").Effects...)
					}
				}
				return reply, nil
			}}
			b := newBench(t, &script{answers: []abi.Message{
				says("secret answer", calls("c1", "echo", "secret result"), calls("c2", "echo", "fine")), says("done"),
			}}, agent.Config{}, cleaner)
			if _, err := b.agent.Run(t.Context(), request(user("secret question"))); err != nil {
				t.Fatal(err)
			}
			got := texts(b.agent.Thread("t").Messages())
			if want := []string{"user: clean", "assistant: clean", "tool: clean", "tool: fine", "assistant: done"}; !slices.Equal(got, want) {
				t.Errorf("log %q, want %q", got, want)
			}
			checkLog(t, b)
		})
	}
}

func TestResponseIsWhatTheLogHolds(t *testing.T) {
	t.Parallel()
	cleaner := &hook{name: "cleaner", phase: abi.StepEnd, mode: abi.ModeTransform, view: abi.ViewLast, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		return replace(e.Messages[0].ID, "clean"), nil
	}}
	b := newBench(t, &script{answers: []abi.Message{says("secret")}}, agent.Config{}, cleaner)
	result, err := b.agent.Run(t.Context(), request(user("go")))
	if err != nil || result.Response != "clean" {
		t.Errorf("response %q, %v: the edit of a plugin does not reach the caller", result.Response, err)
	}
}

// TestAbandonedHookMayStillRead: a hook that phases abandoned may
// still read its event. The race detector watches.
func TestAbandonedHookMayStillRead(t *testing.T) {
	t.Parallel()
	release, gone := make(chan struct{}), make(chan struct{})
	slow := &hook{name: "slow", phase: abi.AfterToolExecute, mode: abi.ModeObserve, view: abi.ViewAll, fail: abi.FailIgnore, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		defer close(gone)
		<-release
		if len(e.Result.Content) != 1 || e.Result.Content[0].Text != "secret" {
			t.Errorf("the result changed under the hook: %+v", e.Result)
		}
		return nil, nil
	}}
	clean := &hook{name: "clean", phase: abi.AfterToolExecute, mode: abi.ModeTransform, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		return replace(e.ResultMessageID, "clean"), nil
	}}
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "secret")), says("done")}}, agent.Config{}, slow, clean)
	b.listen = func(e agent.Event) {
		if e.Type == agent.EventRunFinish {
			close(release)
		}
	}
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	<-gone
}

func TestExcludedToolIsNotRun(t *testing.T) {
	t.Parallel()
	hides := &hook{name: "hides", phase: abi.BeforeInference, mode: abi.ModeTransform, do: func(context.Context, *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectExcludeTools, Tools: []string{"shell"}}}}, nil
	}}
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "rm"), calls("c2", "echo", "a"), calls("c3", "", "b")), says("done")}}, agent.Config{}, hides)
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.tools.calls, []string{"c2"}) {
		t.Errorf("ran %v, want c2 only", b.tools.calls)
	}
	log := b.agent.Thread("t").Messages()
	if got := log[2].Text(); !strings.Contains(got, "not available") {
		t.Errorf("the excluded call was answered %q", got)
	}
	if err := phases.CheckStructure(log); err != nil {
		t.Error(err)
	}
}

func TestOverridesOfTwoPhasesMerge(t *testing.T) {
	t.Parallel()
	limit, cool, warm := int64(100), 0.1, 0.9
	override := func(o abi.InferenceOverride) func(context.Context, *abi.Event) (*abi.Reply, error) {
		return func(context.Context, *abi.Event) (*abi.Reply, error) {
			return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectOverrideInference, Override: &o}}}, nil
		}
	}
	early := &hook{name: "early", phase: abi.StepStart, mode: abi.ModeTransform, do: override(abi.InferenceOverride{MaxTokens: &limit, Temperature: &warm})}
	late := &hook{name: "late", phase: abi.BeforeInference, mode: abi.ModeTransform, do: override(abi.InferenceOverride{Temperature: &cool})}
	b := newBench(t, &script{answers: []abi.Message{says("ok")}}, agent.Config{}, early, late)
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	got := b.model.requests[0].Override
	if got == nil || got.MaxTokens == nil || *got.MaxTokens != limit || *got.Temperature != cool {
		t.Errorf("override %+v, want 100 tokens of the first and temperature 0.1 of the second", got)
	}
}

// TestFailedTransformWithholdsTheResult: a plugin that hides secrets and fails
// must not leave the secret for the next run.
func TestFailedTransformWithholdsTheResult(t *testing.T) {
	t.Parallel()
	redact := &hook{
		name: "redact", phase: abi.AfterToolExecute, mode: abi.ModeTransform, fail: abi.FailRun,
		do: func(context.Context, *abi.Event) (*abi.Reply, error) { return nil, errors.New("out of fuel") },
	}
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "secret")), says("next")}}, agent.Config{}, redact)
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err == nil {
		t.Error("the run did not fail")
	}
	if _, err := b.agent.Run(t.Context(), request(user("again"))); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.model.requests {
		if all := strings.Join(texts(r.Messages), " "); strings.Contains(all, "tool: secret") {
			t.Errorf("the model read %q", all)
		}
	}
	checkLog(t, b)
	if got := b.agent.Thread("t").Messages()[2].Text(); !strings.Contains(got, "withheld") {
		t.Errorf("the log holds %q", got)
	}
	for _, e := range b.events {
		if e.Type == agent.EventToolCallDone && resultText(e.Result) == "secret" {
			t.Error("a listener saw the secret")
		}
	}
}

func resultText(r *abi.ToolResult) string {
	if len(r.Content) > 0 {
		return r.Content[0].Text
	}
	return r.Message
}

// What hooks of a phase hid stays hidden when an action of the same phase then
// fails the run.
func TestEditsStayWhenAnActionFails(t *testing.T) {
	t.Parallel()
	for _, phase := range []abi.Phase{abi.BeforeInference, abi.ToolGate} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			p := &acting{&hook{name: "p", phase: phase, mode: abi.ModeTransform, view: abi.ViewAll, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
				if e.Action != nil {
					return nil, errors.New("cannot act")
				}
				reply := replace(e.Messages[0].ID, "clean")
				reply.Actions = []abi.Action{{Phase: phase, Key: "act"}}
				return reply, nil
			}}}
			b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("done")}}, agent.Config{}, p)
			if _, err := b.agent.Run(t.Context(), request(user("secret question"))); err == nil || !strings.Contains(err.Error(), "cannot act") {
				t.Errorf("error %v", err)
			}
			if got := texts(b.agent.Thread("t").Messages()); got[0] != "user: clean" {
				t.Errorf("log %q", got)
			}
			checkLog(t, b)
		})
	}
}

// acting executes an action whose failure ends the run.
type acting struct{ *hook }

func (a *acting) Describe() abi.Description {
	d := a.hook.Describe()
	d.Actions = []abi.Handler{{Name: "act", OnFailure: abi.FailRun}}
	return d
}
