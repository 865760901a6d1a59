package phasestest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
)

// badEnv names the plugin that badPlugin gives to the suite.
const badEnv = "MORTISE_BAD_PLUGIN"

// bad breaks the contract in one way.
func bad(how string) func() phases.Plugin {
	n := 0 // what an honest plugin does not have: memory
	answers := map[string]phasestest.Answer{
		"changes": func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			e.Messages[0].Content[0].Text = "changed"
			return nil, nil
		},
		"remembers": func(context.Context, *abi.Event) (*abi.Reply, error) {
			n++
			return &abi.Reply{Updates: []abi.Update{{Key: "n", Op: abi.OpSet, Value: int64(n)}}}, nil
		},
		"oversteps": phasestest.Reply(abi.Reply{Effects: []abi.Effect{{Type: abi.EffectStop, Code: "now"}}}),
		"panics":    func(context.Context, *abi.Event) (*abi.Reply, error) { panic("bad") },
		"unstable":  phasestest.Reply(abi.Reply{}),
		"nameless":  phasestest.Reply(abi.Reply{}),
		"idle":      nil,
		"replies":   nil,
	}
	return func() phases.Plugin {
		p := &phasestest.Scripted{
			Desc: abi.Description{
				Name: "bad", State: []abi.StateKey{{Name: "n"}},
				Hooks: []abi.Hook{{Phase: abi.RunStart, Mode: abi.ModeObserve, Messages: abi.ViewAll}},
			},
			Script: map[abi.Phase]phasestest.Answer{abi.RunStart: answers[how]},
		}
		switch how {
		case "idle":
			p.Desc.Hooks = nil
		case "replies":
			p.Desc.Effects = []abi.Handler{{Name: "tell"}}
			p.Effects = talkative()
		case "nameless":
			p.Desc.Name = ""
		case "unstable":
			return &unstable{Scripted: p}
		}
		return p
	}
}

// talkative executes an effect and replies, which is not allowed.
func talkative() map[string]phasestest.Answer {
	return map[string]phasestest.Answer{"tell": phasestest.Reply(abi.Reply{Effects: []abi.Effect{{Type: abi.EffectEmit, EventType: "told"}}})}
}

type unstable struct {
	*phasestest.Scripted

	n int
}

func (u *unstable) Describe() abi.Description {
	u.n++
	d := u.Scripted.Describe()
	d.Version = strings.Repeat("1", u.n)
	return d
}

// badPlugin fails on purpose, in a process of its own.
func badPlugin(t *testing.T, how string) {
	t.Helper()
	if how == "differs" {
		phasestest.TestSame(t, good, bad("oversteps"))
		return
	}
	phasestest.TestPlugin(t, bad(how))
}

func TestSuiteFindsBadPlugins(t *testing.T) {
	t.Parallel()
	if how := os.Getenv(badEnv); how != "" {
		badPlugin(t, how)
		return
	}
	for how, want := range map[string]string{
		"changes":   "run_start: the plugin changed the event",
		"remembers": "run_start: the same event gave different replies",
		"oversteps": "run_start: refused effect 0 stop: the hook's mode is observe, and this needs gate",
		"panics":    "run_start: the plugin panicked: bad",
		"unstable":  "two descriptions differ",
		"nameless":  `plugin "": the name must match`,
		"replies":   "effect tell: there is a reply, and it will be refused",
		"differs":   "records of one",
		"idle":      "the plugin subscribes to nothing",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuiteFindsBadPlugins$", "-test.parallel=1")
			cmd.Env = append(os.Environ(), badEnv+"="+how)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), want) {
				t.Errorf("the suite let it pass, or did not say %q (%v):\n%s", want, err, out)
			}
		})
	}
}
