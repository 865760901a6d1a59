package phases_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
	"github.com/mortise-dev/mortise/phases/state"
)

// A filter leaves out hooks, never state, handlers, or the built-in ones.
func TestActive(t *testing.T) {
	t.Parallel()
	h := handle(abi.BeforeInference)
	plugins := []phases.Plugin{plug("a", h, count), worker("b", h, count, answers{"note": note}, answers{"tell": silent}), plug("c", h, count)}
	builtins := []phases.Plugin{plug("limits", h, count)}
	tests := map[string]struct {
		active []string
		want   string
	}{
		"no filter": {nil, "a b c limits"},
		"some":      {[]string{"a", "c"}, "a c limits"},
		"a builtin": {[]string{"limits"}, "limits"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := &phasestest.Recorder{}
			r, err := phases.New(phases.Config{Plugins: plugins, Builtins: builtins, Active: test.active, Record: recorder.Record})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.Order(abi.BeforeInference), " "); got != test.want {
				t.Errorf("order %q, want %q", got, test.want)
			}
			st := r.NewState(map[string]any{"b/kept": int64(5)})
			if _, err := r.Fire(t.Context(), st, step(1)); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(plugged(recorder), " "); got != test.want {
				t.Errorf("called were %q", got)
			}
			// What is left out keeps its state and its handlers.
			if _, err := r.Submit(t.Context(), st, phases.Command{
				Batch:   state.Batch{Updates: []state.Update{{Key: "b/kept", Op: abi.OpAdd, Value: 1}}},
				Actions: []abi.Action{do("b/note", "x")}, Effects: []abi.Effect{custom("b/tell", nil)},
			}); err != nil {
				t.Error(err)
			}
			if got := st.Export()["b/kept"]; got != int64(6) {
				t.Errorf("kept is %v", got)
			}
		})
	}
}

func plugged(r *phasestest.Recorder) []string {
	var out []string
	for _, rec := range r.Records() {
		out = append(out, rec.Plugin)
	}
	return out
}

