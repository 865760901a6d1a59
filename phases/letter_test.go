package phases_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
	"github.com/mortise-dev/mortise/phases/state"
)

// Dead letters are bounded and counted, and can be taken back or forgotten.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	works := false
	p := worker("p", handle(abi.BeforeInference), nil, answers{"note": func(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
		if !works {
			return nil, errBroken
		}
		return note(ctx, e)
	}}, answers{"tell": func(context.Context, *abi.Event) (*abi.Reply, error) {
		if !works {
			return nil, errBroken
		}
		return nil, nil
	}})
	g := build(t, phases.Config{Limits: phases.Limits{DeadLetters: 3}}, p)
	for i := range 4 {
		submit(t, g, phases.Command{By: "test", Actions: []abi.Action{do("p/note", i)}})
	}
	g.fire(t, step(1))
	report := submit(t, g, phases.Command{By: "test", Effects: []abi.Effect{{Type: abi.EffectCustom, Key: "p/tell", Payload: "hello"}}})
	wantReport(t, report, phases.Report{Effects: 1, EffectsFailed: 1})
	letters, forgotten := g.state.DeadLetters()
	if len(letters) != 3 || forgotten != 2 || letters[0].ID != 3 || letters[2].Phase != "" || letters[2].Payload != "hello" || letters[2].By != "test" {
		t.Fatalf("%d forgotten, left are %+v", forgotten, letters)
	}
	if err := g.Discard(t.Context(), g.state, 4); err != nil {
		t.Error(err)
	}
	if err := g.Discard(t.Context(), g.state, 4); err == nil || !strings.Contains(err.Error(), "no dead letter 4") {
		t.Errorf("discarded twice: %v", err)
	}
	works = true
	for _, l := range []int64{3, letters[2].ID} {
		if _, err := g.Replay(t.Context(), g.state, l); err != nil {
			t.Error(err)
		}
	}
	wantReport(t, g.fire(t, step(1)).Report, phases.Report{Rounds: 1, Processed: 1})
	g.wantState(t, "p/excl", list{int64(2)})
	if letters, _ := g.state.DeadLetters(); len(letters) != 0 {
		t.Errorf("left are %+v", letters)
	}
}

// What a thread brings along may be anything; it is no reason to fail.
func TestStrangeRuntimeState(t *testing.T) {
	t.Parallel()
	for _, strange := range []any{"text", 7, list{1, nil}, fields{"letters": fields{}, "forgotten": "many"}, fields{"letters": list{"x", fields{"id": "one"}}}} {
		p := worker("p", handle(abi.BeforeInference), schedule(do("broken", 1)), answers{"broken": phasestest.Fail(errBroken)}, nil)
		g := build(t, phases.Config{}, p)
		var err error
		if g.state, err = g.Resume(state.Image{Values: fields{"_runtime/dead_letters": strange, "_runtime/pending_actions": strange}}, false); err != nil {
			t.Fatal(err)
		}
		g.fire(t, step(1))
		letters, _ := g.state.DeadLetters()
		if len(letters) == 0 || letters[len(letters)-1].Err != "broken" {
			t.Errorf("%v: dead letters %+v", strange, letters)
		}
		if err := g.Discard(t.Context(), g.state, letters[len(letters)-1].ID); err != nil {
			t.Errorf("%v: %v", strange, err)
		}
	}
}

// A letter that cannot be taken back stays.
func TestReplayWithoutHandler(t *testing.T) {
	t.Parallel()
	p := worker("p", handle(abi.BeforeInference), schedule(do("broken", 1)), answers{"broken": phasestest.Fail(errBroken)}, nil)
	g := build(t, phases.Config{}, p)
	g.fire(t, step(1))
	without := build(t, phases.Config{})
	st := without.NewState(g.state.Export())
	if _, err := without.Replay(t.Context(), st, 1); err == nil || !strings.Contains(err.Error(), "no scheduled action handler") {
		t.Errorf("error %v", err)
	}
	if letters, _ := st.DeadLetters(); len(letters) != 1 || letters[0].Err != "broken" {
		t.Errorf("left are %+v", letters)
	}
}

// Of many who take one letter back at the same time, one does.
func TestReplayOnce(t *testing.T) {
	t.Parallel()
	p := worker("p", handle(abi.BeforeInference), phasestest.Sequence(schedule(do("note", 1)), silent), answers{"note": phasestest.Sequence(phasestest.Fail(errBroken), note)}, nil)
	g := build(t, phases.Config{}, p)
	g.fire(t, step(1))
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := g.Replay(t.Context(), g.state, 1); err == nil {
				taken.Add(1)
			}
		})
	}
	wg.Wait()
	if n := taken.Load(); n != 1 {
		t.Errorf("taken back %d times", n)
	}
	wantReport(t, g.fire(t, step(1)).Report, phases.Report{Rounds: 1, Processed: 1})
}
