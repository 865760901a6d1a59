package thread

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/store"
)

// ledgerKind names the cell with the ledger of a thread, compressed JSON.
const ledgerKind = "ledger"

// maxLedger bounds the cell. A ledger is below about a megabyte before it is compressed; one that is larger is
// not stored, and read from the log anew. maxPlain bounds it when it is read.
const (
	maxLedger = 768 << 10
	maxPlain  = 16 << 20
)

var _ compaction.LedgerStore = (*Threads)(nil)

// LoadLedger implements compaction.LedgerStore. A cell that cannot be decoded is no ledger.
func (t *Threads) LoadLedger(thread string) (out compaction.StoredLedger, err error) {
	q := store.Query{Cells: []store.Range{store.One(ledgerKind, "")}}
	err = t.read(background(), thread, q, func(s store.Snapshot) error {
		var stored compaction.StoredLedger
		if data, ok := s.Cell(ledgerKind, ""); ok && unpack(data, &stored) == nil {
			out = stored
		}
		return nil
	})
	return out, err
}

func unpack(data []byte, out *compaction.StoredLedger) error {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return json.NewDecoder(io.LimitReader(r, maxPlain)).Decode(out)
}

// SaveLedger implements compaction.LedgerStore.
func (t *Threads) SaveLedger(thread string, l compaction.StoredLedger) error {
	data, err := pack(&l)
	if err != nil {
		return fmt.Errorf("thread: %s: the ledger: %w", thread, err)
	}
	_, err = t.Commit(background(), thread, Commit{Put: []store.Cell{{Kind: ledgerKind, Value: data}}})
	return err
}

func pack(l *compaction.StoredLedger) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(w).Encode(l), w.Close()); err != nil {
		return nil, err
	}
	if b.Len() > maxLedger {
		return nil, fmt.Errorf("it has %d bytes, at most are %d", b.Len(), maxLedger)
	}
	return b.Bytes(), nil
}
