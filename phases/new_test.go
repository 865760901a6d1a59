package phases_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	hook := func(change func(*abi.Hook)) phases.Config {
		h := abi.Hook{Phase: abi.StepStart, Mode: abi.ModeObserve}
		change(&h)
		return phases.Config{Plugins: []phases.Plugin{&phasestest.Scripted{Desc: abi.Description{Name: "p", Hooks: []abi.Hook{h}}}}}
	}
	state := func(keys ...abi.StateKey) phases.Config {
		return phases.Config{Plugins: []phases.Plugin{&phasestest.Scripted{Desc: abi.Description{Name: "p", State: keys}}}}
	}
	named := func(names ...string) phases.Config {
		var cfg phases.Config
		for _, n := range names {
			cfg.Plugins = append(cfg.Plugins, &phasestest.Scripted{Desc: abi.Description{Name: n}})
		}
		return cfg
	}
	tests := map[string]struct {
		cfg  phases.Config
		want string
	}{
		"negative timeout": {phases.Config{HookTimeout: -1}, "Config.HookTimeout is -1ns"},
		"negative grace":   {phases.Config{Grace: -time.Second}, "Config.Grace is -1s"},
		"negative time":    {phases.Config{HandlerTime: -1}, "Config.HandlerTime is -1ns"},
		"negative limit":   {phases.Config{Limits: phases.Limits{Effects: -1}}, "Config.Limits.Effects is -1"},
		"nil plugin":       {phases.Config{Plugins: []phases.Plugin{nil}}, "Config.Plugins[0]: is nil"},
		"no name":          {named(""), `plugin "": the name must match`},
		"slash in name":    {named("a/b"), "the name must match"},
		"same name":        {named("a", "b", "a"), `plugin "a": there are two`},
		"phase":            {hook(func(h *abi.Hook) { h.Phase = "lunch" }), `plugin "p": hook 0: phase "lunch"`},
		"mode":             {hook(func(h *abi.Hook) { h.Mode = "" }), `mode "" is not one of`},
		"view":             {hook(func(h *abi.Hook) { h.Messages = "some" }), `messages "some" is not one of`},
		"window":           {hook(func(h *abi.Hook) { h.Messages = abi.ViewWindow }), "needs a window of at least 1"},
		"policy":           {hook(func(h *abi.Hook) { h.OnFailure = "panic" }), `on_failure "panic" is not one of`},
		"key name":         {state(abi.StateKey{Name: "a\nb"}), "state key"},
		"key twice":        {state(abi.StateKey{Name: "a"}, abi.StateKey{Name: "a"}), "declared twice"},
		"key scope":        {state(abi.StateKey{Name: "a", Scope: "world"}), `scope "world"`},
		"key merge":        {state(abi.StateKey{Name: "a", Merge: "maybe"}), `merge "maybe"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := phases.New(test.cfg)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	type spec struct {
		name          string
		priority      int
		before, after []string
	}
	tests := map[string]struct {
		specs []spec
		want  string
		err   string
	}{
		"name":        {specs: []spec{{name: "c"}, {name: "a"}, {name: "b"}}, want: "a b c"},
		"priority":    {specs: []spec{{name: "a", priority: 1}, {name: "b"}, {name: "c", priority: -1}}, want: "c b a"},
		"before wins": {specs: []spec{{name: "a"}, {name: "z", priority: 9, before: []string{"a"}}, {name: "m", priority: 5}}, want: "m z a"},
		"after":       {specs: []spec{{name: "a", after: []string{"c"}}, {name: "b"}, {name: "c"}}, want: "b c a"},
		"absent":      {specs: []spec{{name: "a", after: []string{"nobody"}}, {name: "b", before: []string{"none"}}}, want: "a b"},
		"cycle": {
			specs: []spec{{name: "a", before: []string{"b"}}, {name: "b", before: []string{"c"}}, {name: "c", before: []string{"a"}}, {name: "d"}},
			err:   "phases: step_end: the before and after constraints form a cycle: a before b before c before a",
		},
		"self": {specs: []spec{{name: "a", after: []string{"a"}}}, err: "a before a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 { // once as given, once the other way round
				var cfg phases.Config
				for _, s := range test.specs {
					cfg.Plugins = append(cfg.Plugins, plug(s.name, abi.Hook{Phase: abi.StepEnd, Priority: s.priority, Before: s.before, After: s.after}, silent))
				}
				r, err := phases.New(cfg)
				if test.err != "" {
					if err == nil || !strings.Contains(err.Error(), test.err) {
						t.Errorf("error %v, want one with %q", err, test.err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(r.Order(abi.StepEnd), " "); got != test.want {
					t.Errorf("order %q, want %q", got, test.want)
				}
				if got := r.Order(abi.RunEnd); len(got) != 0 {
					t.Errorf("hooks of another phase: %v", got)
				}
				slices.Reverse(test.specs)
			}
		})
	}
}
