package guest

import "sync/atomic"

// Sizes of tapes in bytes: the first of a thread, and the others.
const (
	firstTape = 8 << 10
	tapeSize  = 32 << 10
)

// tape holds encodings of the messages of a thread, one behind the other as they came,
// so that what an event shows is a few pieces of memory, and not one for each message.
// What stands on it never changes. A tape is dropped as a whole. Whoever still reads
// from it keeps it alive.
type tape struct {
	thread  string
	data    []byte
	entries []*cached
	used    atomic.Bool
	place   int // in the ring
}

func (t *tape) use() {
	if t != nil && !t.used.Load() {
		t.used.Store(true)
	}
}

// append moves an entry's encoding, for which there is room, to the end of the tape.
func (t *tape) append(c *cached) {
	c.tape, c.at = t, len(t.data)
	t.data = append(t.data, c.encoded...)
	c.encoded = t.data[c.at:]
	t.entries = append(t.entries, c)
}

// tapeFor returns a tape with room for an entry. Where there is none it makes one, in
// the place of such that were not used since the hand came by.
func (m *messageCache) tapeFor(c *cached) *tape {
	n := len(c.encoded)
	t := m.open[c.key.thread]
	if t != nil && cap(t.data)-len(t.data) >= n {
		return t
	}
	size := tapeSize
	if t == nil {
		size = firstTape
	}
	size = max(size, n)
	for len(m.ring) > 0 && m.bytes+size > maxCachedBytes {
		m.dropOne()
	}
	t = &tape{thread: c.key.thread, data: make([]byte, 0, size), place: len(m.ring)}
	m.ring = append(m.ring, t)
	m.open[t.thread] = t
	m.bytes += size
	return t
}

// dropOne drops the next tape that was not used since the hand came by.
func (m *messageCache) dropOne() {
	for {
		m.hand %= len(m.ring)
		t := m.ring[m.hand]
		if !t.used.Swap(false) {
			m.drop(t)
			return
		}
		m.hand++
	}
}

// drop forgets a tape and what is on it.
func (m *messageCache) drop(t *tape) {
	for _, c := range t.entries {
		if m.entries[c.key] == c {
			delete(m.entries, c.key)
		}
	}
	if m.open[t.thread] == t {
		delete(m.open, t.thread)
	}
	last := len(m.ring) - 1
	m.ring[t.place] = m.ring[last]
	m.ring[t.place].place = t.place
	m.ring[last] = nil
	m.ring = m.ring[:last]
	m.count -= len(t.entries)
	m.bytes -= cap(t.data) + entryOverhead*len(t.entries)
}