func TestEnvironmentRefuses(t *testing.T) {
	t.Parallel()
	a := plug("a", handle(abi.BeforeInference), silent)
	handlers := func(actions, effects []abi.Handler) []phases.Plugin {
		return []phases.Plugin{&phasestest.Scripted{Desc: abi.Description{Name: "h", Actions: actions, Effects: effects}}}
	}
	tests := map[string]struct {
		cfg  phases.Config
		want string
	}{
		"active":          {phases.Config{Plugins: []phases.Plugin{a}, Active: []string{"a", "gard"}}, `Config.Active names "gard"`},
		"settings":        {phases.Config{Plugins: []phases.Plugin{a}, Settings: map[string]any{"b": 1}}, `Config.Settings names "b"`},
		"settings value":  {phases.Config{Plugins: []phases.Plugin{a}, Settings: map[string]any{"a": struct{}{}}}, `plugin "a": Config.Settings: `},
		"nil builtin":     {phases.Config{Builtins: []phases.Plugin{nil}}, "Config.Builtins[0]: is nil"},
		"nil plugin":      {phases.Config{Builtins: []phases.Plugin{a}, Plugins: []phases.Plugin{nil}}, "Config.Plugins[0]: is nil"},
		"builtin's name":  {phases.Config{Builtins: []phases.Plugin{a}, Plugins: []phases.Plugin{a}}, "there are two plugins of that name"},
		"action twice":    {phases.Config{Plugins: handlers([]abi.Handler{{Name: "x"}, {Name: "x"}}, nil)}, "action handler already registered: x"},
		"effect twice":    {phases.Config{Plugins: handlers(nil, []abi.Handler{{Name: "x"}, {Name: "x"}})}, "effect handler already registered: x"},
		"action name":     {phases.Config{Plugins: handlers([]abi.Handler{{}}, nil)}, "the name must have"},
		"action mode":     {phases.Config{Plugins: handlers([]abi.Handler{{Name: "x", Mode: "loud"}}, nil)}, `mode "loud"`},
		"effect policy":   {phases.Config{Plugins: handlers(nil, []abi.Handler{{Name: "x", OnFailure: "cry"}})}, `on_failure "cry"`},
		"native key":      {phases.Config{Plugins: []phases.Plugin{native{Scripted: a, keys: map[string]state.Native{"none": {}}}}}, `NativeState names the key "none"`},
		"negative limit":  {phases.Config{Limits: phases.Limits{Rounds: -1}}, "Config.Limits.Rounds is -1"},
		"negative letter": {phases.Config{Limits: phases.Limits{DeadLetters: -1}}, "Config.Limits.DeadLetters is -1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := phases.New(test.cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// What is configured for an agent reaches the hooks, as a copy.
func TestSettings(t *testing.T) {
	t.Parallel()
	settings := fields{"level": 3}
	a, b := plug("a", handle(abi.BeforeInference), silent), plug("b", handle(abi.BeforeInference), silent)
	g := build(t, phases.Config{Settings: map[string]any{"a": settings}}, a, b)
	settings["level"] = 4
	g.fire(t, step(1))
	if got := a.Events()[0].Config; !reflect.DeepEqual(got, fields{"level": int64(3)}) || b.Events()[0].Config != nil {
		t.Errorf("config %v and %v", got, b.Events()[0].Config)
	}
}

// native is a plugin with everything that only native ones have.
type native struct {
	*phasestest.Scripted

	keys           map[string]state.Native
	activate, gone phasestest.Answer
}

func (n native) NativeState() map[string]state.Native { return n.keys }

func (n native) Activate(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
	return n.activate(ctx, e)
}

func (n native) Deactivate(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
	return n.gone(ctx, e)
}

func TestActivate(t *testing.T) {
	t.Parallel()
	answer := func(v string) phasestest.Answer {
		return func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			if e.Run.RunID != "r" || e.Config != "settings" {
				return nil, fmt.Errorf("event %+v", e)
			}
			return &abi.Reply{Updates: []abi.Update{{Key: "kept", Op: abi.OpAppend, Value: list{v, string(e.Phase)}}}}, nil
		}
	}
	a := native{Scripted: plug("a", handle(abi.BeforeInference), silent), activate: answer("on"), gone: answer("off")}
	run := abi.RunIdentity{RunID: "r"}
	g := build(t, phases.Config{Settings: map[string]any{"a": "settings"}}, a, plug("b", handle(abi.BeforeInference), silent))
	if err := errors.Join(g.Activate(t.Context(), g.state, run), g.Deactivate(t.Context(), g.state, run)); err != nil {
		t.Fatal(err)
	}
	g.wantState(t, "a/kept", list{"on", "activate", "off", "deactivate"})
	if recs := g.Records(); len(recs) != 2 || recs[0].Phase != "activate" || g.state.Revision() != 2 {
		t.Errorf("records %+v", recs)
	}

	// A plugin that is left out is not called.
	g = build(t, phases.Config{Active: []string{"b"}, Settings: map[string]any{"a": "settings"}}, a, plug("b", handle(abi.BeforeInference), silent))
	if err := g.Activate(t.Context(), g.state, run); err != nil || g.state.Revision() != 0 {
		t.Errorf("%v, revision %d", err, g.state.Revision())
	}
}

func TestActivateFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer phasestest.Answer
		want   string
	}{
		"error":   {phasestest.Fail(errBroken), "phases: activate: plugin \"a\": broken"},
		"panic":   {func(context.Context, *abi.Event) (*abi.Reply, error) { panic("on") }, "panicked: on"},
		"effects": {effects(abi.Effect{Type: abi.EffectEmit, EventType: "x"}), "may only update state"},
		"actions": {schedule(do("x", nil)), "may only update state"},
		"gate":    {gate(abi.GateDecision{Action: abi.GateAllow}), "reply refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := native{Scripted: plug("b", handle(abi.BeforeInference), silent), activate: updates(abi.Update{Key: "kept", Op: abi.OpSet, Value: 1})}
			g := build(t, phases.Config{}, native{Scripted: plug("a", handle(abi.BeforeInference), silent), activate: test.answer}, good)
			err := g.Activate(t.Context(), g.state, abi.RunIdentity{})
			if err == nil || !strings.Contains(err.Error(), test.want) || g.state.Revision() != 0 {
				t.Errorf("error %v, want one with %q; revision %d", err, test.want, g.state.Revision())
			}
		})
	}
}

