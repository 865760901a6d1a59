package agent_test

import (
	"context"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
)

// TestWaitReasons: the action of a ticket names what its run waits for.
func TestWaitReasons(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]agent.WaitReason{
		"": agent.WaitPermission, "confirm": agent.WaitPermission, "input_required": agent.WaitInput, "user_input": agent.WaitInput,
		"user_input_required": agent.WaitInput, "external_event": agent.WaitEvent,
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			gate := &hook{name: "gate", phase: abi.ToolGate, mode: abi.ModeGate, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
				return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateSuspend, Ticket: &abi.SuspendTicket{ID: e.Call.ID, Action: action}}}, nil
			}}
			b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "rm"))}}, agent.Config{}, gate)
			if result := mustRun(t, b, request(user("go"))); result.Wait != want || !result.Wait.Decided() {
				t.Errorf("the run waits for %q, want %q", result.Wait, want)
			}
		})
	}
}

// TestWaitOfTwoCalls: a run that asks for permission and for something else waits for the permission.
func TestWaitOfTwoCalls(t *testing.T) {
	t.Parallel()
	gate := &hook{name: "gate", phase: abi.ToolGate, mode: abi.ModeGate, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateSuspend, Ticket: &abi.SuspendTicket{ID: e.Call.ID, Action: e.Call.Name}}}, nil
	}}
	answer := says("", calls("c1", "external_event", "payment"), calls("c2", "shell", "rm"))
	b := newBench(t, &script{answers: []abi.Message{answer}}, agent.Config{}, gate)
	if result := mustRun(t, b, request(user("go"))); result.Wait != agent.WaitPermission || len(result.Tickets) != 2 {
		t.Errorf("result %+v", result)
	}
}

// TestWaitForTheClient: a call of a tool that the client executes is an event outside of the program.
func TestWaitForTheClient(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "pick", "one"))}}, agent.Config{})
	req := request(user("go"))
	req.FrontendTools = []abi.Tool{{Name: "pick"}}
	if result := mustRun(t, b, req); result.Wait != agent.WaitEvent {
		t.Errorf("the run waits for %q", result.Wait)
	}
}
