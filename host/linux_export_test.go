//go:build linux

package host

// FaultsAreTold is what the engine asks the kernel when it starts.
func FaultsAreTold() bool { return faultsAreTold() }

// UseBlindMemory makes guests that h loads from now on drop their pages after each
// call, as where the kernel does not tell which they are.
func UseBlindMemory(h *Host) {
	if e, ok := h.engine.(*nativeEngine); ok {
		e.memory = memoryBlind
	}
}

// OwnBytes returns how much memory of its own the idle instance of m has, as far
// as the last look knows; -1 when that cannot be known.
func OwnBytes(m *Module) int {
	if i := idleInstance(m); i != nil {
		if mapped, ok := i.mems.guest.memory.(*mappedMemory); ok && !mapped.dirty.blind {
			return mapped.dirty.bytes
		}
	}
	return -1
}

// ResidentBytes returns how much memory of its own the idle instance of m has, wherever in its
// mapping that is; -1 when that cannot be known.
func ResidentBytes(m *Module) int {
	i := idleInstance(m)
	if i == nil {
		return -1
	}
	mapped, ok := i.mems.guest.memory.(*mappedMemory)
	var all dirtyPages
	if !ok || !all.look(mapped.start(), nil, int(mapped.limit)) && all.blind {
		return -1
	}
	return all.bytes
}
