package state

import (
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/store"
)

// Verdict is what becomes of a batch.
type Verdict struct {
	// Revision is set if the batch was applied before. Then nothing else is.
	Revision uint64
	// Refusal is an ErrConflict or an ErrExists. Holder is the thread that has the unique place then.
	Refusal error
	Holder  string
	// Places are the unique places that no cell has yet and the batch takes.
	Places []Place
}

// Check decides about a batch.
func (s *State[E]) Check(b *store.Batch) (v Verdict) {
	t := s.Thread(b.Thread)
	if b.ID != "" {
		if n := slices.IndexFunc(t.Applied, func(a Applied) bool { return a.ID == b.ID }); n >= 0 {
			return Verdict{Revision: t.Applied[n].Revision}
		}
	}
	switch err := t.checkEntries(b); {
	case b.Base != store.AnyRevision && b.Base != t.Revision:
		v.Refusal = fmt.Errorf("thread %.80q: %w: it has %d, the batch was made for %d", b.Thread, store.ErrConflict, t.Revision, b.Base)
	case err != nil:
		v.Refusal = err
	default:
		s.checkUnique(b, &v)
	}
	return v
}

// checkEntries refuses entries whose numbers are not those that they would get.
func (t *Thread[E]) checkEntries(b *store.Batch) error {
	appended := map[string]uint64{}
	for i := range b.Append {
		e := &b.Append[i]
		appended[e.Log]++
		next := appended[e.Log]
		if !b.Drop {
			next += t.Logs[e.Log].Last()
		}
		if e.Seq != 0 && e.Seq != next {
			return fmt.Errorf("thread %.80q: log %.80q: %w: the next entry is %d, not %d", b.Thread, e.Log, store.ErrConflict, next, e.Seq)
		}
	}
	return nil
}

// checkUnique refuses unique places that other cells will still have when the batch is applied.
func (s *State[E]) checkUnique(b *store.Batch, v *Verdict) {
	taken := map[Place]bool{}
	for i := range b.Put {
		c := &b.Put[i]
		for _, k := range c.Index {
			if !k.Unique {
				continue
			}
			p := Place{k.Name, k.Group, k.Key}
			holder, held := s.unique[p]
			if taken[p] || held && !rewrites(b, holder) {
				v.Holder = holder.thread
				v.Refusal = fmt.Errorf("thread %.80q: cell %.80q of kind %q: index %q: %w", b.Thread, c.Key, c.Kind, k.Name, store.ErrExists)
				return
			}
			if taken[p] = true; !held {
				v.Places = append(v.Places, p)
			}
		}
	}
}

// rewrites reports whether a batch deletes a cell, or puts it with other index keys.
func rewrites(b *store.Batch, id cellID) bool {
	if id.thread != b.Thread {
		return false
	}
	return b.Drop ||
		slices.ContainsFunc(b.Delete, func(r store.Range) bool { return r.Kind == id.kind && r.Contains(id.key) }) ||
		slices.ContainsFunc(b.Put, func(c store.Cell) bool { return c.Kind == id.kind && c.Key == id.key })
}
