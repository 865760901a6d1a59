package natsstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/store"
)

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, thread string, q store.Query) (store.Snapshot, error) {
	if err := context.Cause(ctx); err != nil {
		return store.Snapshot{}, err
	}
	out, err := s.read(ctx, thread, q)
	if err != nil {
		return store.Snapshot{}, fmt.Errorf("natsstore: thread %.80q: %w", thread, redact(s.cfg.URL, err))
	}
	return out, nil
}

// read reads again when entries were moved meanwhile.
func (s *Store) read(ctx context.Context, thread string, q store.Query) (out store.Snapshot, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, errPatience)
	defer cancel()
	for n := 0; ; n++ {
		if err := s.sure(ctx, thread); err != nil {
			return out, err
		}
		var missing []missing
		if err := s.view(func(st *state) { out, missing = st.thread(thread).read(q) }); err != nil {
			return out, err
		}
		err := s.complete(ctx, missing, out.Entries)
		if !errors.Is(err, errGone) {
			return out, err
		}
		if late := pause(ctx, n); late != nil {
			return out, errors.Join(late, err)
		}
	}
}

// read answers a query, but for entries that are not in memory.
func (t *thread) read(q store.Query) (out store.Snapshot, list []missing) {
	out = store.Snapshot{Revision: t.known(), Last: map[string]uint64{}}
	for _, r := range q.Cells {
		for _, c := range t.selected(r) {
			out.Cells = append(out.Cells, store.Cell{Kind: c.Kind, Key: c.Key, Value: bytes.Clone(c.Value)})
		}
	}
	for _, span := range q.Entries {
		l := t.logs[span.Log]
		if l == nil {
			out.Last[span.Log] = 0
			continue
		}
		out.Last[span.Log] = l.last()
		first := max(span.From, l.after+1)
		for seq := first; seq <= l.last() && seq-first < uint64(max(span.Limit, 0)); seq++ { //nolint:gosec // not negative
			e := l.entries[seq-l.after-1]
			if e.data == nil {
				list = append(list, missing{entry: e, at: len(out.Entries)})
			}
			out.Entries = append(out.Entries, store.Entry{Log: span.Log, Seq: seq, Data: bytes.Clone(e.data)})
		}
	}
	return out, list
}

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, q store.Scan) (out []store.Ref, err error) {
	if err := s.current(ctx); err != nil {
		return nil, err
	}
	err = s.view(func(st *state) { out = st.scan(q) })
	return out, err
}

func (s *state) scan(q store.Scan) (out []store.Ref) {
	index := s.indexes[place{name: q.Index, group: q.Group}]
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

// Count implements store.Store.
func (s *Store) Count(ctx context.Context, index string) (map[string]int, error) {
	if err := s.current(ctx); err != nil {
		return nil, err
	}
	out := map[string]int{}
	err := s.view(func(st *state) {
		for p, refs := range st.indexes {
			if p.name == index {
				out[p.group] = refs.Len()
			}
		}
	})
	return out, err
}

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, topic string) (<-chan struct{}, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	c := make(chan struct{}, 1)
	m := s.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.topics[topic] == nil {
		m.topics[topic] = map[chan struct{}]bool{}
	}
	m.topics[topic][c] = true
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.topics[topic], c)
		if len(m.topics[topic]) == 0 {
			delete(m.topics, topic)
		}
		close(c)
	})
	return c, nil
}
