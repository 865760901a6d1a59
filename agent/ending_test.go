package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/phases"
)

// The keys of a call that plugins see are those under which it runs.
func TestIdempotencyKeyInEvents(t *testing.T) {
	t.Parallel()
	var seen []string
	watch := func(p abi.Phase) *hook {
		return &hook{name: "w-" + strings.ReplaceAll(string(p), "_", "-"), phase: p, mode: abi.ModeObserve, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			seen = append(seen, e.Call.IdempotencyKey)
			return nil, nil
		}}
	}
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "a")), says("done")}}, agent.Config{}, asking(""),
		watch(abi.ToolGate), watch(abi.BeforeToolExecute), watch(abi.AfterToolExecute))
	var ran string
	b.tools.do = func(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
		ran = call.IdempotencyKey
		return abi.ToolResult{}, nil
	}
	run := mustRun(t, b, request(user("go"))).RunID
	first := run + "/1/" + b.agent.Thread("t").Messages()[1].ID + "/c1"
	mustRun(t, b, decide("c1", agent.ActionResume, nil))
	if ran != first+"/resumed" || !slices.Equal(seen, []string{first, ran, ran, ran}) {
		t.Errorf("ran %q, seen %q", ran, seen)
	}
}

// Run_end reports how the run ended, however it did.
func TestRunEnding(t *testing.T) {
	t.Parallel()
	gate := func(d abi.GateDecision) *hook {
		return &hook{name: "gate", phase: abi.ToolGate, mode: abi.ModeGate, do: func(context.Context, *abi.Event) (*abi.Reply, error) { return &abi.Reply{Gate: &d}, nil }}
	}
	cases := map[string]struct {
		plugin *hook
		model  *script
		cfg    agent.Config
		want   abi.RunEnding
	}{
		"done":    {nil, &script{answers: []abi.Message{says("done")}}, agent.Config{}, abi.RunEnding{Termination: abi.TerminationNatural, Steps: 1}},
		"blocked": {gate(abi.GateDecision{Action: abi.GateBlock, Reason: "no"}), &script{answers: []abi.Message{says("", calls("c1", "echo", "a"))}}, agent.Config{}, abi.RunEnding{Termination: abi.TerminationBlocked, Detail: "no", Steps: 1}},
		"waits":   {asking(""), &script{answers: []abi.Message{says("", calls("c1", "shell", "a"))}}, agent.Config{}, abi.RunEnding{Termination: abi.TerminationSuspended, Detail: "needs a yes", Steps: 1}},
		"stopped": {nil, &script{answers: []abi.Message{says("", calls("c1", "echo", "a"))}}, agent.Config{Limits: agent.Limits{MaxRounds: 1}}, abi.RunEnding{Termination: abi.TerminationStopped, Code: "max_rounds", Detail: "reached 1 rounds", Steps: 1}},
		"tasks":   {nil, &script{answers: []abi.Message{says("done")}}, agent.Config{Notifications: agent.Notifications{Pending: func(string) bool { return true }}}, abi.RunEnding{Termination: abi.TerminationNatural, Detail: "awaiting_tasks", Steps: 1}},
		"failed":  {nil, &script{err: errors.New("no model")}, agent.Config{}, abi.RunEnding{Termination: abi.TerminationFailed, Detail: "no model", Error: "agent: run r1: no model", Steps: 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []*abi.RunEnding
			end := &hook{name: "end", phase: abi.RunEnd, mode: abi.ModeObserve, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
				got = append(got, e.End)
				return nil, nil
			}}
			plugins := []phases.Plugin{end}
			if c.plugin != nil {
				plugins = append(plugins, c.plugin)
			}
			c.cfg.Cost = func(string, abi.Usage) float64 { return 0.5 }
			b := newBench(t, c.model, c.cfg, plugins...)
			req := request(user("go"))
			req.RunID = "r1"
			_, _ = b.agent.Run(t.Context(), req)
			if c.model.err == nil {
				c.want.Usage, c.want.Cost = &abi.Usage{PromptTokens: 10}, 0.5
			}
			if len(got) != 1 || got[0] == nil {
				t.Fatalf("endings %v", got)
			}
			got[0].DurationMS = 0
			if !reflect.DeepEqual(*got[0], c.want) {
				t.Errorf("ending %+v, want %+v", *got[0], c.want)
			}
		})
	}
}

