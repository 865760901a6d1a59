package phases_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
)

// count sets the exclusive key to one more than it saw.
func count(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	n, _ := e.State["excl"].(int64)
	return &abi.Reply{
		Updates: []abi.Update{{Key: "excl", Op: abi.OpSet, Value: n + 1}},
		Effects: []abi.Effect{{Type: abi.EffectEmit, EventType: "counted", Payload: n + 1}},
	}, nil
}

func TestFireWithoutHooks(t *testing.T) {
	t.Parallel()
	g := build(t, phases.Config{})
	f := step(3)
	for _, p := range abi.Phases() {
		f.Phase = p
		if out := g.fire(t, f); !reflect.DeepEqual(out, phases.Outcome{Messages: f.Messages, Report: phases.Report{Rounds: 1}}) {
			t.Errorf("%s: %+v", p, out)
		}
	}
}

//nolint:paralleltest // allocations are counted for the whole process
func TestFireWithoutHooksAllocatesNothing(t *testing.T) {
	g := build(t, phases.Config{})
	f, ctx := step(3), t.Context()
	if n := testing.AllocsPerRun(100, func() { _, _ = g.Fire(ctx, g.state, f) }); n != 0 {
		t.Errorf("a phase without hooks allocates %v times", n)
	}
}

func TestFireErrors(t *testing.T) {
	t.Parallel()
	p := plug("p", abi.Hook{Phase: abi.BeforeInference}, silent)
	g := build(t, phases.Config{}, p)
	f := step(1)
	f.Phase = "lunch"
	if _, err := g.Fire(t.Context(), g.state, f); err == nil || !strings.Contains(err.Error(), `phase "lunch"`) {
		t.Errorf("unknown phase: %v", err)
	}
	if _, err := g.Fire(t.Context(), nil, step(1)); err == nil || !strings.Contains(err.Error(), "no State") {
		t.Errorf("no state: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out, err := g.Fire(ctx, g.state, step(1))
	if !errors.Is(err, context.Canceled) || len(out.Messages) != 1 {
		t.Errorf("cancelled: %v, %+v", err, out)
	}
	f.Phase = abi.RunEnd // no hooks
	if _, err := g.Fire(ctx, g.state, f); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled without hooks: %v", err)
	}
	if n := len(p.Events()); n != 0 {
		t.Errorf("the hook was called %d times", n)
	}
}

// A context that ends while hooks run applies nothing.
func TestFireCancelledMeanwhile(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	quick := plug("a", abi.Hook{Phase: abi.BeforeInference}, count)
	waits := plug("b", abi.Hook{Phase: abi.BeforeInference, OnFailure: abi.FailQuarantine}, func(ctx context.Context, _ *abi.Event) (*abi.Reply, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	g := build(t, phases.Config{Limits: phases.Limits{QuarantineAfter: 1}}, quick, waits)
	out, err := g.Fire(ctx, g.state, step(1))
	if !errors.Is(err, context.Canceled) || errors.Is(err, phases.ErrDeadline) {
		t.Errorf("error %v", err)
	}
	if len(out.Emitted) != 0 || g.state.Revision() != 0 {
		t.Errorf("applied: %+v, revision %d", out, g.state.Revision())
	}
	if rec := g.only(t, "b"); rec.Err == "" || rec.Quarantined {
		t.Errorf("record %+v: a cancelled call is no failure of the hook", rec)
	}
}

// A hook is called at its own phase and at no other.
func TestHooksOfOtherPhases(t *testing.T) {
	t.Parallel()
	p := plug("p", abi.Hook{Phase: abi.StepStart}, silent)
	p.Desc.Hooks = append(p.Desc.Hooks, abi.Hook{Phase: abi.StepEnd, Mode: abi.ModeObserve})
	g := build(t, phases.Config{}, p, plug("q", abi.Hook{Phase: abi.RunEnd}, silent))
	for _, phase := range abi.Phases() {
		g.fire(t, phasestest.Frame(phase))
	}
	var seen []abi.Phase
	for _, e := range p.Events() {
		seen = append(seen, e.Phase)
	}
	if want := []abi.Phase{abi.StepStart, abi.StepEnd}; !slices.Equal(seen, want) {
		t.Errorf("called at %v, want %v", seen, want)
	}
}

// Replies that say nothing are no commit; those of several plugins are one.
func TestEmptyReplies(t *testing.T) {
	t.Parallel()
	h := abi.Hook{Phase: abi.BeforeInference}
	g := build(t, phases.Config{}, plug("a", h, updates()), plug("b", h, phasestest.Reply(abi.Reply{})))
	out := g.fire(t, step(1))
	if g.state.Revision() != 0 || !reflect.DeepEqual(out, phases.Outcome{Messages: step(1).Messages, Report: phases.Report{Rounds: 1}}) {
		t.Errorf("revision %d, outcome %+v", g.state.Revision(), out)
	}
	seen := func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		if e.State["comm"] != nil {
			return nil, errors.New("it sees what a sibling did")
		}
		return &abi.Reply{Updates: []abi.Update{{Key: "comm", Op: abi.OpAdd, Value: 1}}}, nil
	}
	g = build(t, phases.Config{}, twice(plug("a", h, seen)), plug("b", h, seen))
	g.fire(t, step(1))
	g.wantState(t, "a/comm", int64(2))
	if got := g.state.Revision(); got != 1 || len(g.Records()) != 3 {
		t.Errorf("revision %d, want one commit of three hooks", got)
	}
}

// Hooks of one phase run at the same time: each waits for the other.
func TestHooksRunConcurrently(t *testing.T) {
	t.Parallel()
	met := make(chan struct{})
	meet := func(ctx context.Context, _ *abi.Event) (*abi.Reply, error) {
		select {
		case met <- struct{}{}:
		case <-met:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectEmit, EventType: "met"}}}, nil
	}
	g := build(t, phases.Config{}, plug("a", abi.Hook{Phase: abi.BeforeInference}, meet), plug("b", abi.Hook{Phase: abi.BeforeInference}, meet))
	out := g.fire(t, step(1))
	if len(out.Emitted) != 2 || out.Emitted[0].By != "a" || out.Emitted[1].By != "b" {
		t.Errorf("emitted %+v", out.Emitted)
	}
}

