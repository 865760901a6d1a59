package host

import (
	"errors"
	"maps"
	"sync"

	"github.com/mortise-dev/mortise/internal/engine"
)

// because is why the instance of a call is not used again, which failed with err or left an outcome.
func because(err error, out *engine.Outcome) Replacement {
	if f, ok := errors.AsType[*engine.Fault](err); ok {
		return Replacement(f.Kind)
	}
	if out.Spent == "" {
		return Replacement(TrapFault)
	}
	return out.Spent
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
