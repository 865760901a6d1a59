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

// worker executes actions and effects by an answer for each name.
func worker(name string, h abi.Hook, hook phasestest.Answer, actions, effects map[string]phasestest.Answer) *phasestest.Scripted {
	p := plug(name, h, hook)
	p.Actions, p.Effects = actions, effects
	for a := range actions {
		p.Desc.Actions = append(p.Desc.Actions, abi.Handler{Name: a})
	}
	for e := range effects {
		p.Desc.Effects = append(p.Desc.Effects, abi.Handler{Name: e})
	}
	return p
}

type answers = map[string]phasestest.Answer

func schedule(as ...abi.Action) phasestest.Answer {
	return phasestest.Reply(abi.Reply{Actions: as})
}

func do(key string, payload any) abi.Action {
	return abi.Action{Phase: abi.BeforeInference, Key: key, Payload: payload}
}

func handle(phase abi.Phase) abi.Hook { return abi.Hook{Phase: phase} }

// note appends the payload to the state key log.
func note(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	return &abi.Reply{Updates: []abi.Update{{Key: "excl", Op: abi.OpAppend, Value: list{e.Action.Payload}}}}, nil
}

func wantReport(t *testing.T, got, want phases.Report) {
	t.Helper()
	if got != want {
		t.Errorf("report %+v, want %+v", got, want)
	}
}

// What a hook schedules for its own phase is executed in it, in order, and sees
// what the hook did.
func TestActionsOfTheSamePhase(t *testing.T) {
	t.Parallel()
	p := worker("p", handle(abi.BeforeInference), phasestest.Reply(abi.Reply{
		Updates: []abi.Update{{Key: "comm", Op: abi.OpAdd, Value: 7}},
		Actions: []abi.Action{do("note", "a"), do("look", nil), do("p/note", "b")},
	}), answers{
		"note": note,
		"look": func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			if e.State["comm"] != int64(7) || !reflect.DeepEqual(e.State["excl"], list{"a"}) || e.Phase != abi.BeforeInference || e.Action.By != "p" || e.Action.ID != 2 {
				return nil, fmt.Errorf("event %+v, action %+v", e, e.Action)
			}
			return nil, nil
		},
	}, nil)
	g := build(t, phases.Config{}, p)
	out := g.fire(t, step(1))
	wantReport(t, out.Report, phases.Report{Rounds: 1, Processed: 3})
	g.wantState(t, "p/excl", list{"a", "b"})
	if got := g.state.Revision(); got != 4 {
		t.Errorf("revision %d: the hook is one commit, and each action", got)
	}
	recs := g.Records()
	if len(recs) != 4 || recs[0].Applied[1] != (phases.Change{What: "schedule", Target: "p/note"}) || recs[1].Handler != "p/note" || recs[2].Err != "" {
		t.Errorf("records %+v", recs)
	}
}

// Actions may schedule actions, also of other kinds, for as many rounds as are
// allowed.
func TestRounds(t *testing.T) {
	t.Parallel()
	count := func(next string) phasestest.Answer {
		return func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			n, _ := e.Action.Payload.(int64)
			reply := &abi.Reply{Updates: []abi.Update{{Key: "comm", Op: abi.OpAdd, Value: 1}}}
			if n > 1 {
				reply.Actions = []abi.Action{do(next, n-1)}
			}
			return reply, nil
		}
	}
	tests := map[string]struct {
		chain    int64
		limit    int
		rounds   int
		diverged bool
	}{
		"one":                  {chain: 1, rounds: 1},
		"a chain":              {chain: 5, rounds: 5},
		"exactly the default":  {chain: 16, rounds: 16},
		"one more":             {chain: 17, rounds: 16, diverged: true},
		"exactly its own":      {chain: 3, limit: 3, rounds: 3},
		"one more than that":   {chain: 4, limit: 3, rounds: 3, diverged: true},
		"within a large limit": {chain: 60, limit: 100, rounds: 60},
	}
	for name, test := range tests {
		for _, policy := range []abi.FailurePolicy{"", abi.FailRun} {
			t.Run(fmt.Sprint(name, " ", policy), func(t *testing.T) {
				t.Parallel()
				p := worker("p", handle(abi.BeforeInference), schedule(do("ping", test.chain)), answers{"ping": count("pong"), "pong": count("ping")}, nil)
				for i := range p.Desc.Actions {
					p.Desc.Actions[i].OnFailure = policy
				}
				g := build(t, phases.Config{Limits: phases.Limits{Rounds: test.limit}}, p)
				out, err := g.Fire(t.Context(), g.state, step(1))
				if fails := test.diverged && policy == abi.FailRun; errors.Is(err, phases.ErrNotConverged) != fails || (err != nil) != fails {
					t.Fatalf("error %v", err)
				}
				want := phases.Report{Rounds: test.rounds, Processed: test.rounds, Diverged: test.diverged}
				letters, _ := g.state.DeadLetters()
				if test.diverged {
					want.Failed = 1
					text := fmt.Sprintf("phase before_inference did not converge after %d rounds", test.rounds)
					if err != nil && !strings.Contains(err.Error(), text) {
						t.Errorf("error %v", err)
					}
					if len(letters) != 1 || letters[0].Err != text {
						t.Errorf("dead letters %+v", letters)
					}
				} else if len(letters) != 0 {
					t.Errorf("dead letters %+v", letters)
				}
				wantReport(t, out.Report, want)
				g.wantState(t, "p/comm", int64(test.rounds)) // what was done stays

				// The next phase does not begin with what was left.
				f := step(1)
				f.Phase = abi.StepEnd
				wantReport(t, g.fire(t, f).Report, phases.Report{Rounds: 1})
			})
		}
	}
}

