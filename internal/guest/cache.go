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
	// open are the tapes with room, by thread. ring holds all tapes; hand is where the
	// search for one to drop goes on.
	open  map[string]*tape
	ring  []*tape
	hand  int
	count int // of the entries on all tapes
	bytes int
}

// messageKey finds a message: ids are unique in their thread.
type messageKey struct{ thread, id string }

// cached is an encoded message. Nothing of it changes but next.
type cached struct {
	key     messageKey
	message kept
	encoded []byte // with the rest of its tape as capacity
	mark    mark
	tape    *tape
	at      int // on the tape
	// next came behind this message the last time: it is looked at before the map is. It
	// stands on the same tape, so no entry keeps a tape alive that was dropped.
	next atomic.Pointer[cached]
}

// find fills in the encodings that are kept and counts the others, which are nil.
func (m *messageCache) find(e *abi.Event, p *packedEvent) (missing int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var last *cached
	for i := range e.Messages {
		c := m.lookUp(e.Run.ThreadID, &e.Messages[i], last)
		p.messages = append(p.messages, c)
		if c == nil {
			missing++
		} else if last == nil || c.tape != last.tape {
			c.tape.use()
		}
		last = c
	}
	return missing
}

// lookUp finds the encoding of a message that stands behind last, if that is known.
func (m *messageCache) lookUp(thread string, message *abi.Message, last *cached) *cached {
	if last != nil {
		if c := last.next.Load(); c != nil && c.message.is(message) {
			return c
		}
	}
	c := m.entries[messageKey{thread, message.ID}]
	if c == nil || !c.message.is(message) {
		return nil
	}
	if last != nil && last.tape == c.tape {
		last.next.Store(c)
	}
	return c
}

// add encodes the messages that find did not, and keeps those that can be.
func (m *messageCache) add(e *abi.Event, p *packedEvent) error {
	for i := range p.messages {
		if p.messages[i] != nil {
			continue
		}
		message, start := &e.Messages[i], len(p.fresh)
		var err error
		if p.fresh, err = wire.AppendValue(p.fresh, message, messageDepth); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		data := p.fresh[start:]
		p.messages[i] = &cached{key: messageKey{e.Run.ThreadID, message.ID}, encoded: data, mark: markOf(message, len(data))}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range p.messages {
		if c.tape != nil || c.key.id == "" || len(c.encoded) > maxCachedOne {
			continue
		}
		var ok bool
		if c.message, ok = keep(&e.Messages[i]); ok {
			m.put(c)
		}
	}
	return nil
}

// put keeps an entry in place of the one with its key, whose encoding stays on its
// tape.
func (m *messageCache) put(c *cached) {
	if m.entries == nil {
		m.entries, m.open = map[messageKey]*cached{}, map[string]*tape{}
	}
	for len(m.ring) > 0 && m.count >= maxCached {
		m.dropOne()
	}
	m.tapeFor(c).append(c)
	m.entries[c.key] = c
	m.count++
	m.bytes += entryOverhead
}
