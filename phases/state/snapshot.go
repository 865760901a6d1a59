package state

import "iter"

// Snapshot is the state at one revision. It costs nothing to take or to keep, and
// no commit changes it. The zero Snapshot is empty.
type Snapshot struct {
	values   map[string]entry
	revision uint64
}

// entry is a value and when it was changed.
type entry struct {
	value   any
	changed uint64
	// raw values came from outside, in a form that plugins may not see or under a
	// key that no plugin declared. They are only kept and written back.
	raw bool
	// own values are of this run, so that a key of run scope may have them again.
	own bool
}

// Revision counts the commits up to the snapshot.
func (s Snapshot) Revision() uint64 { return s.revision }

// Read returns a value by the name of its key, also one that plugins may not
// see. The value is shared; do not change it.
func (s Snapshot) Read(name string) (any, bool) {
	e, ok := s.values[name]
	return e.value, ok
}

// Load returns the value of a declared key, as a plugin may see it.
func (s Snapshot) Load(k *Key) (any, bool) {
	e, ok := s.values[k.Name]
	if e.raw {
		return nil, false
	}
	return e.value, ok
}

// Changed returns the revision at which a key was last changed.
func (s Snapshot) Changed(k *Key) uint64 { return s.values[k.Name].changed }

// Len is the number of values.
func (s Snapshot) Len() int { return len(s.values) }

// All yields the names and values, in no particular order.
func (s Snapshot) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for name, e := range s.values {
			if !yield(name, e.value) {
				return
			}
		}
	}
}
