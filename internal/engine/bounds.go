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

// Replacement is why an instance was not used again. When its guest broke or was stopped it is
// the [TrapKind], else one of the constants.
type Replacement string

// Reasons other than traps.
const (
	// ReplacedMemory means that a call has added more memory than is given back after it: more than
	// 64 MiB (4 MiB where the system is not Linux), or all that the limit allows. What it adds below that costs no
	// instance. On the Extism engine it means that three quarters of the limit are in use.
	ReplacedMemory Replacement = "grown_memory"
	// ReplacedKernel means that a call kept more than 4 MiB in blocks.
	ReplacedKernel Replacement = "grown_blocks"
	// ReplacedState means that memory and globals are not all the state of the module: it changes
	// its tables, has links, or is not metered. Such an instance serves one call.
	ReplacedState Replacement = "other_state"
	// ReplacedFiles means that a call opened, closed or moved a file descriptor.
	ReplacedFiles Replacement = "files"
	// ReplacedExit means that a call ended with exit code 0.
	ReplacedExit Replacement = "exit"
	// ReplacedAborted means that a function of the embedder ended its goroutine.
	ReplacedAborted Replacement = "aborted"
)
