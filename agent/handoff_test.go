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

// handing is the plugin "handoff": after the first step it names another agent. It
// writes down its activations.
type handing struct {
	to, agent string
	diary     *[]string
}

func (h *handing) Describe() abi.Description {
	return abi.Description{
		Name: "handoff", Version: "1", ABI: abi.VersionRange{Min: 1, Max: 1},
		Hooks: []abi.Hook{{Phase: abi.StepEnd, Mode: abi.ModeObserve}}, State: []abi.StateKey{{Name: "agent", Scope: abi.ScopeThread}},
	}
}

func (h *handing) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	if e.Step != 1 || h.to == "" {
		return nil, nil
	}
	return &abi.Reply{Updates: []abi.Update{{Key: "agent", Op: abi.OpSet, Value: h.to}}}, nil
}

func (h *handing) Activate(context.Context, *abi.Event) (*abi.Reply, error) {
	*h.diary = append(*h.diary, "activate "+h.agent)
	return nil, nil
}

func (h *handing) Deactivate(context.Context, *abi.Event) (*abi.Reply, error) {
	*h.diary = append(*h.diary, "deactivate "+h.agent)
	return nil, nil
}

func TestHandOff(t *testing.T) {
	t.Parallel()
	var diary []string
	second := &script{answers: []abi.Message{says("I am the second."), says("Still me.")}}
	var seen []string
	watch := &hook{name: "watch", phase: abi.StepStart, mode: abi.ModeObserve, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		seen = append(seen, e.Run.AgentID)
		return nil, nil
	}}
	other := agent.Profile{Model: second, SystemPrompt: "you are the second", Phases: mustPhases(t, &handing{agent: "second", diary: &diary}, watch)}
	first := &script{answers: []abi.Message{says("", calls("c1", "echo", "a"))}}
	b := newBench(t, first, agent.Config{
		AgentID: "first", Profile: agent.Profile{SystemPrompt: "you are the first"},
		Resolve: func(_ context.Context, id string) (agent.Profile, error) {
			if id != "second" {
				return agent.Profile{}, errors.New("who?")
			}
			return other, nil
		},
	}, &handing{to: "second", agent: "first", diary: &diary})
	r := mustRun(t, b, request(user("go")))
	if r.Response != "I am the second." || r.Steps != 2 || second.requests[0].Messages[0].Text() != "you are the second" {
		t.Errorf("result %+v", r)
	}
	if want := []string{"activate first", "deactivate first", "activate second"}; !slices.Equal(diary, want) {
		t.Errorf("diary %q, want %q", diary, want)
	}
	// The thread's next run begins with the agent that the last one ended with.
	if r := mustRun(t, b, request(user("more"))); r.Response != "Still me." || !slices.Equal(seen, []string{"second", "second"}) {
		t.Errorf("result %+v, agents %q", r, seen)
	}
}

func TestHandOffToNobody(t *testing.T) {
	t.Parallel()
	var diary []string
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("no")}}, agent.Config{AgentID: "first"},
		&handing{to: "nobody", agent: "first", diary: &diary})
	r := mustRun(t, b, request(user("go")))
	if r.Termination.Type != agent.Blocked || !strings.HasPrefix(r.Termination.Detail, "handoff resolve failed: ") || len(b.model.requests) != 1 {
		t.Errorf("result %+v", r)
	}
}

func TestUnknownAgentFailsByTheOneExit(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{}, agent.Config{AgentID: "first"})
	req := request(user("go"))
	req.AgentID = "nobody"
	r, err := b.agent.Run(t.Context(), req)
	if err == nil || r.Termination.Type != agent.Failed || b.count(agent.EventRunFinish) != 1 {
		t.Errorf("result %+v, error %v", r, err)
	}
	checkEvents(t, b.events)
}

// TestIdentity: plugins receive the origin of the run, and the record keeps the
// dispatch with which it came to wait.
func TestIdentity(t *testing.T) {
	t.Parallel()
	store := agent.NewMemory()
	var seen []abi.RunIdentity
	watch := &hook{name: "watch", phase: abi.RunStart, mode: abi.ModeObserve, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		seen = append(seen, e.Run)
		return nil, nil
	}}
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "a")), says("done")}}, agent.Config{AgentID: "a", Checkpoints: store}, asking(""), watch)
	req := request(user("go"))
	req.RunID, req.ParentRunID, req.DispatchID, req.SessionID, req.Mode, req.Adapter = "r", "p", "d1", "s1", abi.RunScheduled, "a2a"
	mustRun(t, b, req)
	record, _, _ := store.FindRun(t.Context(), "r")
	if w := record.Waiting; w == nil || w.DispatchID != "d1" || w.Reason != agent.WaitPermission || len(w.Tickets) != 1 || w.Since.IsZero() {
		t.Errorf("waiting %+v", w)
	}
	next := decide("c1", agent.ActionResume, nil)
	next.DispatchID, next.SessionID = "d2", "s2"
	mustRun(t, b, next)
	want := []abi.RunIdentity{
		{ThreadID: "t", RunID: "r", ParentRunID: "p", AgentID: "a", DispatchID: "d1", SessionID: "s1", Mode: abi.RunScheduled, Adapter: "a2a"},
		{ThreadID: "t", RunID: "r", ParentRunID: "p", AgentID: "a", DispatchID: "d2", SessionID: "s2", Mode: abi.RunResume},
	}
	if !slices.Equal(seen, want) {
		t.Errorf("plugins saw\n%+v\nwant\n%+v", seen, want)
	}
}

var _ phases.Activator = (*handing)(nil)
