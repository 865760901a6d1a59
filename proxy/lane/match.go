package lane

import (
	"encoding/hex"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// matcher compares one request with lanes.
type matcher struct {
	r       *wire.Request
	digests []uint64
	canon   []wire.Hash
	known   []bool
}

func (m *matcher) hash(i int) wire.Hash {
	if !m.known[i] {
		m.canon[i], m.known[i] = m.r.Canonical(i), true
	}
	return m.canon[i]
}

// best returns the lane that begins most like the request, of equal ones the newest.
func (m *matcher) best(lanes []*Lane) (best *Lane, p int) {
	var used time.Time
	most := -1
	for _, l := range lanes {
		v := l.view.Load()
		n := m.common(v)
		score := 2 * n
		if n == len(v.hashes) && n < len(m.r.Items) && m.continues(v) {
			score++ // of sessions that began alike it is the one with this answer
		}
		if score > most || score == most && v.used.After(used) {
			best, p, used, most = l, n, v.used, score
		}
	}
	return best, p
}

// common is how many items a request and a lane begin with in common.
func (m *matcher) common(l *view) int {
	n := min(len(l.hashes), len(m.r.Items))
	for i := range n {
		if i < len(l.digests) && l.digests[i] == m.digests[i] {
			if !m.known[i] {
				m.canon[i], m.known[i] = l.hashes[i], true
			}
			continue
		}
		if m.hash(i) != l.hashes[i] {
			return i
		}
	}
	return n
}

func (m *matcher) change(l *view, p int, named bool) Change {
	n, before := len(m.r.Items), len(l.hashes)
	if !named && !m.answered(p) && (p != before || !m.continues(l)) {
		if p == before && n == before && p > 0 && l.open && l.busy == 0 {
			return Retry // of the first request
		}
		return New
	}
	switch {
	case p == before && n > before:
		return Grow
	case p == before && n == before && l.open:
		return Retry
	case p == before && n == before:
		return Again
	case p == 0 && 2*n < before, n < before/2 && !m.answered(p):
		return Reset
	}
	return Fork
}

// answerItems is how many items one answer may be in a conversation.
const answerItems = 32

// continues reports whether the request continues from the answer that the lane had.
func (m *matcher) continues(l *view) bool {
	from := len(l.hashes)
	for i := from; i < min(from+answerItems, len(m.r.Items)); i++ {
		if m.r.Items[i].Role == wire.Assistant && slices.Contains(l.answer, m.r.Key(i)) {
			return true
		}
	}
	return false
}

// answered reports whether the first n items have an answer of the model.
func (m *matcher) answered(n int) bool {
	for i := range min(max(n, 0), len(m.r.Items)) {
		if m.r.Items[i].Role == wire.Assistant {
			return true
		}
	}
	return false
}

// find returns the place from n on of the item that was at another place before, -1 if it is gone.
func (m *matcher) find(old []wire.Hash, was, n int) int {
	for i := n; was < len(old) && i < len(m.r.Items); i++ {
		if m.hash(i) == old[was] {
			return i
		}
	}
	return -1
}

// findKeys returns the place from n on of items of the model with these keys, -1 if there is none.
func (m *matcher) findKeys(keys []string, n int) int {
	for i := n; i+len(keys) <= len(m.r.Items); i++ {
		same := true
		for k := range keys {
			same = same && m.r.Items[i+k].Role == wire.Assistant && m.r.Key(i+k) == keys[k]
		}
		if same {
			return i
		}
	}
	return -1
}

// origin names how a conversation begins, up to the model's first answer, under what lanes never share but the session. It is empty before
// that answer.
func (m *matcher) origin(k *Key) string {
	for i := range m.r.Items {
		if m.r.Items[i].Role != wire.Assistant {
			continue
		}
		only := *k
		only.Session = ""
		begin := []byte(only.Group())
		for j := range i + 1 {
			h := m.hash(j)
			begin = append(begin, h[:]...)
		}
		h := wire.HashOf(begin)
		return hex.EncodeToString(h[:])
	}
	return ""
}

// commit makes the request the latest one of the lane.
func (m *matcher) commit(l *Lane) {
	for i := range m.r.Items {
		m.hash(i)
	}
	l.Hashes, l.digests = m.canon, m.digests
	if len(l.Messages) > len(m.r.Items) {
		l.Messages = l.Messages[:len(m.r.Items)]
	}
}
