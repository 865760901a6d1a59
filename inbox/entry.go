package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/dynamic"
	"github.com/mortise-dev/mortise/store"
)

// Kinds of cells that an inbox has in a thread of the store. Other packages have kinds of their own there. Names of threads, tasks and keys
// have at most store.MaxKey bytes.
const (
	entryKind  = "inbox-entry"  // a notification, by number
	recordKind = "inbox-record" // of a task, by its id
	keyKind    = "inbox-key"    // of an entry that must be queued once
	// threadIndex has a group for each thread, with its entries and records.
	threadIndex = "inbox"
)

func indexOf(thread string) []store.IndexKey {
	return []store.IndexKey{{Name: threadIndex, Group: thread}}
}

// entry is a notification in the store.
type entry struct {
	seq  uint64
	data []byte // JSON
	at   time.Time
}

// entryKey returns the key of an entry's cell.
func entryKey(seq uint64) string { return store.Number(int64(seq)) } //nolint:gosec // a revision is small

func (e *entry) cell(thread string) store.Cell {
	value := append([]byte(store.Number(e.at.UnixMilli())), e.data...)
	return store.Cell{Kind: entryKind, Key: entryKey(e.seq), Value: value, Index: indexOf(thread)}
}

func entryOf(c *store.Cell) (e entry, err error) {
	seq, err := store.ParseNumber(c.Key)
	if err != nil {
		return e, err
	}
	at, err := store.ParseNumber(string(c.Value))
	if err != nil {
		return e, fmt.Errorf("entry %d: %w", seq, err)
	}
	return entry{seq: uint64(seq), data: c.Value[len(store.Number(0)):], at: time.UnixMilli(at)}, nil //nolint:gosec // it was a uint64
}

// key makes the key of an entry. A number alone would come again in another store.
func (e *entry) key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", e.at.UnixMilli(), e.data))
	return fmt.Sprintf("%d-%x", e.seq, sum[:8])
}

func decodeNotice(data []byte) (n abi.Notice, err error) {
	if err := dynamic.Decode(data, &n); err != nil {
		return abi.Notice{}, fmt.Errorf("notification: %w", err)
	}
	n.Payload, n.Result = dynamic.Numbers(n.Payload), dynamic.Numbers(n.Result)
	for i := range n.Messages {
		m := &n.Messages[i]
		for k, v := range m.Metadata {
			m.Metadata[k] = dynamic.Numbers(v)
		}
		for j := range m.ToolCalls {
			m.ToolCalls[j].Arguments = dynamic.Numbers(m.ToolCalls[j].Arguments)
		}
	}
	return n, nil
}

func (o *Inbox) encode(n *abi.Notice) ([]byte, error) {
	data, err := json.Marshal(n)
	if err == nil && len(data) > o.cfg.MaxEntry {
		err = fmt.Errorf("task %.80q: %w: %d bytes, at most %d are allowed", n.TaskID, ErrTooLarge, len(data), o.cfg.MaxEntry)
	}
	return data, err
}

// pageSize is how many entries are read from the store at a time.
const pageSize = 256

// page returns the entries of a thread whose numbers are greater than after, oldest first. The page has all
// that the store had up to the number upTo.
func (o *Inbox) page(ctx context.Context, thread string, after uint64) (entries []entry, upTo uint64, err error) {
	s, err := o.cfg.Store.Read(ctx, thread, store.Query{Cells: []store.Range{{Kind: entryKind, From: entryKey(after + 1), Limit: pageSize}}})
	if err != nil {
		return nil, 0, err
	}
	entries, upTo = make([]entry, len(s.Cells)), s.Revision
	for i := range s.Cells {
		if entries[i], err = entryOf(&s.Cells[i]); err != nil {
			return nil, 0, err
		}
	}
	if len(entries) == pageSize {
		upTo = entries[pageSize-1].seq
	}
	return entries, upTo, nil
}