// Of two hooks on one exclusive key the later runs again on what the first made.
func TestExclusiveKeyConflict(t *testing.T) {
	t.Parallel()
	p := twice(plug("p", abi.Hook{Phase: abi.BeforeInference}, count))
	p.Desc.Hooks = append(p.Desc.Hooks, p.Desc.Hooks[0]) // a third one
	other := plug("z", abi.Hook{Phase: abi.BeforeInference}, count)
	g := build(t, phases.Config{}, p, other)
	out := g.fire(t, step(1))
	g.wantState(t, "p/excl", int64(3))
	g.wantState(t, "z/excl", int64(1))
	if got := g.state.Revision(); got != 1 {
		t.Errorf("revision %d, want one commit", got)
	}
	var emitted []any
	for _, e := range out.Emitted {
		emitted = append(emitted, e.By, e.Payload)
	}
	if want := []any{"p", int64(1), "z", int64(1), "p", int64(2), "p", int64(3)}; !reflect.DeepEqual(emitted, want) {
		t.Errorf("emitted %v, want %v: the deferred ones last, none twice", emitted, want)
	}
	var attempts []int
	for _, rec := range g.Records() {
		attempts = append(attempts, rec.Attempt)
		if deferred := rec.Deferred != ""; deferred && (len(rec.Applied) > 0 || !strings.Contains(rec.Deferred, `"p/excl" was changed by "p"`)) {
			t.Errorf("record of a deferred call: %+v", rec)
		}
	}
	if want := []int{1, 1, 1, 1, 2, 2}; !reflect.DeepEqual(attempts, want) {
		t.Errorf("attempts %v, want %v", attempts, want)
	}
	if got := g.only(t, "z").Applied; !reflect.DeepEqual(got, []phases.Change{{What: "set", Target: "z/excl"}, {What: "emit", Target: "counted"}}) {
		t.Errorf("applied by z: %+v", got)
	}
}

func TestCommutativeKeysMerge(t *testing.T) {
	t.Parallel()
	add := abi.Update{Key: "comm", Op: abi.OpAdd, Value: 2}
	tests := map[string]struct {
		first, second abi.Update
		want          any
		calls         int
	}{
		"commutative operations":      {add, add, int64(4), 2},
		"set after add is exclusive":  {add, abi.Update{Key: "comm", Op: abi.OpSet, Value: 7}, int64(7), 3},
		"add after set is deferred":   {abi.Update{Key: "comm", Op: abi.OpSet, Value: 7}, add, int64(9), 3},
		"exclusive key, add and add":  {abi.Update{Key: "excl", Op: abi.OpAdd, Value: 2}, abi.Update{Key: "excl", Op: abi.OpAdd, Value: 3}, int64(5), 3},
		"different keys do not touch": {add, abi.Update{Key: "kept", Op: abi.OpSet, Value: 1}, int64(2), 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := twice(plug("p", abi.Hook{Phase: abi.BeforeInference}, nil))
			p.Desc.Hooks[0].Messages, p.Desc.Hooks[1].Messages = abi.ViewLast, abi.ViewNone
			p.Script[abi.BeforeInference] = func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
				if len(e.Messages) > 0 {
					return &abi.Reply{Updates: []abi.Update{test.first}}, nil
				}
				return &abi.Reply{Updates: []abi.Update{test.second}}, nil
			}
			g := build(t, phases.Config{}, p)
			g.fire(t, step(1))
			g.wantState(t, "p/"+test.first.Key, test.want)
			if got := len(p.Events()); got != test.calls {
				t.Errorf("%d calls, want %d", got, test.calls)
			}
		})
	}
}

