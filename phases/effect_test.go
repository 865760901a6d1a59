package phases_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
	"github.com/mortise-dev/mortise/phases/state"
)

func custom(key string, payload any) abi.Effect {
	return abi.Effect{Type: abi.EffectCustom, Key: key, Payload: payload, Note: "why"}
}

// Custom effects are executed after the commit, in order, one failing or not.
func TestEffectsOfAPhase(t *testing.T) {
	t.Parallel()
	var told []any
	handlers := answers{
		"tell": func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			told = append(told, e.Effect.Payload)
			if e.State["comm"] != int64(1) || e.Phase != abi.BeforeInference || e.Run.RunID != "r" || e.Effect.Note != "why" || e.Notices != nil || e.Messages != nil {
				return nil, fmt.Errorf("event %+v", e)
			}
			return nil, nil
		},
		"fails":   phasestest.Fail(errBroken),
		"panics":  func(context.Context, *abi.Event) (*abi.Reply, error) { panic("carrying out") },
		"parses":  func(context.Context, *abi.Event) (*abi.Reply, error) { return nil, errors.New("malformed payload") },
		"replies": updates(abi.Update{Key: "comm", Op: abi.OpAdd, Value: 100}),
	}
	p := worker("p", handle(abi.BeforeInference), phasestest.Reply(abi.Reply{
		Updates: []abi.Update{{Key: "comm", Op: abi.OpAdd, Value: 1}},
		Effects: []abi.Effect{
			custom("tell", "a"), custom("fails", nil), custom("tell", fields{"b": int64(1)}), custom("panics", nil),
			custom("parses", 1), custom("replies", 2), custom("p/tell", "c"),
		},
	}), nil, handlers)
	g := build(t, phases.Config{}, p)
	out := g.fire(t, step(1))
	wantReport(t, out.Report, phases.Report{Rounds: 1, Effects: 7, EffectsFailed: 4})
	if want := (list{"a", fields{"b": int64(1)}, "c"}); !reflect.DeepEqual(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	g.wantState(t, "p/comm", int64(1))
	letters, _ := g.state.DeadLetters()
	var texts []string
	for _, l := range letters {
		texts = append(texts, fmt.Sprint(l.ID, " ", l.Key, ": ", l.Err))
	}
	want := []string{"2 p/fails: broken", "4 p/panics: panicked: carrying out", "5 p/parses: malformed payload", "6 p/replies: reply refused"}
	if !reflect.DeepEqual(texts, want) {
		t.Errorf("dead letters %q, want %q", texts, want)
	}
	recs := g.Records()
	if len(recs) != 8 || recs[1].Handler != "p/tell" || recs[2].Err != "broken" || len(recs[6].Refused) != 1 {
		t.Errorf("records %+v", recs)
	}
}

// Effects of a phase that fails are not executed; those of deferred hooks and of
// actions are, once.
func TestEffectsOfOthers(t *testing.T) {
	t.Parallel()
	var told []any
	tell := answers{"tell": func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		told = append(told, e.Effect.Payload)
		return nil, nil
	}}
	p := worker("p", handle(abi.BeforeInference), func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		n, _ := e.State["excl"].(int64)
		return &abi.Reply{
			Updates: []abi.Update{{Key: "excl", Op: abi.OpSet, Value: n + 1}},
			Effects: []abi.Effect{custom("tell", n)}, Actions: []abi.Action{do("act", nil)},
		}, nil
	}, answers{"act": effects(custom("tell", "action"))}, tell)
	g := build(t, phases.Config{}, twice(p))
	out := g.fire(t, step(1))
	wantReport(t, out.Report, phases.Report{Rounds: 1, Processed: 2, Effects: 4})
	if want := (list{int64(0), int64(1), "action", "action"}); !reflect.DeepEqual(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}

	told = nil
	bad := plug("z", abi.Hook{Phase: abi.BeforeInference, OnFailure: abi.FailRun}, phasestest.Fail(errBroken))
	g = build(t, phases.Config{}, p, bad)
	if _, err := g.Fire(t.Context(), g.state, step(1)); !errors.Is(err, errBroken) || len(told) != 0 {
		t.Errorf("error %v, told %v", err, told)
	}
}

// An effect handler that hangs holds up its own phase until its deadline, and
// nothing else: the state is free for others.
func TestEffectHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g *rig
		p := worker("p", handle(abi.BeforeInference), phasestest.Sequence(effects(custom("hangs", nil)), silent), nil, answers{
			"hangs": func(ctx context.Context, _ *abi.Event) (*abi.Reply, error) {
				if _, err := g.Fire(ctx, g.state, step(1)); err != nil {
					return nil, err
				}
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		g = build(t, phases.Config{HookTimeout: time.Second}, p)
		start := time.Now()
		out := g.fire(t, step(1))
		if took := time.Since(start); took != time.Second {
			t.Errorf("the phase took %v", took)
		}
		wantReport(t, out.Report, phases.Report{Rounds: 1, Effects: 1, EffectsFailed: 1})
		if letters, _ := g.state.DeadLetters(); len(letters) != 1 || !strings.Contains(letters[0].Err, "missed its deadline") {
			t.Errorf("dead letters %+v", letters)
		}
	})
}

// Effects that a cancelled run did not get to are dead letters, not lost.
func TestEffectsAfterCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := worker("p", handle(abi.BeforeInference), effects(custom("cancels", nil), custom("never", "x")), nil, answers{
		"cancels": func(context.Context, *abi.Event) (*abi.Reply, error) { cancel(); return nil, nil },
		"never":   func(context.Context, *abi.Event) (*abi.Reply, error) { t.Error("carried out"); return nil, nil },
	})
	g := build(t, phases.Config{}, p)
	out, err := g.Fire(ctx, g.state, step(1))
	if err != nil || out.Report.Effects != 2 {
		t.Errorf("%+v, %v", out.Report, err)
	}
	letters, _ := g.state.DeadLetters()
	if len(letters) == 0 || letters[len(letters)-1].Payload != "x" {
		t.Errorf("dead letters %+v", letters)
	}
}

