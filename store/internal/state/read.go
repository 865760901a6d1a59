package state

import (
	"bytes"
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/store"
)

// Read answers a query, but for the data of the entries: it returns what the state keeps of each.
func (s *State[E]) Read(thread string, q store.Query) (out store.Snapshot, entries []E) {
	t := s.Thread(thread)
	out = store.Snapshot{Revision: t.Revision, Last: map[string]uint64{}}
	for _, r := range q.Cells {
		for _, c := range t.selected(r) {
			out.Cells = append(out.Cells, store.Cell{Kind: c.Kind, Key: c.Key, Value: bytes.Clone(c.Value)})
		}
	}
	for _, span := range q.Entries {
		l := t.Logs[span.Log]
		out.Last[span.Log] = l.Last()
		if l == nil {
			continue
		}
		first := max(span.From, l.After+1)
		for seq := first; seq <= l.Last() && seq-first < uint64(max(span.Limit, 0)); seq++ { //nolint:gosec // not negative
			out.Entries = append(out.Entries, store.Entry{Log: span.Log, Seq: seq})
			entries = append(entries, l.Entries[seq-l.After-1])
		}
	}
	return out, entries
}

// Cells returns all cells of a thread, by kind and key. They belong to the state.
func (t *Thread[E]) Cells() (out []store.Cell) {
	for _, kind := range slices.Sorted(maps.Keys(t.cells)) {
		out = append(out, t.selected(store.All(kind))...)
	}
	return out
}

// selected returns the cells of a range.
func (t *Thread[E]) selected(r store.Range) (out []store.Cell) {
	cells := t.cells[r.Kind]
	if cells == nil {
		return nil
	}
	cells.Ascend(r.From, func(key string, c store.Cell) bool {
		if !r.Contains(key) {
			return false
		}
		out = append(out, c)
		return r.Limit <= 0 || len(out) < r.Limit
	})
	return out
}

// Scan answers store.Store's.
func (s *State[E]) Scan(q store.Scan) (out []store.Ref) {
	index := s.indexes[Place{Name: q.Index, Group: q.Group}]
	if index == nil {
		return nil
	}
	from := store.Ref{IndexKey: q.From}
	if from.Before(q.After) {
		from = q.After
	}
	index.Ascend(from, func(r store.Ref) bool {
		if len(out) >= q.Limit || (q.To != "" && r.IndexKey >= q.To) {
			return false
		}
		if q.After.Before(r) {
			if q.Values {
				c, _ := s.threads[r.Thread].cells[r.Kind].Get(r.Key)
				r.Value = bytes.Clone(c.Value)
			}
			out = append(out, r)
		}
		return true
	})
	return out
}

// Count answers store.Store's.
func (s *State[E]) Count(index string) map[string]int {
	out := map[string]int{}
	for p, refs := range s.indexes {
		if p.Name == index {
			out[p.Group] = refs.Len()
		}
	}
	return out
}

// Places returns the unique places that cells have, in no order.
func (s *State[E]) Places() []Place { return slices.Collect(maps.Keys(s.unique)) }
