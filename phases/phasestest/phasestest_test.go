package phasestest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
)

// good uses every phase and keeps the contract.
func good() phases.Plugin {
	p := &phasestest.Scripted{
		Desc:   abi.Description{Name: "good", State: []abi.StateKey{{Name: "n"}}},
		Script: make(map[abi.Phase]phasestest.Answer),
	}
	for _, phase := range abi.Phases() {
		p.Desc.Hooks = append(p.Desc.Hooks, abi.Hook{Phase: phase, Mode: abi.ModeObserve, Messages: abi.ViewDelta})
		p.Script[phase] = func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			return &abi.Reply{Updates: []abi.Update{{Key: "n", Op: abi.OpAdd, Value: int64(len(e.Messages))}}}, nil
		}
	}
	return p
}

func TestScriptedKeepsTheContract(t *testing.T) {
	t.Parallel()
	phasestest.TestPlugin(t, good)
}

func TestSameAsItself(t *testing.T) {
	t.Parallel()
	phasestest.TestSame(t, good, good)
}

func TestFramesAreInOrder(t *testing.T) {
	t.Parallel()
	for _, phase := range abi.Phases() {
		f := phasestest.Frame(phase)
		switch phase {
		case abi.ToolGate, abi.BeforeToolExecute, abi.AfterToolExecute:
			if f.Call == nil {
				t.Errorf("%s: no call", phase)
			}
		default:
			if err := phases.CheckStructure(f.Messages); err != nil {
				t.Errorf("%s: %v", phase, err)
			}
		}
	}
}

func TestSequence(t *testing.T) {
	t.Parallel()
	one, two := errors.New("one"), errors.New("two")
	answer := phasestest.Sequence(phasestest.Fail(one), phasestest.Fail(two))
	for i, want := range []error{one, two, two} {
		if _, err := answer(t.Context(), &abi.Event{}); !errors.Is(err, want) {
			t.Errorf("answer %d: %v, want %v", i, err, want)
		}
	}
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	var r phasestest.Recorder
	r.Record(phases.Record{Plugin: "a", Step: 1})
	r.Record(phases.Record{Plugin: "b"})
	r.Record(phases.Record{Plugin: "a", Step: 2})
	if got := r.Of("a"); len(got) != 2 || got[1].Step != 2 || len(r.Records()) != 3 {
		t.Errorf("records %+v", got)
	}
}
