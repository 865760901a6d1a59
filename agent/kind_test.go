package agent_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
)

// A gate goes by the kind that a tool declares, never by what its name looks like.
func TestToolKindIsDeclared(t *testing.T) {
	t.Parallel()
	var seen []string
	gate := &hook{name: "gate", phase: abi.ToolGate, mode: abi.ModeGate, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		seen = append(seen, e.Call.Name+" "+string(e.Call.Kind))
		return nil, nil
	}}
	b := newBench(t, &script{answers: []abi.Message{
		says("", calls("c1", "thread_info", ""), calls("c2", "update_targets", ""), calls("c3", "look", "")), says("done"),
	}}, agent.Config{}, gate)
	b.tools.list = func() []abi.Tool {
		return []abi.Tool{{Name: "thread_info"}, {Name: "update_targets", Kind: abi.ToolEdit}, {Name: "look", Kind: abi.ToolExecute}}
	}
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	if want := []string{"thread_info other", "update_targets edit", "look execute"}; !slices.Equal(seen, want) {
		t.Errorf("the gate saw %q, want %q", seen, want)
	}
}

// The cooldown of a context message goes by its content: the same text waits, another
// one does not.
func TestContextCooldownGoesByContent(t *testing.T) {
	t.Parallel()
	adds := &hook{name: "adds", phase: abi.BeforeInference, mode: abi.ModeTransform, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectAddContext, Context: &abi.ContextMessage{
			Key: "k", Target: abi.TargetSuffixSystem, CooldownTurns: 9, Content: []abi.ContentBlock{abi.Text(fmt.Sprint("mark ", e.Step/2))},
		}}}}, nil
	}}
	b := newBench(t, &script{answers: []abi.Message{
		says("", calls("c1", "echo", "a")), says("", calls("c2", "echo", "a")), says("", calls("c3", "echo", "a")), says("done"),
	}}, agent.Config{}, adds)
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	var last []string
	for _, r := range b.model.requests {
		last = append(last, r.Messages[len(r.Messages)-1].Text())
	}
	if want := []string{"mark 0", "mark 1", "a", "mark 2"}; !slices.Equal(last, want) {
		t.Errorf("requests end with %q, want %q", last, want)
	}
}