// Handlers that are slow, each within its deadline, do not hold a run up for ever.
func TestHandlersAreBoundedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, *abi.Event) (*abi.Reply, error) { sleep(4 * time.Second); return nil, nil }
		p := worker("p", handle(abi.BeforeInference), phasestest.Reply(abi.Reply{
			Actions: fill(30, do("slow", nil)), Effects: fill(30, custom("slow", nil)),
		}), answers{"slow": slow}, answers{"slow": slow})
		g := build(t, phases.Config{HandlerTime: 10 * time.Second}, p)
		start := time.Now()
		out := g.fire(t, step(1))
		wantReport(t, out.Report, phases.Report{Rounds: 1, Processed: 3, Failed: 27, Diverged: true, Effects: 30, EffectsFailed: 27})
		if took := time.Since(start); took != 24*time.Second {
			t.Errorf("the phase took %v", took)
		}
		letters, forgotten := g.state.DeadLetters()
		if len(letters) != 54 || forgotten != 0 || letters[0].Err != "phase before_inference did not converge within 10s" ||
			letters[53].Err != "the effects before it took all the time" {
			t.Errorf("%d dead letters, the first %+v, the last %+v", len(letters), letters[0], letters[53])
		}
	})
}

// Actions of other phases wait, and are counted.
func TestActionsOfOtherPhases(t *testing.T) {
	t.Parallel()
	later := abi.Action{Phase: abi.StepEnd, Key: "note", Payload: "later"}
	p := worker("p", handle(abi.BeforeInference), phasestest.Sequence(schedule(later, do("note", "now")), silent), answers{"note": note}, nil)
	g := build(t, phases.Config{}, p)
	wantReport(t, g.fire(t, step(1)).Report, phases.Report{Rounds: 1, Processed: 1, Skipped: 1})
	wantReport(t, g.fire(t, step(1)).Report, phases.Report{Rounds: 1, Skipped: 1})
	g.wantState(t, "p/excl", list{"now"})
	f := step(1)
	f.Phase = abi.StepEnd // there is no hook here, only the action
	wantReport(t, g.fire(t, f).Report, phases.Report{Rounds: 1, Processed: 1})
	g.wantState(t, "p/excl", list{"now", "later"})
}

// A failed action is a dead letter, and the others continue.
func TestFailedActions(t *testing.T) {
	t.Parallel()
	handlers := answers{
		"note":    note,
		"broken":  phasestest.Fail(errors.New("broken\nin two")),
		"panics":  func(context.Context, *abi.Event) (*abi.Reply, error) { panic("at work") },
		"refused": updates(abi.Update{Key: "undeclared"}),
		"gates":   gate(abi.GateDecision{Action: abi.GateAllow}),
		"stops":   effects(abi.Effect{Type: abi.EffectStop, Code: "x"}),
		"parses": func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			if _, ok := e.Action.Payload.(string); !ok {
				return nil, errors.New("malformed payload")
			}
			return nil, nil
		},
	}
	tests := map[string]string{
		"broken": "broken in two", "panics": "panicked: at work", "refused": "does not declare this state key",
		"gates": "the hook's mode is observe", "stops": "this needs gate", "parses": "malformed payload",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := worker("p", handle(abi.BeforeInference), schedule(do(name, 7), do("note", "after")), handlers, nil)
			g := build(t, phases.Config{}, p)
			out := g.fire(t, step(1))
			wantReport(t, out.Report, phases.Report{Rounds: 1, Processed: 1, Failed: 1})
			g.wantState(t, "p/excl", list{"after"})
			letters, _ := g.state.DeadLetters()
			if len(letters) != 1 || !strings.Contains(letters[0].Err, text) {
				t.Fatalf("dead letters %+v, want one with %q", letters, text)
			}
			l := letters[0]
			l.Err = ""
			if want := (phases.DeadLetter{ID: 1, Phase: abi.BeforeInference, Key: "p/" + name, By: "p", Payload: int64(7)}); l != want {
				t.Errorf("dead letter %+v, want %+v", l, want)
			}
			// The thread keeps it.
			if again, _ := g.NewState(g.state.Export()).DeadLetters(); !reflect.DeepEqual(again, letters) {
				t.Errorf("the next run finds %+v", again)
			}
		})
	}
}

