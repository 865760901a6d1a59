package phases

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// order sorts the hooks of one phase: of those that may come next, the one with
// the lowest priority, then name, then place in its description. Constraints
// that name a plugin without a hook at the phase say nothing.
func order(p abi.Phase, hooks []*hook) ([]*hook, error) {
	rest := slices.Clone(hooks)
	slices.SortFunc(rest, func(a, b *hook) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.plugin.name, b.plugin.name), cmp.Compare(a.index, b.index))
	})
	ordered := make([]*hook, 0, len(rest))
	for len(rest) > 0 {
		next := slices.IndexFunc(rest, func(h *hook) bool { return waitsFor(h, rest) == nil })
		if next < 0 {
			return nil, fmt.Errorf("phases: %s: the before and after constraints form a cycle: %s", p, cycle(rest))
		}
		ordered = append(ordered, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return ordered, nil
}

// waitsFor returns a hook among rest that must precede h.
func waitsFor(h *hook, rest []*hook) *hook {
	for _, other := range rest {
		if slices.Contains(h.After, other.plugin.name) || slices.Contains(other.Before, h.plugin.name) {
			return other
		}
	}
	return nil
}

// cycle follows the constraints from the first hook, of which each has one,
// until a plugin comes up again.
func cycle(rest []*hook) string {
	var path []string
	for h := rest[0]; ; h = waitsFor(h, rest) {
		name := h.plugin.name
		if at := slices.Index(path, name); at >= 0 {
			path = append(path[at:], name)
			break
		}
		path = append(path, name)
	}
	slices.Reverse(path)
	return strings.Join(path, " before ")
}
