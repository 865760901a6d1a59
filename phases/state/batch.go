package state

import (
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// Update is one operation on the value of a key, by the key's full name.
type Update struct {
	Key   string
	Op    abi.Op
	Value any
}

// Batch is an ordered list of updates. With a Base it is refused when a key that
// it touches exclusively was changed after that revision.
type Batch struct {
	Base    *uint64
	Updates []Update
}

// Keys returns the names of the keys, each once, in the order of their first update.
func (b Batch) Keys() []string {
	var names []string
	for _, u := range b.Updates {
		if !slices.Contains(names, u.Key) {
			names = append(names, u.Key)
		}
	}
	return names
}

// Extend returns the updates of both, first those of b. Of two bases both must be
// the same.
func (b Batch) Extend(other Batch) (Batch, error) {
	if b.Base != nil && other.Base != nil && *b.Base != *other.Base {
		return b, fmt.Errorf("state: patch base revision mismatch: %d vs %d", *b.Base, *other.Base)
	}
	out := Batch{Base: b.Base, Updates: slices.Concat(b.Updates, other.Updates)}
	if out.Base == nil {
		out.Base = other.Base
	}
	return out, nil
}

// Overlap returns the first key that both touch and cannot share.
func (s *Store) Overlap(b, other Batch) (string, bool) {
	for _, name := range b.Keys() {
		k := s.Key(name)
		both := func(u Update) bool { return u.Key == name }
		if !slices.ContainsFunc(other.Updates, both) {
			continue
		}
		alone := func(u Update) bool { return u.Key == name && (k == nil || !k.Shared(u.Op)) }
		if slices.ContainsFunc(b.Updates, alone) || slices.ContainsFunc(other.Updates, alone) {
			return name, true
		}
	}
	return "", false
}
