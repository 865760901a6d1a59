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
	m.Stats() // puts the instance where it can be found
	p := m.Current().pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		inst, ok := p.slots[i].inst.(*nativeInstance)
		if !ok {
			continue
		}
		if mapped, ok := inst.mems.guest.memory.(*mappedMemory); ok && !mapped.dirty.blind {
			return mapped.dirty.bytes
		}
	}
	return -1
}
