//go:build !linux

package host

// faultsAreTold is for Linux.
func faultsAreTold() bool { return false }

// newGuestMemory makes the memory of a guest.
func newGuestMemory(limit uint64, _ memoryKind) guestMemory {
	return &copyMemory{linearMemory: linearMemory{limit: limit}}
}
