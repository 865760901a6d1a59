package state

import (
	"fmt"
	"maps"
	"slices"
)

// maxImportBytes bounds a value that comes from outside. It is above any limit for
// new values, so that lowering those loses nothing.
const maxImportBytes = 1 << 30

// Image is a whole state, to be stored and restored elsewhere. Values are dynamic
// values; a codec must keep int64, float64 and bytes apart. They are shared; do not
// change them.
type Image struct {
	Revision uint64
	Values   map[string]any
}

// Export returns everything but transient values: a run continues from it in another
// process.
func (s *Store) Export() Image {
	now := s.now.Load()
	img := Image{Revision: now.revision, Values: make(map[string]any, len(now.values))}
	for name, e := range now.values {
		if k := s.Key(name); k == nil || !k.Transient {
			img.Values[name] = e.value
		}
	}
	return img
}

// ExportThread returns what outlives the run: values of thread scope, and those
// that are only kept.
func (s *Store) ExportThread() map[string]any {
	out := make(map[string]any)
	for name, e := range s.now.Load().values {
		if s.outlives(name) {
			out[name] = e.value
		}
	}
	return out
}

// Thread returns one value of those that ExportThread returns.
func (s *Store) Thread(name string) (any, bool) {
	e, ok := s.now.Load().values[name]
	if !ok || !s.outlives(name) {
		return nil, false
	}
	return e.value, true
}

// outlives reports whether the value of a key is for later runs too.
func (s *Store) outlives(name string) bool {
	k := s.Key(name)
	return k == nil || k.thread() && !k.Transient
}

// Restore replaces the whole state. Values of unknown keys, and those that their
// key cannot decode, are hidden and kept; with strict they are an error, and then nothing is
// restored.
func (s *Store) Restore(img Image, strict bool) error {
	s.writer <- struct{}{}
	defer s.release()
	next := &Snapshot{values: make(map[string]entry, len(img.Values)), revision: img.Revision}
	for _, name := range slices.Sorted(maps.Keys(img.Values)) {
		e, err := s.imported(name, img.Values[name], img.Revision)
		if err != nil && strict {
			return err
		}
		e.own = true
		next.values[name] = e
	}
	s.now.Store(next)
	return nil
}

// RestoreThread takes over the thread-scoped values of an earlier run. The revision
// stays. Values of unknown keys, and those that their key cannot decode, are
// hidden and kept. Those of run scope belong to the earlier run and start anew.
func (s *Store) RestoreThread(values map[string]any) {
	s.writer <- struct{}{}
	defer s.release()
	next := s.draft()
	for name, value := range values {
		if k := s.Key(name); k != nil && !k.thread() {
			continue
		}
		e, _ := s.imported(name, value, next.revision)
		next.values[name] = e
	}
	s.now.Store(next)
}

// imported returns the entry of a value that comes from outside. With an error it
// is one that is only kept.
func (s *Store) imported(name string, value any, revision uint64) (entry, error) {
	kept := entry{value: value, changed: revision, raw: true}
	k := s.Key(name)
	if k == nil {
		if copied, _, err := Clone(value, maxImportBytes); err == nil {
			kept.value = copied
		}
		return kept, fmt.Errorf("state: %w: %.140s", ErrUnknownKey, name)
	}
	decoded, err := k.decode(value)
	if err != nil {
		return kept, fmt.Errorf("state: failed to decode key %s: %w", name, err)
	}
	return entry{value: decoded, changed: revision}, nil
}

// decode makes a value of the key of what came from outside, whatever it is.
func (k *Key) decode(value any) (out any, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, fmt.Errorf("the key's decoder panicked: %.512v", v)
		}
	}()
	if out, _, err = Clone(value, maxImportBytes); err != nil || k.Decode == nil {
		return out, err
	}
	if out, err = k.Decode(out); err != nil {
		return nil, err
	}
	out, _, err = Clone(out, maxImportBytes)
	return out, err
}
