//go:build !linux

package native

import "github.com/mortise-dev/mortise/internal/engine"

// faultsAreTold is for Linux.
func faultsAreTold() bool { return false }

// newGuestMemory makes the memory of a guest.
func newGuestMemory(limit uint64, _ MemoryKind) guestMemory {
	return &copyMemory{LinearMemory: engine.LinearMemory{Limit: limit}}
}
