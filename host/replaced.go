package host

import (
	"errors"
	"maps"
	"sync"
)

// Replacement is why an instance was not used again. When its guest broke or was stopped it is
// the [TrapKind], else one of the constants.
type Replacement string

// Reasons beside traps.
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

// because is why the instance of a call is not used again, which failed with err or left an outcome.
func because(err error, out *outcome) Replacement {
	if f, ok := errors.AsType[*fault](err); ok {
		return Replacement(f.kind)
	}
	if out.spent == "" {
		return Replacement(TrapFault)
	}
	return out.spent
}

// replacements counts reasons. It is safe for concurrent use.
type replacements struct {
	mu     sync.Mutex
	counts map[Replacement]int64
}

func (r *replacements) add(why Replacement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[Replacement]int64{}
	}
	r.counts[why]++
}

// all returns a copy of the counts.
func (r *replacements) all() map[Replacement]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}
