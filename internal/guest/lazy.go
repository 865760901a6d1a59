package guest

import (
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/wire"
)

// lazyPhases are those at which the hook asks for its messages lazily.
func lazyPhases(d *abi.Description, format wire.Format) ([]abi.Phase, error) {
	var out []abi.Phase
	for i := range d.Hooks {
		h := &d.Hooks[i]
		if h.LazyMessages && format != wire.MessagePack {
			return nil, fmt.Errorf("hook %d: lazy_messages needs MessagePack; leave it out, or describe the guest in MessagePack", i)
		}
		if h.LazyMessages {
			out = append(out, h.Phase)
		}
	}
	return out, nil
}

// readsLazily reports whether the module reads the messages of an event itself. Events of
// handlers are like those of a hook that does not.
func (g *Guest) readsLazily(e *abi.Event) bool {
	return len(g.lazy) > 0 && e.Action == nil && e.Effect == nil && slices.Contains(g.lazy, e.Phase)
}
