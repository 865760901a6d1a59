package engine

import (
	"time"
)

// Bounds are what a module may use, as far as an engine enforces it. None is zero.
type Bounds struct {
	// MemoryPages bounds each linear memory, in pages of 64 KiB.
	MemoryPages int
	OutputBytes int
	// Timeout bounds a call, initTimeout the making of an instance.
	Timeout, InitTimeout time.Duration
	// Fuel bounds a call, and the making of an instance.
	Fuel int64
	// StderrBytes is how much of standard error is kept, logBytes how much a call may log.
	StderrBytes, LogBytes int
	// VarBytes bounds the variables of a call.
	VarBytes int
}

// Smallest and largest memory of a guest. The kernel of the Extism engine
// starts with 16 pages.
const (
	MinMemoryPages = 17
	MaxMemoryPages = 65536
)

// MaxTableElements is how many elements a module's tables may have when it
// starts. Each takes eight bytes of the host's memory.
const MaxTableElements = 1 << 20

// HostChunk is how many bytes the host works on between two charges.
const HostChunk = 1 << 16
