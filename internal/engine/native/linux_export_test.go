//go:build linux

package native

import (
	"github.com/mortise-dev/mortise/internal/engine"
)

// OwnBytes returns how much memory of its own an instance has, as far as the last look knows; -1 when that is not known.
func OwnBytes(i engine.Instance) int {
	if mapped, ok := i.(*nativeInstance).mems.guest.memory.(*mappedMemory); ok && !mapped.dirty.blind {
		return mapped.dirty.bytes
	}
	return -1
}

// ResidentBytes returns how much memory of its own an instance has, wherever in its mapping that is; -1 when that is not known.
func ResidentBytes(i engine.Instance) int {
	mapped, ok := i.(*nativeInstance).mems.guest.memory.(*mappedMemory)
	var all dirtyPages
	if !ok || !all.look(mapped.start(), nil, int(mapped.limit)) && all.blind {
		return -1
	}
	return all.bytes
}
