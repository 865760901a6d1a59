package plugins_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
	"github.com/mortise-dev/mortise/plugins"
)

// A gate that answers nothing does not let a call pass: it fails, by its policy.
func TestGateThatAnswersNothingBlocks(t *testing.T) {
	t.Parallel()
	set, err := load(t, newHost(t), plugins.Entry{Module: host.Spec{Name: "mute", Wasm: describedAs(binaryOf(t, testdata("noop")), as("mute", gateHook))}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := phases.New(phases.Config{Plugins: set.Plugins()})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Fire(t.Context(), r.NewState(nil), phasestest.Frame(abi.ToolGate))
	if err != nil || out.Gate == nil || out.Gate.Decision.Action != abi.GateBlock || !strings.Contains(out.Gate.Decision.Reason, "answered nothing that this host knows") {
		t.Errorf("outcome %+v, error %v", out.Gate, err)
	}
}