// A handler's policy may be to end the run. What was committed stays.
func TestFailedActionEndsTheRun(t *testing.T) {
	t.Parallel()
	p := worker("p", handle(abi.BeforeInference), schedule(do("broken", nil), do("note", "after")), answers{"broken": phasestest.Fail(errBroken), "note": note}, nil)
	for i := range p.Desc.Actions {
		p.Desc.Actions[i].OnFailure = abi.FailRun
	}
	g := build(t, phases.Config{}, p)
	out, err := g.Fire(t.Context(), g.state, step(1))
	var hookErr *phases.HookError
	if !errors.As(err, &hookErr) || hookErr.Handler != "p/broken" || !strings.Contains(err.Error(), `action "p/broken": broken`) {
		t.Errorf("error %v", err)
	}
	if out.Report.Failed != 1 || len(out.Messages) != 1 {
		t.Errorf("outcome %+v", out)
	}
	g.wantState(t, "p/excl", nil) // the other action waits for its next chance
}

// An action changes the run as a hook does, as far as its mode goes.
func TestActionTransforms(t *testing.T) {
	t.Parallel()
	p := worker("p", handle(abi.BeforeInference), schedule(do("mask", nil)), answers{"mask": effects(
		abi.Effect{Type: abi.EffectMaskMessage, MessageID: "m1"}, abi.Effect{Type: abi.EffectRequestCompaction, Focus: "x"},
	)}, nil)
	p.Desc.Actions[0].Mode = abi.ModeTransform
	g := build(t, phases.Config{}, p)
	out := g.fire(t, step(2))
	if out.Messages[0].Text() != "[masked]" || len(out.Edits) != 1 || out.Compact == nil {
		t.Errorf("outcome %+v", out)
	}
}

// Other plugins may schedule what is public, and nothing else. Without a handler
// nothing of the reply is applied.
func TestWhoMaySchedule(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reply abi.Reply
		want  string
	}{
		"public action":  {reply: abi.Reply{Actions: []abi.Action{do("q/open", "x")}}},
		"private action": {reply: abi.Reply{Actions: []abi.Action{do("q/own", "x")}}, want: "no scheduled action handler registered for q/own"},
		"no action":      {reply: abi.Reply{Actions: []abi.Action{do("none", "x")}}, want: "no scheduled action handler registered for none"},
		"no phase":       {reply: abi.Reply{Actions: []abi.Action{{Phase: "lunch", Key: "mine"}}}, want: `phase "lunch"`},
		"large payload":  {reply: abi.Reply{Actions: []abi.Action{do("mine", strings.Repeat("x", 2000))}}, want: "larger than the 1000 bytes"},
		"too many":       {reply: abi.Reply{Actions: fill(4, do("mine", nil))}, want: "4 are more than the 3"},
		"too many wait":  {reply: abi.Reply{Actions: fill(3, abi.Action{Phase: abi.RunEnd, Key: "mine"})}, want: "3 actions would wait, more than the 2"},
		"public effect":  {reply: abi.Reply{Effects: []abi.Effect{{Type: abi.EffectCustom, Key: "q/tell"}}}},
		"private effect": {reply: abi.Reply{Effects: []abi.Effect{{Type: abi.EffectCustom, Key: "q/keep"}}}, want: "no effect handler registered for q/keep"},
		"no effect":      {reply: abi.Reply{Effects: []abi.Effect{{Type: abi.EffectCustom, Key: "none"}}}, want: "no effect handler registered for none"},
		"large effect":   {reply: abi.Reply{Effects: []abi.Effect{{Type: abi.EffectCustom, Key: "q/tell", Payload: strings.Repeat("x", 2000)}}}, want: "larger than the 1000 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.reply.Updates = []abi.Update{{Key: "comm", Op: abi.OpAdd, Value: 1}}
			p := worker("p", handle(abi.BeforeInference), phasestest.Reply(test.reply), answers{"mine": silent}, nil)
			q := worker("q", handle(abi.BeforeInference), nil, answers{"open": note, "own": note}, answers{"tell": silent, "keep": silent})
			for _, list := range [][]abi.Handler{q.Desc.Actions, q.Desc.Effects} {
				for i := range list {
					list[i].Public = list[i].Name == "open" || list[i].Name == "tell"
				}
			}
			g := build(t, phases.Config{Limits: phases.Limits{Actions: 3, PendingActions: 2, ActionBytes: 1000}}, p, q)
			out := g.fire(t, step(1))
			rec := g.Of("p")[0]
			if test.want == "" {
				if rec.Err != "" || out.Report.Processed+out.Report.Effects != 1 {
					t.Errorf("%+v, record %+v", out.Report, rec)
				}
				return
			}
			if len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, test.want) {
				t.Errorf("refused %+v, want a reason with %q", rec.Refused, test.want)
			}
			if g.state.Revision() != 0 || out.Report.Processed+out.Report.Effects != 0 {
				t.Errorf("committed all the same: %+v", out.Report)
			}
		})
	}
}

