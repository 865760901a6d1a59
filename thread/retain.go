package thread

import (
	"math"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/store"
)

// Retention bounds the messages whose content stays in a log. What a model sees of the thread is never dropped: see compaction.State.Drop.
// The zero Retention bounds nothing.
type Retention struct {
	// Before is the time before which a message was appended whose content is dropped, zero for none. Count is how many messages keep theirs,
	// the newest, 0 for all.
	Before time.Time
	Count  int
}

// Bounds reports whether anything is bounded.
func (r Retention) Bounds() bool { return r.Count > 0 || !r.Before.IsZero() }

// Glance selects what [Retention.Due] needs.
func (Retention) Glance() store.Query {
	return store.Query{Cells: []store.Range{store.One(compactionKind, "")}, Entries: []store.Span{{Log: MessageKind, From: 1, Limit: 1}}}
}

// Due reports whether a thread may have something to drop. It need not read the log for that.
func (r Retention) Due(s store.Snapshot) bool {
	state, err := stateOf(s)
	if err != nil || len(state.State.Markers) == 0 || len(s.Entries) == 0 {
		return false
	}
	first, err := DecodeMessage(s.Entries[0].Data)
	return err == nil && (r.old(first) || r.Count > 0 && s.Last[MessageKind]-s.Entries[0].Seq >= uint64(r.Count)) //nolint:gosec // positive
}

func (r Retention) old(m Message) bool { return !m.At.IsZero() && m.At.Before(r.Before) }

// Query selects what [Retention.AddTo] depends on.
func (Retention) Query() store.Query {
	q := MessagesQuery(1, math.MaxInt32)
	q.Cells = append(q.Cells, store.One(compactionKind, ""), store.One(ledgerKind, ""))
	return q
}

// AddTo adds to a batch of a thread what drops the content of messages, about a thousand at most, and returns of how many. The batch is based
// on the revision of the snapshot that [Retention.Query] selected. Each message keeps its place and its id.
func (r Retention) AddTo(b *store.Batch, s store.Snapshot) (n int, err error) {
	first, all, err := MessagesOf(s)
	if err != nil || first != 1 {
		return 0, err
	}
	log, err := decoded(all)
	if err != nil {
		return 0, err
	}
	cell, err := stateOf(s)
	if err != nil {
		return 0, err
	}
	places, rest := cell.State.Drop(log, r.excess(all))
	if len(places) == 0 {
		return 0, nil
	}
	if err := trim(b, s, all, rest, places); err != nil {
		return 0, err
	}
	if err := follow(b, s, log, rest); err != nil {
		return 0, err
	}
	c := Commit{State: &cell.State, Base: cell.Revision}
	return len(places), c.AddTo(b, s)
}

// excess is how many messages at the beginning of a log are beyond the bounds.
func (r Retention) excess(all []Message) (n int) {
	if r.Count > 0 {
		n = max(0, len(all)-r.Count)
	}
	for n < len(all) && r.old(all[n]) {
		n++
	}
	return n
}

// trim deletes the entries up to the last message that is dropped. Cells replace them: those of messages that stay have all of it.
func trim(b *store.Batch, s store.Snapshot, all []Message, rest []abi.Message, places []int) error {
	dropped := map[int]bool{}
	for _, i := range places {
		dropped[i] = true
		data, err := Encode(&rest[i])
		if err != nil {
			return err
		}
		all[i].Data = data
	}
	replaced := map[string]bool{}
	for i := range s.Cells {
		replaced[s.Cells[i].Key] = replaced[s.Cells[i].Key] || s.Cells[i].Kind == MessageKind
	}
	end := places[len(places)-1] + 1
	for i := range all[:end] {
		if key := Place(uint64(i) + 1); dropped[i] || !replaced[key] { //nolint:gosec // an index
			b.Put = append(b.Put, store.Cell{Kind: MessageKind, Key: key, Value: all[i].Encode()})
		}
	}
	b.Trim = append(b.Trim, store.Trim{Log: MessageKind, Before: uint64(end) + 1}) //nolint:gosec // a count
	return nil
}

// follow keeps the ledger of the log, which could not be read from it again.
func follow(b *store.Batch, s store.Snapshot, log, rest []abi.Message) error {
	data, ok := s.Cell(ledgerKind, "")
	var l compaction.StoredLedger
	if usable := ok && unpack(data, &l) == nil; !usable || !l.Follow(log, rest) {
		return nil
	}
	data, err := pack(&l)
	if err == nil {
		b.Put = append(b.Put, store.Cell{Kind: ledgerKind, Value: data})
	}
	return err
}