// Two hooks on one message: the second runs again and sees what the first did.
func TestMessageConflict(t *testing.T) {
	t.Parallel()
	h := abi.Hook{Phase: abi.BeforeInference, Messages: abi.ViewAll}
	grow := func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Effects: []abi.Effect{{
			Type: abi.EffectReplaceMessage, MessageID: "m2", Content: text(e.Messages[1].Text() + "!"), Note: "louder",
		}}}, nil
	}
	mask := effects(abi.Effect{Type: abi.EffectMaskMessage, MessageID: "m1"})
	g := build(t, phases.Config{}, plug("a", h, grow), plug("b", h, grow), plug("c", h, mask))
	f := step(3)
	out := g.fire(t, f)
	if got := out.Messages[1].Text(); got != "text of m2!!" {
		t.Errorf("m2 is %q", got)
	}
	if f.Messages[1].Text() != "text of m2" {
		t.Error("the frame's message was changed")
	}
	if got := out.Messages[0].Text(); got != "[masked]" {
		t.Errorf("m1 is %q", got)
	}
	want := []phases.Edit{
		{MessageID: "m2", Kind: phases.EditReplace, By: "a", Note: "louder", Message: abi.Message{ID: "m2", Role: abi.RoleUser, Content: text("text of m2!")}},
		{MessageID: "m1", Kind: phases.EditMask, By: "c", Message: abi.Message{ID: "m1", Role: abi.RoleUser, Content: text("[masked]")}},
		{MessageID: "m2", Kind: phases.EditReplace, By: "b", Note: "louder", Message: abi.Message{ID: "m2", Role: abi.RoleUser, Content: text("text of m2!!")}},
	}
	if !reflect.DeepEqual(out.Edits, want) {
		t.Errorf("edits\n%+v, want\n%+v", out.Edits, want)
	}
	if got := g.Of("b"); len(got) != 2 || got[0].Deferred == "" || got[1].Attempt != 2 {
		t.Errorf("records of b: %+v", got)
	}
}

// A refused reply leaves nothing behind in messages that others changed, nor in
// those that they appended.
func TestRefusedReplyIsUndone(t *testing.T) {
	t.Parallel()
	h := abi.Hook{Phase: abi.BeforeInference}
	replace := func(id, s string) abi.Effect {
		return abi.Effect{Type: abi.EffectReplaceMessage, MessageID: id, Content: text(s)}
	}
	add := abi.Effect{Type: abi.EffectAppendMessages, Messages: []abi.Message{user("")}}
	emit := abi.Effect{Type: abi.EffectEmit, EventType: "x"}
	g := build(t, phases.Config{},
		plug("a", h, effects(replace("m1", "good"), add, emit, emit, emit)),
		// Collides with a, so that it sees the appended message, and is refused then.
		plug("aa", abi.Hook{Phase: abi.BeforeInference, Messages: abi.ViewLast}, func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			return &abi.Reply{Effects: []abi.Effect{
				replace("m1", "bad"), replace(e.Messages[0].ID, "bad"), {Type: abi.EffectPinMessage, MessageID: "none"},
			}}, nil
		}),
		plug("b", h, effects(replace("m2", "bad"), add, emit, abi.Effect{Type: abi.EffectPinMessage, MessageID: "none"})),
		plug("c", h, effects(replace("m3", "good"), emit)))
	out := g.fire(t, step(3))
	for i, want := range []string{"good", "text of m2", "good", "text of "} {
		if got := out.Messages[i].Text(); got != want {
			t.Errorf("message %d is %q, want %q", i, got, want)
		}
	}
	if out.Appended[0].Text() == "bad" {
		t.Error("the appended message was changed")
	}
	if len(out.Messages) != 4 || len(out.Edits) != 2 || len(out.Appended) != 1 || len(out.Emitted) != 4 || out.Emitted[3].By != "c" {
		t.Errorf("outcome %+v", out)
	}
}

