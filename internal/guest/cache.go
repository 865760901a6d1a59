package guest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/wire"
)

// Bounds of the encodings that are kept for one guest.
const (
	maxCached      = 8192
	maxCachedBytes = 8 << 20
	// maxCachedOne keeps a single huge message from driving all others out.
	maxCachedOne = maxCachedBytes / 16
	// entryOverhead is about what an entry takes besides its encoding, in bytes.
	entryOverhead = 512
	// messageDepth is where messages stand in an event: in a map and an array.
	messageDepth = 2
)

// messageCache keeps the MessagePack encodings of messages, which a run shows again at every step.
// An encoding is used only for a message that is equal to the one it was made of, in
// all its fields: an id says where to look, not that nothing has changed. The zero
// messageCache is empty. It is safe for concurrent use.
type messageCache struct {
	events sync.Pool // of *packedEvent

	mu      sync.RWMutex
	entries map[messageKey]*cached
	// ring holds all entries; hand is where the search for one to drop goes on.
	ring  []*cached
	hand  int
	bytes int
}

// messageKey finds a message: ids are unique in their thread.
type messageKey struct{ thread, id string }

// cached is an encoded message. Nothing of it changes but used.
type cached struct {
	key     messageKey
	message abi.Message // a copy that shares nothing that can change
	encoded wire.Raw
	used    atomic.Bool
	place   int // in the ring
}

func (c *cached) size() int { return len(c.encoded) + entryOverhead }

// lend encodes an event, with what is kept of its messages.
func (m *messageCache) lend(e *abi.Event, use func(data []byte) error) error {
	p, ok := m.events.Get().(*packedEvent)
	if !ok {
		p = &packedEvent{}
	}
	p.set(e)
	defer func() {
		p.clear()
		m.events.Put(p)
	}()
	if missing := m.find(e, p); missing > 0 {
		if err := m.add(e, p); err != nil {
			return err
		}
	}
	return wire.MessagePack.Lend(p, use)
}

// find fills in the encodings that are kept and counts the others, which are nil.
func (m *messageCache) find(e *abi.Event, p *packedEvent) (missing int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	key := messageKey{thread: e.Run.ThreadID}
	for i := range e.Messages {
		message := &e.Messages[i]
		key.id = message.ID
		c := m.entries[key]
		if c == nil || !sameMessage(&c.message, message) {
			p.Messages = append(p.Messages, nil)
			missing++
			continue
		}
		if !c.used.Load() {
			c.used.Store(true)
		}
		p.Messages = append(p.Messages, c.encoded)
	}
	return missing
}

// add encodes the messages that find did not, and keeps them.
func (m *messageCache) add(e *abi.Event, p *packedEvent) error {
	var fresh []*cached
	for i := range p.Messages {
		if p.Messages[i] != nil {
			continue
		}
		message := &e.Messages[i]
		data, err := wire.MarshalRaw(message, messageDepth)
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		p.Messages[i] = data
		if message.ID == "" || len(data) > maxCachedOne {
			continue
		}
		if kept, ok := copyMessage(message); ok {
			fresh = append(fresh, &cached{key: messageKey{e.Run.ThreadID, message.ID}, message: kept, encoded: data})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range fresh {
		m.put(c)
	}
	return nil
}

// put keeps an entry in place of the one with its key and of such that were not used
// since the hand came by.
func (m *messageCache) put(c *cached) {
	if m.entries == nil {
		m.entries = map[messageKey]*cached{}
	}
	if old := m.entries[c.key]; old != nil {
		m.drop(old)
	}
	for len(m.ring) > 0 && (len(m.ring) >= maxCached || m.bytes+c.size() > maxCachedBytes) {
		m.hand %= len(m.ring)
		if old := m.ring[m.hand]; old.used.Swap(false) {
			m.hand++
		} else {
			m.drop(old)
		}
	}
	c.place = len(m.ring)
	m.ring = append(m.ring, c)
	m.entries[c.key] = c
	m.bytes += c.size()
}

func (m *messageCache) drop(c *cached) {
	last := len(m.ring) - 1
	m.ring[c.place] = m.ring[last]
	m.ring[c.place].place = c.place
	m.ring[last] = nil
	m.ring = m.ring[:last]
	delete(m.entries, c.key)
	m.bytes -= c.size()
}
