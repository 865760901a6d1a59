//go:build linux

package host

import (
	"github.com/mortise-dev/mortise/internal/engine/native"
)

// FaultsAreTold is what the engine asks the kernel when it starts.
func FaultsAreTold() bool { return native.FaultsCounted() }

// UseBlindMemory makes guests that h loads from now on drop their pages after each
// call, as where the kernel does not report which they are.
func UseBlindMemory(h *Host) {
	native.UseMemory(h.engine, native.MemoryBlind)
}

// OwnBytes returns how much memory of its own the idle instance of m has, as far
// as the last look knows; -1 when that cannot be known.
func OwnBytes(m *Module) int {
	if i := idleInstance(m); i != nil {
		return native.OwnBytes(i)
	}
	return -1
}

// ResidentBytes returns how much memory of its own the idle instance of m has, wherever in its
// mapping that is; -1 when that cannot be known.
func ResidentBytes(m *Module) int {
	if i := idleInstance(m); i != nil {
		return native.ResidentBytes(i)
	}
	return -1
}
