package plugins_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
	"github.com/mortise-dev/mortise/plugins"
)

func small(name string) host.Spec {
	return host.Spec{Path: filepath.Join("testdata", name+".wasm")}
}

func TestJSONGuest(t *testing.T) {
	t.Parallel()
	set, err := load(t, newHost(t), plugins.Entry{Module: small("json")})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := phases.New(phases.Config{Plugins: set.Plugins()})
	if err != nil {
		t.Fatal(err)
	}
	out, err := rt.Fire(t.Context(), rt.NewState(nil), phasestest.Frame(abi.ToolGate))
	if err != nil {
		t.Fatal(err)
	}
	if out.Gate == nil || out.Gate.Decision.Action != abi.GateBlock || out.Gate.Decision.Reason != "said in JSON" || out.Gate.By != "json-guard" {
		t.Errorf("gate %+v", out.Gate)
	}
}

func TestJSONGuestKeepsThePluginContract(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	phasestest.TestPlugin(t, func() phases.Plugin {
		set, err := load(t, h, plugins.Entry{Module: small("json")})
		if err != nil {
			t.Fatal(err)
		}
		return set.Plugins()[0]
	})
}

// TestTrapUnderEachPolicy runs five steps with a guest that traps in each.
func TestTrapUnderEachPolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[abi.FailurePolicy]struct{ steps, calls, skips int }{
		abi.FailRun:        {1, 1, 0},
		abi.FailIgnore:     {5, 5, 0},
		abi.FailQuarantine: {5, 3, 2},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			set, err := load(t, newHost(t), plugins.Entry{Module: small("trap"), OnFailure: policy})
			if err != nil {
				t.Fatal(err)
			}
			recorder := &phasestest.Recorder{}
			rt, err := phases.New(phases.Config{
				Plugins: set.Plugins(), Record: recorder.Record, HookTimeout: time.Minute,
				Limits: phases.Limits{QuarantineBackOff: time.Hour, QuarantineMax: time.Hour},
			})
			if err != nil {
				t.Fatal(err)
			}
			a, err := agent.New(agent.Config{Profile: agent.Profile{Model: &asks{commands: []string{"1", "2", "3", "4"}}, Tools: answers{}, Phases: rt}})
			if err != nil {
				t.Fatal(err)
			}
			result, err := a.Run(context.WithoutCancel(t.Context()), agent.Request{ThreadID: "t", Messages: question()})
			var trap *host.TrapError
			if fails := policy == abi.FailRun; errors.As(err, &trap) != fails || (result.Termination.Type == agent.Failed) != fails {
				t.Errorf("termination %+v, error %v", result.Termination, err)
			}
			calls, skips := 0, 0
			for _, rec := range recorder.Of("trap") {
				if rec.Attempt == 0 {
					skips++
					continue
				}
				calls++
				if !strings.Contains(rec.Err, "unreachable") {
					t.Errorf("record says %q", rec.Err)
				}
			}
			if result.Steps != want.steps || calls != want.calls || skips != want.skips {
				t.Errorf("%d steps, %d calls, %d skipped; want %+v", result.Steps, calls, skips, want)
			}
		})
	}
}
