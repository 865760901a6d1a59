package thread

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/wire"
	"github.com/mortise-dev/mortise/store"
)

// MessageKind names the log of messages, and the cells of those that were replaced.
const MessageKind = "message"

// MaxMessage is how large a message may be that every store takes, in bytes as [Encode] returns it.
const MaxMessage = 8 << 20

// format keeps integers, floats and bytes of dynamic values apart.
const format = wire.MessagePack

// Message is a message as a log has it.
type Message struct {
	// ID is unique in its thread.
	ID string
	// Run is the run that it belongs to, if any.
	Run string
	// At is when it was appended.
	At time.Time
	// Data is the message in MessagePack: see [Encode].
	Data []byte
}

// logged is a Message on the wire. At is in nanoseconds of Unix time, 0 for none.
type logged struct {
	ID   string `json:"id"`
	Run  string `json:"run,omitempty"`
	At   int64  `json:"at,omitempty"`
	Data []byte `json:"data"`
}

// Encode returns the message as an entry of a log, or a cell that replaces one, has it.
func (m Message) Encode() []byte {
	out := logged{ID: m.ID, Run: m.Run, Data: m.Data}
	if !m.At.IsZero() {
		out.At = m.At.UnixNano()
	}
	data, err := format.Marshal(&out)
	if err != nil {
		panic(fmt.Sprintf("thread: message %.80q: %v", m.ID, err)) // strings, bytes and a number can be encoded
	}
	return data
}

// DecodeMessage reverses [Message.Encode].
func DecodeMessage(data []byte) (Message, error) {
	var in logged
	if err := format.Unmarshal(data, &in); err != nil {
		return Message{}, fmt.Errorf("thread: message: %w", err)
	}
	if in.ID == "" {
		return Message{}, errors.New("thread: message: it has no id")
	}
	out := Message{ID: in.ID, Run: in.Run, Data: in.Data}
	if in.At != 0 {
		out.At = time.Unix(0, in.At).UTC()
	}
	return out, nil
}

// Encode returns a message in MessagePack, as Message.Data has it.
func Encode(m *abi.Message) ([]byte, error) {
	data, err := format.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("thread: message %.80q: %w", m.ID, err)
	}
	return data, nil
}

// Decode reverses [Encode]. No data is the zero message.
func Decode(data []byte) (m abi.Message, err error) {
	if len(data) == 0 {
		return m, nil
	}
	if err := format.Unmarshal(data, &m); err != nil {
		return abi.Message{}, fmt.Errorf("thread: message: %w", err)
	}
	return m, nil
}

// Place is the key of the cell that replaces the message at a place of the log, from 1.
func Place(seq uint64) string { return store.Number(int64(seq)) } //nolint:gosec // counts from 1

// MessagesQuery selects messages of a log, from a place on.
func MessagesQuery(from uint64, limit int) store.Query {
	replaced := store.Range{Kind: MessageKind, From: Place(from)}
	if to := from + uint64(limit); to > from && to < 1<<62 { //nolint:gosec // not negative
		replaced.To = Place(to)
	}
	return store.Query{Entries: []store.Span{{Log: MessageKind, From: from, Limit: limit}}, Cells: []store.Range{replaced}}
}

// MessagesOf decodes the messages that a [MessagesQuery] selected, and returns the place of the first one. They have no gap: a cell replaces
// the entry of its place, also one that was trimmed, and the page may be longer than the query's limit.
func MessagesOf(s store.Snapshot) (first uint64, all []Message, err error) {
	values := map[uint64][]byte{}
	for i := range s.Entries {
		if e := &s.Entries[i]; e.Log == MessageKind {
			values[e.Seq] = e.Data
		}
	}
	for i := range s.Cells {
		c := &s.Cells[i]
		if c.Kind != MessageKind {
			continue
		}
		place, err := store.ParseNumber(c.Key)
		if err != nil {
			return 0, nil, fmt.Errorf("a replaced message has no place: %w", err)
		}
		values[uint64(place)] = c.Value //nolint:gosec // counts from 1
	}
	if len(values) == 0 {
		return 0, nil, nil
	}
	first = slices.Min(slices.Collect(maps.Keys(values)))
	for place := first; ; place++ {
		data, ok := values[place]
		if !ok {
			return first, all, nil
		}
		m, err := DecodeMessage(data)
		if err != nil {
			return 0, nil, fmt.Errorf("message %d is damaged: %w", place, err)
		}
		all = append(all, m)
	}
}
