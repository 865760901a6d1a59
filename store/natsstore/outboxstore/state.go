package outboxstore

import (
	"cmp"
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/outbox"
)

// overhead is about what an item costs beside its bytes.
const overhead = 128

// state is what is live of a thread. Its owner guards it.
type state struct {
	entries []outbox.Entry // oldest first
	records map[string][]byte
	keys    map[string]bool
	// size is about how many bytes it has.
	size int
}

func newState() state { return state{records: map[string][]byte{}, keys: map[string]bool{}} }

func (s *state) empty() bool { return len(s.entries)+len(s.records)+len(s.keys) == 0 }

// apply makes a message come true that has this number.
func (s *state) apply(m *message, number uint64) {
	if m.Reset {
		*s = newState()
	}
	fresh := uint64(0)
	for i := range m.Ops {
		o := &m.Ops[i]
		if len(o.Task) > 0 {
			s.keep(string(o.Task), o.Record)
		}
		if len(o.Key) > 0 {
			s.take(string(o.Key))
		}
		if o.Data != nil {
			e := outbox.Entry{Seq: o.Seq, Data: o.Data, At: fromMillis(o.AtMS)}
			if e.Seq == 0 {
				e.Seq = number<<placeBits | fresh
				fresh++
			}
			s.entries = append(s.entries, e)
			s.size += len(e.Data) + overhead
		}
		s.remove(o.Remove)
		for _, task := range o.Forget {
			s.forget(string(task))
		}
	}
}

func (s *state) keep(task string, record []byte) {
	if old, ok := s.records[task]; ok {
		s.size -= len(task) + len(old) + overhead
	}
	s.records[task] = record
	s.size += len(task) + len(record) + overhead
}

func (s *state) take(key string) {
	if !s.keys[key] {
		s.keys[key] = true
		s.size += len(key) + overhead
	}
}

func (s *state) remove(seqs []uint64) {
	if len(seqs) == 0 {
		return
	}
	gone := make(map[uint64]bool, len(seqs))
	for _, seq := range seqs {
		gone[seq] = true
	}
	s.entries = slices.DeleteFunc(s.entries, func(e outbox.Entry) bool {
		if gone[e.Seq] {
			s.size -= len(e.Data) + overhead
		}
		return gone[e.Seq]
	})
}

func (s *state) forget(task string) {
	if old, ok := s.records[task]; ok {
		s.size -= len(task) + len(old) + overhead
		delete(s.records, task)
	}
	if s.keys[task] {
		s.size -= len(task) + overhead
		delete(s.keys, task)
	}
}

func (s *state) pending(after uint64, limit int) []outbox.Entry {
	if limit <= 0 || after == ^uint64(0) {
		return nil
	}
	from, _ := slices.BinarySearchFunc(s.entries, after+1, func(e outbox.Entry, seq uint64) int { return cmp.Compare(e.Seq, seq) })
	return slices.Clone(s.entries[from:min(len(s.entries), from+limit)])
}

// clone is a copy that may be changed.
func (s *state) clone() state {
	return state{entries: slices.Clone(s.entries), records: maps.Clone(s.records), keys: maps.Clone(s.keys), size: s.size}
}

// ops are the shortest operations that lead here.
func (s *state) ops() []op {
	out := make([]op, 0, len(s.records)+len(s.keys)+len(s.entries))
	for _, task := range slices.Sorted(maps.Keys(s.records)) {
		out = append(out, op{Task: []byte(task), Record: s.records[task]})
	}
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		out = append(out, op{Key: []byte(key)})
	}
	for _, e := range s.entries {
		out = append(out, op{Seq: e.Seq, Data: e.Data, AtMS: millis(e.At)})
	}
	return out
}
