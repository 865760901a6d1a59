package guest

import (
	"fmt"
	"sync"

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
	entryOverhead = 640
	// messageDepth is where messages stand in an event: in a map and an array.
	messageDepth = 2
)

// messageCache keeps the MessagePack encodings of messages, which a run shows again at every step.
// An encoding is used only for a message that is equal to the one it was made of, in
// all its fields: an id is where to look, no proof that nothing has changed. The zero
// messageCache is empty. It is safe for concurrent use.
type messageCache struct {
	events sync.Pool // of *packedEvent

	mu      sync.RWMutex
	entries map[messageKey]entry
	// open are the tapes with room, by thread. ring holds all tapes; hand is where the
	// search for one to drop continues.
	open  map[string]*tape
	ring  []*tape
	hand  int
	count int // of the messages on all tapes
	bytes int
}

// messageKey finds a message: ids are unique in their thread.
type messageKey struct{ thread, id string }

// entry is where the encoding of a message stands.
type entry struct {
	tape *tape
	at   int
}

// find lists the encodings of an event's messages: runs that stand on a tape, and
// between them such that are not kept.
func (m *messageCache) find(e *abi.Event, p *packedEvent) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for i := 0; i < len(e.Messages); {
		c := m.entries[messageKey{e.Run.ThreadID, e.Messages[i].ID}]
		if n := c.tape.run(c.at, e.Messages[i:]); n > 0 {
			c.tape.use()
			p.pieces = append(p.pieces, c.tape.piece(c.at, n))
			i += n
			continue
		}
		if last := len(p.pieces) - 1; last >= 0 && p.pieces[last].missing {
			p.pieces[last].n++
		} else {
			p.pieces = append(p.pieces, piece{n: 1, missing: true})
		}
		p.missing++
		i++
	}
}

// add encodes the messages that find did not, and keeps those that can be.
func (m *messageCache) add(e *abi.Event, p *packedEvent) error {
	at := 0
	for i := range p.pieces {
		piece := &p.pieces[i]
		if piece.missing {
			if err := p.encode(e.Messages[at:at+piece.n], at); err != nil {
				return err
			}
		}
		at += piece.n
	}
	p.fill()
	m.mu.Lock()
	defer m.mu.Unlock()
	at = 0
	for _, piece := range p.pieces {
		for k := 0; piece.missing && k < piece.n; k++ {
			m.put(e.Run.ThreadID, &e.Messages[at+k], piece.item(k), piece.marks[k*abi.MessageMarkSize:][:abi.MessageMarkSize])
		}
		at += piece.n
	}
	return nil
}

// encode writes messages of an event, of which the first is number at.
func (p *packedEvent) encode(messages []abi.Message, at int) error {
	for i := range messages {
		start := len(p.fresh)
		var err error
		if p.fresh, err = wire.AppendValue(p.fresh, &messages[i], messageDepth); err != nil {
			return fmt.Errorf("messages[%d]: %w", at+i, err)
		}
		p.freshEnds = append(p.freshEnds, len(p.fresh))
		p.freshMarks = appendMark(p.freshMarks, &messages[i], len(p.fresh)-start)
	}
	return nil
}

// put keeps an encoding in place of the one of the same message, which stays on its
// tape.
func (m *messageCache) put(thread string, message *abi.Message, encoded, mark []byte) {
	if message.ID == "" || len(encoded) > maxCachedOne {
		return
	}
	own, ok := copyMessage(message)
	if !ok {
		return // it cannot be compared
	}
	if m.entries == nil {
		m.entries, m.open = map[messageKey]entry{}, map[string]*tape{}
	}
	for len(m.ring) > 0 && m.count >= maxCached {
		m.dropOne()
	}
	t := m.tapeFor(thread, len(encoded))
	m.entries[messageKey{thread, message.ID}] = entry{t, t.append(message, &own, encoded, mark)}
	m.count++
	m.bytes += entryOverhead
}