// One reply may change many messages; they are then found through an index.
func TestManyEffects(t *testing.T) {
	t.Parallel()
	var es []abi.Effect
	for i := range 20 {
		es = append(es, abi.Effect{Type: abi.EffectMaskMessage, MessageID: fmt.Sprintf("m%d", i+1), Text: "gone"})
		if i == 5 {
			es = append(es, abi.Effect{Type: abi.EffectAppendMessages, Messages: []abi.Message{user("")}})
		}
	}
	h := abi.Hook{Phase: abi.BeforeInference, Messages: abi.ViewLast}
	again := func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Effects: []abi.Effect{
			{Type: abi.EffectMaskMessage, MessageID: "m1", Text: "again"}, // collides, so it sees the appended one
			{Type: abi.EffectMaskMessage, MessageID: e.Messages[0].ID, Text: "theirs"},
		}}, nil
	}
	unknown := effects(append(slices.Clone(es[:8]), abi.Effect{Type: abi.EffectMaskMessage, MessageID: "m99"})...)
	g := build(t, phases.Config{}, plug("a", h, effects(es...)), plug("b", h, again), plug("c", h, unknown))
	out := g.fire(t, step(20))
	for i, m := range out.Messages {
		want := map[int]string{0: "again", 20: "theirs"}[i]
		if want == "" {
			want = "gone"
		}
		if m.Text() != want {
			t.Errorf("message %d is %q, want %q", i, m.Text(), want)
		}
	}
	if len(out.Messages) != 21 || out.Appended[0].Text() != "theirs" {
		t.Errorf("appended %+v", out.Appended)
	}
	if recs := g.Of("c"); len(recs) != 2 || len(recs[1].Refused) != 1 || !strings.Contains(recs[1].Refused[0].Reason, `"m99"`) {
		t.Errorf("records of c: %+v", recs)
	}
}

func TestPinsDoNotCollide(t *testing.T) {
	t.Parallel()
	h := abi.Hook{Phase: abi.BeforeInference}
	pin := effects(abi.Effect{Type: abi.EffectPinMessage, MessageID: "m1"})
	mask := effects(abi.Effect{Type: abi.EffectMaskMessage, MessageID: "m1"})
	g := build(t, phases.Config{}, plug("a", h, pin), plug("b", h, pin), plug("c", h, mask))
	out := g.fire(t, step(1))
	if !out.Messages[0].Pinned || out.Messages[0].Text() != "text of m1" || len(out.Edits) != 1 {
		t.Errorf("m1 is %+v after %+v", out.Messages[0], out.Edits)
	}
	if rec := g.only(t, "b"); rec.Err != "" || rec.Attempt != 1 {
		t.Errorf("record of b: %+v", rec)
	}
	if recs := g.Of("c"); len(recs) != 2 || !strings.Contains(recs[1].Err, `message "m1" is pinned`) {
		t.Errorf("records of c: %+v", recs)
	}
}

// Phases fired on one state from several goroutines take turns: no update of an
// exclusive key is lost.
func TestFireFromManyGoroutines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := build(t, phases.Config{}, plug("p", abi.Hook{Phase: abi.AfterToolExecute}, func(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
			sleep(time.Millisecond) // all others come meanwhile
			return count(ctx, e)
		}))
		done := make(chan error)
		const n = 20
		for range n {
			go func() {
				_, err := g.Fire(t.Context(), g.state, phasestest.Frame(abi.AfterToolExecute))
				done <- err
			}()
		}
		for range n {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		g.wantState(t, "p/excl", int64(n))
	})
}

// A hook that fires another phase of its own run would wait for itself; its
// deadline ends that.
func TestFireWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g *rig
		p := plug("p", abi.Hook{Phase: abi.BeforeInference}, func(ctx context.Context, _ *abi.Event) (*abi.Reply, error) {
			_, err := g.Fire(ctx, g.state, step(1))
			return nil, err
		})
		g = build(t, phases.Config{}, p)
		g.fire(t, step(1))
		if rec := g.only(t, "p"); !strings.Contains(rec.Err, "waiting for another phase of the run") || rec.Duration != 5*time.Second {
			t.Errorf("record %+v", rec)
		}
	})
}

