package natsstore

import (
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/store"
)

// verdict is what becomes of a batch.
type verdict struct {
	// revision is set if the batch was applied before.
	revision uint64
	// refusal is an ErrConflict or ErrExists. The thread of holder has the unique place then.
	refusal error
	holder  string
	// The message to write otherwise: what must precede it, and the places that the batch takes.
	prev   uint64
	fresh  bool
	gone   bool
	places []place
}

// decide checks a batch against the state. A refusal counts if the state is that of the stream.
func (s *state) decide(b *store.Batch) (v verdict) {
	t := s.thread(b.Thread)
	if t.damaged {
		v.refusal = fmt.Errorf("%w: operations are missing", errStale)
		return v
	}
	if b.ID != "" {
		if n := slices.IndexFunc(t.applied, func(a applied) bool { return a.ID == b.ID }); n >= 0 {
			v.revision = t.applied[n].Revision
			return v
		}
	}
	if has := t.known(); b.Base != store.AnyRevision && b.Base != has {
		v.refusal = fmt.Errorf("natsstore: thread %.80q: %w: it has %d, the batch was made for %d", b.Thread, store.ErrConflict, has, b.Base)
		return v
	}
	if v.refusal = t.checkEntries(b); v.refusal != nil {
		return v
	}
	if v.refusal = s.checkUnique(b, &v); v.refusal != nil {
		return v
	}
	v.prev, v.fresh = t.seq, !t.exists
	v.gone = b.Drop && len(b.Put)+len(b.Append) == 0
	return v
}

// known is the revision as callers see it.
func (t *thread) known() uint64 {
	if !t.exists {
		return 0
	}
	return t.revision
}

// checkEntries refuses entries whose numbers are not those that they would get.
func (t *thread) checkEntries(b *store.Batch) error {
	last := map[string]uint64{}
	for name, l := range t.logs {
		if !b.Drop {
			last[name] = l.last()
		}
	}
	for i := range b.Append {
		e := &b.Append[i]
		last[e.Log]++
		if e.Seq != 0 && e.Seq != last[e.Log] {
			return fmt.Errorf("natsstore: thread %.80q: log %.80q: %w: the next entry is %d, not %d",
				b.Thread, e.Log, store.ErrConflict, last[e.Log], e.Seq)
		}
	}
	return nil
}

// checkUnique refuses unique places that other cells will still have when the batch is applied, and lists those that the thread does not
// have yet.
func (s *state) checkUnique(b *store.Batch, v *verdict) error {
	taken := map[place]bool{}
	for i := range b.Put {
		c := &b.Put[i]
		for _, k := range c.Index {
			if !k.Unique {
				continue
			}
			p := place{name: k.Name, group: k.Group, key: k.Key}
			holder, held := s.unique[p]
			if taken[p] || held && !rewrites(b, holder) {
				v.holder = holder.thread
				return fmt.Errorf("natsstore: thread %.80q: cell %.80q of kind %q: index %q: %w", b.Thread, c.Key, c.Kind, k.Name, store.ErrExists)
			}
			taken[p] = true
			if !held {
				v.places = append(v.places, p)
			}
		}
	}
	return nil
}

// rewrites reports whether a batch deletes or puts a cell.
func rewrites(b *store.Batch, id cellID) bool {
	if id.thread != b.Thread {
		return false
	}
	return b.Drop ||
		slices.ContainsFunc(b.Delete, func(r store.Range) bool { return r.Kind == id.kind && r.Contains(id.key) }) ||
		slices.ContainsFunc(b.Put, func(c store.Cell) bool { return c.Kind == id.kind && c.Key == id.key })
}
