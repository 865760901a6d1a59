package outboxstore

import (
	"encoding/json"
	"fmt"
	"time"
)

// message is what is written to a thread's log at once. Names and keys may be any bytes.
type message struct {
	// ID names this message, Prev is the number of the one before it, 0 for the first of a log.
	ID     string `json:"id"`
	Prev   uint64 `json:"prev,omitempty"`
	Thread []byte `json:"thread"`
	// Reset says that what came before does not count.
	Reset bool `json:"reset,omitempty"`
	Ops   []op `json:"ops,omitempty"`
}

// op is one operation.
type op struct {
	// Task and Record keep a record, if Task is set.
	Task   []byte `json:"task,omitempty"`
	Record []byte `json:"record,omitempty"`
	// Data is an entry, if it is not nil. Seq is set if it was queued by an earlier message.
	Data []byte `json:"data"`
	AtMS int64  `json:"at_ms,omitempty"`
	Seq  uint64 `json:"seq,omitempty"`
	// Key is taken from now on.
	Key []byte `json:"key,omitempty"`
	// Remove are entries that go, Forget tasks whose records and keys go.
	Remove []uint64 `json:"remove,omitempty"`
	Forget [][]byte `json:"forget,omitempty"`
}

// placeBits is how many of a number's bits say which entry of its message it is: the others are the message's own number.
// The server counts up for ever, so no number comes twice.
const (
	placeBits  = 8
	maxEntries = 1 << placeBits
)

func (m *message) encode() ([]byte, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return data, nil
}

func decode(data []byte) (m message, err error) {
	if err := json.Unmarshal(data, &m); err != nil {
		return message{}, fmt.Errorf("a message is damaged: %w", err)
	}
	return m, nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
