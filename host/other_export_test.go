//go:build !linux

package host

// UseBlindMemory has no meaning here.
func UseBlindMemory(*Host) {}

// ResidentBytes is not known here.
func ResidentBytes(*Module) int { return -1 }

// OwnBytes is not known here.
func OwnBytes(*Module) int { return -1 }