// A context that ends leaves what was not executed in the queue.
func TestCancelledBetweenActions(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := worker("p", handle(abi.BeforeInference), phasestest.Sequence(schedule(do("note", 1), do("wait", nil), do("note", 2)), silent), answers{
		"note": note,
		"wait": phasestest.Sequence(func(ctx context.Context, _ *abi.Event) (*abi.Reply, error) {
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		}, silent),
	}, nil)
	g := build(t, phases.Config{}, p)
	if _, err := g.Fire(ctx, g.state, step(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	g.wantState(t, "p/excl", list{int64(1)})
	if letters, _ := g.state.DeadLetters(); len(letters) != 0 {
		t.Errorf("dead letters %+v", letters)
	}
	wantReport(t, g.fire(t, step(1)).Report, phases.Report{Rounds: 1, Processed: 2})
	g.wantState(t, "p/excl", list{int64(1), int64(2)})
}

// An action in the queue survives the process; one whose plugin is not there is
// counted, and waits.
func TestQueueMoves(t *testing.T) {
	t.Parallel()
	plugin := func() *phasestest.Scripted {
		return worker("p", handle(abi.BeforeInference), nil, answers{"note": note}, nil)
	}
	g := build(t, phases.Config{}, plugin())
	later := abi.Action{Phase: abi.StepEnd, Key: "p/note", Payload: "x"}
	if _, err := g.Submit(t.Context(), g.state, phases.Command{Actions: []abi.Action{later}, Batch: state.Batch{
		Updates: []state.Update{{Key: "p/comm", Op: abi.OpAdd, Value: 3}},
	}}); err != nil {
		t.Fatal(err)
	}
	img := g.state.Store().Export()

	// Handed to an agent without the plugin: nothing is lost.
	without := build(t, phases.Config{}, plug("q", handle(abi.StepEnd), silent))
	st, err := without.Resume(img, false)
	if err != nil {
		t.Fatal(err)
	}
	f := step(1)
	f.Phase = abi.StepEnd
	out, err := without.Fire(t.Context(), st, f)
	if err != nil {
		t.Fatal(err)
	}
	wantReport(t, out.Report, phases.Report{Rounds: 1, Orphaned: 1})

	// And back, in the same store and in another one.
	back := build(t, phases.Config{}, plugin())
	resumed, err := back.Resume(st.Store().Export(), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := back.Adopt(st); err != nil {
		t.Fatal(err)
	}
	back.wantBoth(t, f, st, resumed)
}

// wantBoth fires a phase at both states and expects the same of them.
func (g *rig) wantBoth(t *testing.T, f phases.Frame, states ...*phases.State) {
	t.Helper()
	for _, st := range states {
		out, err := g.Fire(t.Context(), st, f)
		if err != nil {
			t.Fatal(err)
		}
		wantReport(t, out.Report, phases.Report{Rounds: 1, Processed: 1})
		if v, _ := st.Read("p/excl"); !reflect.DeepEqual(v, list{"x"}) {
			t.Errorf("the action came to %v", v)
		}
		if v, _ := st.Read("p/comm"); v != int64(3) {
			t.Errorf("run-scoped state is %v", v)
		}
	}
}

func submit(t *testing.T, g *rig, c phases.Command) phases.Report {
	t.Helper()
	report, err := g.Submit(t.Context(), g.state, c)
	if err != nil {
		t.Fatal(err)
	}
	return report
}