// A native key may have a reducer of its own. A guest has the operations of the
// contract.
func TestNativeReducer(t *testing.T) {
	t.Parallel()
	largest := state.Native{Reduce: func(old any, op abi.Op, operand any) (any, error) {
		a, _ := old.(int64)
		b, ok := operand.(int64)
		if op != "largest" || !ok {
			return nil, errors.New("only largest of numbers")
		}
		return max(a, b), nil
	}}
	p := twice(plug("p", handle(abi.BeforeInference), func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Updates: []abi.Update{{Key: "comm", Op: "largest", Value: len(e.Messages)}}}, nil
	}))
	p.Desc.Hooks[0].Messages = abi.ViewAll
	with := build(t, phases.Config{}, native{Scripted: p, keys: map[string]state.Native{"comm": largest}})
	with.fire(t, step(3))
	with.fire(t, step(2))
	with.wantState(t, "p/comm", int64(3))
	if n := len(p.Events()); n != 4 {
		t.Errorf("%d calls: a commutative reducer needs no second one", n)
	}

	without := build(t, phases.Config{}, p)
	without.fire(t, step(3))
	if rec := without.Of("p")[0]; len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, `operation "largest" is not one of`) {
		t.Errorf("record %+v", rec)
	}
	without.wantState(t, "p/comm", nil)
}

// A reducer that panics is a refused reply, not a broken store.
func TestNativeReducerPanics(t *testing.T) {
	t.Parallel()
	p := plug("p", handle(abi.BeforeInference), updates(abi.Update{Key: "comm", Op: abi.OpAdd, Value: 1}, abi.Update{Key: "excl", Op: "boom"}))
	g := build(t, phases.Config{}, native{Scripted: p, keys: map[string]state.Native{
		"excl": {Reduce: func(any, abi.Op, any) (any, error) { panic("boom") }},
	}})
	g.fire(t, step(1))
	if rec := g.only(t, "p"); len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, "reducer panicked: boom") {
		t.Errorf("record %+v", rec)
	}
	g.wantState(t, "p/comm", nil)
}

// A plugin whose keys were taken away fails by itself, and not the run; adopting the
// state gives them back.
func TestUninstalledKeys(t *testing.T) {
	t.Parallel()
	g := build(t, phases.Config{}, plug("p", handle(abi.BeforeInference), count), plug("q", handle(abi.BeforeInference), count))
	if err := g.state.Store().Uninstall("p"); err != nil {
		t.Fatal(err)
	}
	g.fire(t, step(1))
	if rec := g.only(t, "p"); len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, "must adopt it") {
		t.Errorf("record %+v", rec)
	}
	g.wantState(t, "p/excl", nil)
	g.wantState(t, "q/excl", int64(1))
	if err := g.Adopt(g.state); err != nil {
		t.Fatal(err)
	}
	g.fire(t, step(1))
	g.wantState(t, "p/excl", int64(1))
	g.wantState(t, "q/excl", int64(2))
}

// Two agents with the same plugins and different states share nothing.
func TestStatesAreSeparate(t *testing.T) {
	t.Parallel()
	g := build(t, phases.Config{}, plug("p", handle(abi.BeforeInference), count))
	other := g.NewState(nil)
	g.fire(t, step(1))
	if v, ok := other.Read("p/excl"); ok {
		t.Errorf("the other state has %v", v)
	}
}
