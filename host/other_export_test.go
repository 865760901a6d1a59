//go:build !linux

package host

// UseBlindMemory has no meaning here.
func UseBlindMemory(*Host) {}

// OwnBytes is not known here.
func OwnBytes(*Module) int { return -1 }
