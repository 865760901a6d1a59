package agent_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
)

// activated is a hook that is notified when a run begins.
type activated struct {
	*hook

	do func() (*abi.Reply, error)
}

func (a *activated) Describe() abi.Description {
	d := a.hook.Describe()
	d.State = []abi.StateKey{{Name: "ready"}}
	return d
}

func (a *activated) Activate(context.Context, *abi.Event) (*abi.Reply, error) { return a.do() }

func (*activated) Deactivate(context.Context, *abi.Event) (*abi.Reply, error) { return nil, nil }

// A plugin is activated before the first phase of the run.
func TestActivateBeforeRunStart(t *testing.T) {
	t.Parallel()
	var seen any
	start := &hook{name: "p", phase: abi.RunStart, mode: abi.ModeObserve, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		seen = e.State["ready"]
		return nil, nil
	}}
	p := &activated{hook: start, do: func() (*abi.Reply, error) {
		return &abi.Reply{Updates: []abi.Update{{Key: "ready", Op: abi.OpSet, Value: true}}}, nil
	}}
	b := newBench(t, &script{answers: []abi.Message{says("done")}}, agent.Config{}, p)
	if _, err := b.agent.Run(t.Context(), request(user("go"))); err != nil {
		t.Fatal(err)
	}
	if seen != true {
		t.Errorf("at run_start the state is %v", seen)
	}
}

// A plugin that cannot be activated keeps the run from asking the model; the run
// ends by its one exit, and what the user said is kept.
func TestActivateFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("no license")
	end := &hook{name: "p", phase: abi.RunEnd, mode: abi.ModeObserve, do: func(context.Context, *abi.Event) (*abi.Reply, error) { return nil, nil }}
	p := &activated{hook: end, do: func() (*abi.Reply, error) { return nil, broken }}
	b := newBench(t, &script{answers: []abi.Message{says("never")}}, agent.Config{}, p)
	result, err := b.agent.Run(t.Context(), request(user("go")))
	if !errors.Is(err, broken) || result.Termination.Type != agent.Failed || result.Steps != 0 {
		t.Errorf("%+v, %v", result, err)
	}
	if got := texts(b.agent.Thread("t").Messages()); !slices.Equal(got, []string{"user: go"}) {
		t.Errorf("log %q", got)
	}
	checkLog(t, b)
}
