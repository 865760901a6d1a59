package natsstore

import (
	"bytes"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/state"
)

// Structs are encoded as MessagePack arrays of their fields, in order: a new field goes to the end. TestFormat has the bytes.

// kind is what a message of a thread is.
type kind uint8

const (
	kindOperation kind = 1 // its body is an operation
	kindSnapshot  kind = 2 // its body is a snapshot, which replaces all messages before it
	kindGone      kind = 3 // its body is an operation that dropped the thread
)

// envelope is a message of a thread.
type envelope struct {
	Thread string
	Kind   kind
	// Fresh marks the first operation of a thread, Prev is otherwise the sequence of the message before.
	Fresh bool
	Prev  uint64
	// Writer is the Store that wrote it.
	Writer string
	Body   []byte
	// Parts is how many messages have the body, if it is not here. The first one is Back before this message.
	Parts, Back uint64
}

// operation is a batch that was applied.
type operation struct {
	ID     string
	Drop   bool
	Delete []store.Range
	Put    []store.Cell
	Trim   []store.Trim
	Append []store.Entry
	Notify []string
}

// batch returns the batch that an operation was.
func (op *operation) batch(thread string) store.Batch {
	return store.Batch{
		Thread: thread, ID: op.ID, Drop: op.Drop, Delete: op.Delete, Put: op.Put, Trim: op.Trim, Append: op.Append, Notify: op.Notify,
	}
}

// snapshot is all of a thread.
type snapshot struct {
	Revision uint64
	Cells    []store.Cell
	Logs     []logRecord
	Applied  []state.Applied
}

// logRecord is a log of a snapshot. All its entries are in chunks.
type logRecord struct {
	Name   string
	After  uint64
	Chunks []chunkRecord
}

// chunkRecord is some entries of a log: Count of them, of which the first Skip were trimmed. They are in Parts messages from Seq on, or
// from Back before the snapshot.
type chunkRecord struct{ Count, Skip, Seq, Back, Parts uint64 }

// claim is the message of a unique place.
type claim struct{ Thread string }

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	e.UseArrayEncodedStructs(true)
	e.UseCompactInts(true)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("natsstore: encode: %w", err)
	}
	return b.Bytes(), nil
}

func decode(data []byte, v any) error {
	if err := msgpack.Unmarshal(data, v); err != nil {
		return fmt.Errorf("natsstore: decode: %w", err)
	}
	return nil
}