func TestSubmit(t *testing.T) {
	t.Parallel()
	var seen []any
	p := worker("p", handle(abi.BeforeInference), nil, answers{"note": note}, answers{"tell": func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		seen = append(seen, e.Effect.Payload, e.State["excl"])
		return nil, nil
	}})
	g := build(t, phases.Config{}, p)
	put := state.Update{Key: "p/excl", Op: abi.OpSet, Value: list{1}}
	tests := map[string]struct {
		command phases.Command
		want    string
	}{
		"no action handler": {phases.Command{Actions: []abi.Action{do("p/none", nil)}}, "no scheduled action handler registered for p/none"},
		"short action name": {phases.Command{Actions: []abi.Action{do("note", nil)}}, "no scheduled action handler registered for note"},
		"no phase":          {phases.Command{Actions: []abi.Action{{Key: "p/note"}}}, `phase ""`},
		"bad payload":       {phases.Command{Actions: []abi.Action{do("p/note", struct{}{})}}, "cannot be stored"},
		"no effect handler": {phases.Command{Effects: []abi.Effect{custom("p/none", nil)}}, "no effect handler registered for p/none"},
		"not custom":        {phases.Command{Effects: []abi.Effect{{Type: abi.EffectStop, Code: "x"}}}, `type "stop" is not custom`},
		"bad effect":        {phases.Command{Effects: []abi.Effect{custom("p/tell", struct{}{})}}, "cannot be stored"},
		"the runtime's own": {phases.Command{Batch: state.Batch{Updates: []state.Update{{Key: "_runtime/pending_actions", Op: "push", Value: list{}}}}}, "is the runtime's own"},
		"unknown key":       {phases.Command{Batch: state.Batch{Updates: []state.Update{{Key: "no/key", Op: abi.OpSet}}}}, "unknown key: no/key"},
		"stale":             {phases.Command{Batch: state.Batch{Base: new(uint64(7))}}, "revision conflict"},
	}
	for name, test := range tests {
		test.command.Batch.Updates = append([]state.Update{put}, test.command.Batch.Updates...)
		if _, err := g.Submit(t.Context(), g.state, test.command); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
		if g.state.Revision() != 0 || len(seen) > 0 {
			t.Fatalf("%s: something was committed", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Submit(ctx, g.state, phases.Command{Batch: state.Batch{Updates: []state.Update{put}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	report := submit(t, g, phases.Command{
		Batch: state.Batch{Base: new(uint64(0)), Updates: []state.Update{put}}, Actions: []abi.Action{do("p/note", 2)}, Effects: []abi.Effect{custom("p/tell", "x")},
	})
	wantReport(t, report, phases.Report{Effects: 1})
	if want := (list{"x", list{int64(1)}}); !reflect.DeepEqual(seen, want) || g.state.Revision() != 1 {
		t.Errorf("the effect saw %v at revision %d", seen, g.state.Revision())
	}
	wantReport(t, g.fire(t, step(1)).Report, phases.Report{Rounds: 1, Processed: 1})
	g.wantState(t, "p/excl", list{int64(1), int64(2)})
	wantReport(t, submit(t, g, phases.Command{}), phases.Report{})
}

// Commands of calls that run side by side: what is commutative merges, what is not names both.
func TestMergeOfCommands(t *testing.T) {
	t.Parallel()
	told := 0
	p := worker("p", abi.Hook{Phase: abi.BeforeToolExecute}, nil, answers{"note": note},
		answers{"tell": func(context.Context, *abi.Event) (*abi.Reply, error) { told++; return nil, nil }})
	q := plug("q", abi.Hook{Phase: abi.BeforeToolExecute}, nil)
	g := build(t, phases.Config{}, p, q)
	action := do("note", "x")
	action.Key = "p/note"
	c := phases.Command{
		Batch:   state.Batch{Base: new(uint64), Updates: []state.Update{{Key: "p/comm", Op: abi.OpAdd, Value: int64(1)}, {Key: "q/excl", Op: abi.OpSet, Value: int64(2)}}},
		Actions: []abi.Action{action}, Effects: []abi.Effect{custom("p/tell", nil)},
	}
	_, err := g.Merge(g.state, phases.Part{CallID: "c1", Command: c}, phases.Part{CallID: "c2", Command: c})
	if text := `conflicting parallel state modification on exclusive key "q/excl" by tool calls [c1] and [c2]`; err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v", err)
	}
	c.Batch.Updates = c.Batch.Updates[:1]
	merged, err := g.Merge(g.state, phases.Part{CallID: "c1", Command: c}, phases.Part{CallID: "c2", Command: c})
	if err != nil {
		t.Fatal(err)
	}
	wantReport(t, submit(t, g, merged), phases.Report{Effects: 2})
	if told != 2 {
		t.Errorf("told %d times", told)
	}
	g.wantState(t, "p/comm", int64(2))
	wantReport(t, g.fire(t, step(1)).Report, phases.Report{Rounds: 1, Processed: 2})

	// Parts made from different revisions do not merge.
	other := c
	other.Batch.Base = new(uint64(9))
	if _, err := g.Merge(g.state, phases.Part{Command: c}, phases.Part{Command: other}); err == nil || !strings.Contains(err.Error(), "base revision mismatch") {
		t.Errorf("error %v", err)
	}
}