func TestRequestEffects(t *testing.T) {
	t.Parallel()
	h := abi.Hook{Phase: abi.BeforeInference, Mode: abi.ModeGate}
	inject := func(key, s string) abi.Effect {
		return abi.Effect{Type: abi.EffectAddContext, Context: &abi.ContextMessage{Key: key, Content: text(s)}}
	}
	a := plug("a", h, effects(
		inject("k", "old"), inject("k", "new"),
		abi.Effect{Type: abi.EffectExcludeTools, Tools: []string{"rm", "dd"}},
		abi.Effect{Type: abi.EffectIncludeTools, Tools: []string{"ls"}},
		abi.Effect{Type: abi.EffectOverrideInference, Override: &abi.InferenceOverride{Model: new("small"), Temperature: new(0.5)}},
		abi.Effect{Type: abi.EffectRequestCompaction},
	))
	b := plug("b", h, effects(
		inject("k", "theirs"),
		abi.Effect{Type: abi.EffectExcludeTools, Tools: []string{"rm"}},
		abi.Effect{Type: abi.EffectIncludeTools},
		abi.Effect{Type: abi.EffectOverrideInference, Override: &abi.InferenceOverride{Model: new("large"), MaxTokens: new(int64(9))}},
		abi.Effect{Type: abi.EffectStop, Code: "first", Detail: "b was first"},
		abi.Effect{Type: abi.EffectRequestCompaction, Focus: "the bug"},
	))
	c := plug("c", h, effects(
		abi.Effect{Type: abi.EffectStop, Code: "second"},
		abi.Effect{Type: abi.EffectRequestCompaction, Focus: "another"},
	))
	out := build(t, phases.Config{}, a, b, c).fire(t, step(1))
	in := func(key, s string) abi.ContextMessage {
		return abi.ContextMessage{Key: key, Role: abi.RoleSystem, Target: abi.TargetSystem, Content: text(s)}
	}
	if want := []abi.ContextMessage{in("a/k", "new"), in("b/k", "theirs")}; !reflect.DeepEqual(out.Context, want) {
		t.Errorf("context %+v", out.Context)
	}
	if !reflect.DeepEqual(out.ExcludeTools, []string{"dd", "rm"}) || !reflect.DeepEqual(out.IncludeTools, [][]string{{"ls"}, {}}) {
		t.Errorf("excluded %q, included %q", out.ExcludeTools, out.IncludeTools)
	}
	if want := (&abi.InferenceOverride{Model: new("large"), Temperature: new(0.5), MaxTokens: new(int64(9))}); !reflect.DeepEqual(out.Override, want) {
		t.Errorf("override %+v", out.Override)
	}
	if want := (&phases.Stop{Code: "first", Detail: "b was first", By: "b"}); !reflect.DeepEqual(out.Stop, want) {
		t.Errorf("stop %+v", out.Stop)
	}
	if want := (&phases.CompactionRequest{Focus: "the bug", By: "b"}); !reflect.DeepEqual(out.Compact, want) {
		t.Errorf("compaction %+v", out.Compact)
	}
}

// keeper is a plugin that keeps something for a run.
type keeper struct {
	phasestest.Scripted

	ended []string
}

// RunEnded implements phases.Ender.
func (k *keeper) RunEnded(run *abi.RunIdentity) {
	k.ended = append(k.ended, run.ThreadID+" "+run.RunID)
}

// Who keeps something for a run is notified of its last phase, with a hook or without, and also when that fails.
func TestRunEnded(t *testing.T) {
	t.Parallel()
	fails := map[abi.Phase]phasestest.Answer{abi.RunEnd: func(context.Context, *abi.Event) (*abi.Reply, error) { return nil, errors.New("no") }}
	idle := &keeper{Scripted: phasestest.Scripted{Desc: abi.Description{Name: "idle"}}}
	broken := &keeper{Scripted: phasestest.Scripted{Script: fails, Desc: abi.Description{
		Name: "broken", Hooks: []abi.Hook{{Phase: abi.RunEnd, Mode: abi.ModeObserve, OnFailure: abi.FailRun}},
	}}}
	for _, list := range [][]phases.Plugin{{idle}, {idle, broken}} {
		idle.ended, broken.ended = nil, nil
		rt, err := phases.New(phases.Config{Plugins: list})
		if err != nil {
			t.Fatal(err)
		}
		st := rt.NewState(nil)
		for _, p := range []abi.Phase{abi.RunStart, abi.StepEnd, abi.RunEnd} {
			_, err := rt.Fire(t.Context(), st, phases.Frame{Phase: p, Run: abi.RunIdentity{ThreadID: "t", RunID: "r"}})
			if failed := len(list) == 2 && p == abi.RunEnd; (err != nil) != failed {
				t.Errorf("%s: %v", p, err)
			}
			if n := len(idle.ended); n > 0 && p != abi.RunEnd {
				t.Errorf("%s is the end of a run", p)
			}
		}
		if !slices.Equal(idle.ended, []string{"t r"}) || len(list) == 2 && !slices.Equal(broken.ended, []string{"t r"}) {
			t.Errorf("received %q and %q", idle.ended, broken.ended)
		}
	}
}
