package native

import (
	"github.com/mortise-dev/mortise/internal/engine"
)

// FaultsCounted is what the engine asks the kernel when it starts.
func FaultsCounted() bool { return faultsAreTold() }

// OwnBytes returns how much memory of its own an instance has, as far as the last look knows.
func OwnBytes(i engine.Instance) int {
	n, ok := i.(*nativeInstance)
	if !ok {
		return -1
	}
	if mapped, ok := n.mems.guest.memory.(*mappedMemory); ok && !mapped.dirty.blind {
		return mapped.dirty.bytes
	}
	return -1
}

// ResidentBytes returns how much memory of its own an instance has, wherever in its mapping that is.
func ResidentBytes(i engine.Instance) int {
	n, ok := i.(*nativeInstance)
	if !ok {
		return -1
	}
	mapped, ok := n.mems.guest.memory.(*mappedMemory)
	var all dirtyPages
	if !ok || !all.look(mapped.start(), nil, int(mapped.limit)) && all.blind {
		return -1
	}
	return all.bytes
}
