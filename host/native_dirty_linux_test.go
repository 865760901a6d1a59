package host_test

import (
	"os"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// TestNative_faultsAreTold fails in CI where the fast way of fresh state is off, so
// that it is not off unseen.
func TestNative_faultsAreTold(t *testing.T) {
	t.Parallel()
	if !host.FaultsAreTold() {
		if os.Getenv("CI") != "" {
			t.Fatal("this kernel does not tell which pages a process has changed: CI would test the slow way alone")
		}
		testskip.Skip(t, "this kernel does not tell which pages a process has changed, so pages are dropped after each call")
	}
	h := newHost(t, host.Config{Engine: hosttest.Engine(host.EngineNative)})
	m, err := h.Load(t.Context(), host.Spec{Path: wat("dirty"), Limits: host.Limits{Instances: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		call(t, m, "touch", "", "")
	}
	if n := host.OwnBytes(m); n < 4096 || n > 64<<10 {
		t.Errorf("the memory keeps %d bytes of its own", n)
	}
}
