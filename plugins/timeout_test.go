package plugins_test

import (
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
)

// TestHookTimeout: the phase runtime learns the time limit of the spec, at first and after a swap.
func TestHookTimeout(t *testing.T) {
	t.Parallel()
	spec := small("json")
	spec.Limits.Timeout = 20 * time.Second
	set, err := plugins.Load(t.Context(), newHost(t), []plugins.Entry{{Module: spec}})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close(t.Context())
	p, ok := set.Plugins()[0].(phases.Timed)
	if !ok || p.HookTimeout() != 20*time.Second {
		t.Fatalf("%T, %v", set.Plugins()[0], p.HookTimeout())
	}
	if err := set.Swap(t.Context(), "json-guard", small("json"), host.SwapOptions{}); err != nil {
		t.Fatal(err)
	}
	if d := p.HookTimeout(); d != 0 {
		t.Errorf("without a limit it is %v", d)
	}
}