func TestRunEndingOfACancelledRun(t *testing.T) {
	t.Parallel()
	var got *abi.RunEnding
	end := &hook{name: "end", phase: abi.RunEnd, mode: abi.ModeObserve, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		got = e.End
		return nil, nil
	}}
	ctx, cancel := context.WithCancelCause(t.Context())
	b := newBench(t, &script{answers: []abi.Message{says("x")}, during: func() { cancel(errors.New("enough")) }}, agent.Config{}, end)
	if _, err := b.agent.Run(ctx, request(user("go"))); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if got == nil || got.Termination != abi.TerminationCancelled || got.Detail != "enough" || got.Error == "" {
		t.Errorf("ending %+v", got)
	}
}

// Identity and request, as plugins see them.
func TestIdentityAndRequest(t *testing.T) {
	t.Parallel()
	var run abi.RunIdentity
	var asked *abi.InferenceRequest
	start := &hook{name: "start", phase: abi.RunStart, mode: abi.ModeTransform, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		run = e.Run
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectExcludeTools, Tools: []string{"shell"}}, {Type: abi.EffectOverrideInference, Override: &abi.InferenceOverride{MaxTokens: new(int64(9))}}}}, nil
	}}
	reads := &includes{hook{name: "reads", phase: abi.BeforeInference, mode: abi.ModeTransform, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		asked = e.Request
		return effect(abi.Effect{Type: abi.EffectExcludeTools, Tools: []string{"echo"}}), nil
	}}}
	b := newBench(t, &script{answers: []abi.Message{says("done")}}, agent.Config{Profile: agent.Profile{SystemPrompt: "Be brief.", ModelName: "m1"}}, start, reads)
	req := request(user("go"))
	req.Origin, req.ParentThreadID, req.SenderID, req.TransportRequestID, req.DispatchIDHint = "agent", "t0", "u", "q", "h"
	req.Override = &abi.InferenceOverride{Model: new("m2"), Temperature: new(0.5)}
	mustRun(t, b, req)
	if run.Origin != "agent" || run.ParentThreadID != "t0" || run.SenderID != "u" || run.TransportRequestID != "q" || run.DispatchIDHint != "h" {
		t.Errorf("identity %+v", run)
	}
	want := &abi.InferenceRequest{Model: "m2", Temperature: new(0.5), MaxTokens: new(int64(9)), Tools: []abi.Tool{{Name: "echo", Kind: abi.ToolRead}}, System: "Be brief."}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("request %+v, want %+v", asked, want)
	}
	if got := b.model.requests[0]; len(got.Tools) != 0 || got.Override.MaxTokens == nil {
		t.Errorf("the phase's own effects are lost: %+v", got)
	}
}

// includes is a hook that asks for the request with the system prompt.
type includes struct{ hook }

func (h *includes) Describe() abi.Description {
	d := h.hook.Describe()
	d.Hooks[0].Include = []string{abi.IncludeSystem}
	return d
}

// A notification arrives with the next step, of the run or of the thread's next one, also
// in another process. It starts no step and is not told to the model.
func TestNotifications(t *testing.T) {
	t.Parallel()
	var got []string
	tell := &hook{name: "tell", phase: abi.StepEnd, mode: abi.ModeObserve, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		return effect(abi.Effect{Type: abi.EffectNotify, EventType: "step", Payload: fmt.Sprint("secret ", e.Step)}), nil
	}}
	listen := func(p abi.Phase) *hook {
		return &hook{name: "listen-" + strings.ReplaceAll(string(p), "_", "-"), phase: p, mode: abi.ModeObserve, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			for _, n := range e.Notices {
				got = append(got, fmt.Sprint(p, e.Step, " ", n.Kind, " ", n.TaskID, " ", n.EventType, " ", n.Payload))
			}
			return nil, nil
		}}
	}
	store := agent.NewMemory()
	plugins := []phases.Plugin{tell, listen(abi.RunStart), listen(abi.StepStart), listen(abi.RunEnd)}
	one := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("done")}}, agent.Config{Checkpoints: store}, plugins...)
	if r := mustRun(t, one, request(user("go"))); r.Steps != 2 {
		t.Errorf("result %+v", r)
	}
	if want := []string{"step_start2 custom plugin/tell step secret 1"}; !slices.Equal(got, want) {
		t.Errorf("notices %q", got)
	}
	got = nil
	two := newBench(t, &script{answers: []abi.Message{says("done")}}, agent.Config{Checkpoints: store}, plugins...)
	mustRun(t, two, request(user("again")))
	if want := []string{"step_start1 custom plugin/tell step secret 2"}; !slices.Equal(got, want) {
		t.Errorf("notices %q", got)
	}
	for _, b := range []*bench{one, two} {
		if all, err := json.Marshal(b.model.requests); err != nil || strings.Contains(string(all), "secret") {
			t.Errorf("the model reads %s, %v", all, err)
		}
	}
}
