package outboxstore

import "github.com/google/uuid"

// slack is how many bytes of a log may be about what has gone, beside twice what is live.
const slack = 256 << 10

// plan makes a message of a batch: nil if there is nothing to write. The state does not change. fresh asks for a
// message that takes the place of the whole log, if that is long.
func (t *thread) plan(b *batch, fresh bool) *message {
	m := &message{ID: uuid.NewString(), Prev: t.last, Thread: []byte(t.name)}
	keys := map[string]bool{} // as the batch leaves them
	for _, p := range b.ops {
		if p.taken = t.taken(keys, string(p.Key)); p.taken {
			continue
		}
		for _, task := range p.Forget {
			keys[string(task)] = false
		}
		m.Ops = append(m.Ops, p.op)
	}
	empties := t.empties(m)
	switch {
	case len(m.Ops) == 0, empties && t.state.empty() && !t.taint:
		return nil
	case empties:
		m.Reset, m.Ops = true, nil
	case t.state.empty(), t.taint, fresh && t.logged > 2*t.state.size+slack:
		m.Reset, m.Ops = true, append(t.state.ops(), m.Ops...)
	}
	return m
}

// taken takes a key, and says whether it was taken before: in keys, or else in the state.
func (t *thread) taken(keys map[string]bool, key string) bool {
	if key == "" {
		return false
	}
	was, changed := keys[key]
	if !changed {
		was = t.state.keys[key]
	}
	keys[key] = true
	return was
}

// empties says whether a message leaves nothing.
func (t *thread) empties(m *message) bool {
	seqs, tasks := 0, 0
	for i := range m.Ops {
		if m.Ops[i].grows() {
			return false
		}
		seqs, tasks = seqs+len(m.Ops[i].Remove), tasks+len(m.Ops[i].Forget)
	}
	if len(t.state.entries) > seqs || len(t.state.records) > tasks || len(t.state.keys) > tasks {
		return false
	}
	after := t.state.clone()
	after.apply(m, 0)
	return after.empty()
}

// settle says what became of the operations of a message with this number.
func (b *batch) settle(number uint64) {
	place := uint64(0)
	for _, p := range b.ops {
		if p.taken || p.Data == nil {
			continue
		}
		p.seq = number<<placeBits | place
		place++
	}
}
