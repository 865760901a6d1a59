package pgstore

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store"
)

// Outcomes of the function apply.
const (
	outcomeApplied = iota
	outcomeRevision
	outcomeEntries
)

// Apply implements store.Store.
func (s *Store) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if err := b.Validate(); err != nil {
		return 0, err
	}
	args := batchArgs(&b)
	var revision int64
	var outcome int
	what := fmt.Sprintf("thread %.80q", b.Thread)
	err := s.write(ctx, what, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, s.sql.apply, args...).Scan(&revision, &outcome)
	})
	switch {
	case err != nil:
		return 0, err
	case outcome == outcomeRevision:
		return 0, fmt.Errorf("pgstore: %s: %w: it has %d, the batch was made for %d", what, store.ErrConflict, revision, b.Base)
	case outcome == outcomeEntries:
		return 0, fmt.Errorf("pgstore: %s: %w: entries do not follow their logs", what, store.ErrConflict)
	}
	if s.tx == nil {
		s.notices.add(b.Notify)
	} else if err := s.notifyInside(ctx, b.Notify); err != nil {
		return 0, err
	}
	return uint64(revision), nil //nolint:gosec // not negative
}

// batchArgs returns the parameters of the function apply, in its order.
func batchArgs(b *store.Batch) []any {
	base := int64(-1)
	if b.Base != store.AnyRevision {
		base = number(b.Base)
	}
	var deletes columns
	for _, r := range b.Delete {
		deletes.add(r.Kind, r.From, upper(r.To))
	}
	args := []any{[]byte(b.Thread), []byte(b.ID), base, b.Drop, deletes.at(0), deletes.at(1), deletes.at(2)}
	args = append(args, putArgs(b)...)
	return append(args, entryArgs(b)...)
}

func putArgs(b *store.Batch) []any {
	var cells, places columns
	var values [][]byte
	var from, to, of []int32
	var sole []bool
	for i := range b.Put {
		c := &b.Put[i]
		cells.add(c.Kind, c.Key)
		values = append(values, full(c.Value))
		from = append(from, int32(len(of)+1))        //nolint:gosec // fewer
		to = append(to, int32(len(of)+len(c.Index))) //nolint:gosec // fewer
		ref := reference(b.Thread, c.Kind, c.Key)
		for _, k := range c.Index {
			places.add(slot(k.Name, k.Group), k.Group, k.Key, ref)
			of, sole = append(of, int32(i+1)), append(sole, k.Unique) //nolint:gosec // fewer
		}
	}
	return []any{cells.at(0), cells.at(1), values, from, to, of, places.at(0), places.at(1), places.at(2), places.at(3), sole}
}

func entryArgs(b *store.Batch) []any {
	var trims, logs columns
	var before, nth, seq []int64
	var data [][]byte
	for _, t := range b.Trim {
		trims.add(t.Log)
		before = append(before, number(t.Before))
	}
	count := map[string]int64{}
	for i := range b.Append {
		e := &b.Append[i]
		count[e.Log]++
		logs.add(e.Log)
		nth, seq, data = append(nth, count[e.Log]), append(seq, number(e.Seq)), append(data, full(e.Data))
	}
	return []any{trims.at(0), before, logs.at(0), nth, seq, data}
}

// columns are arrays of equal length.
type columns [][][]byte

func (c *columns) add(values ...string) {
	if *c == nil {
		*c = make(columns, len(values))
	}
	for i, v := range values {
		(*c)[i] = append((*c)[i], []byte(v))
	}
}

// at returns an array, nil if nothing was added.
func (c columns) at(i int) [][]byte {
	if c == nil {
		return nil
	}
	return c[i]
}

// full returns bytes that are not NULL.
func full(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// number returns a number as the server has it. No revision, log or stream gets as far as the largest.
func number(n uint64) int64 { return int64(min(n, math.MaxInt64)) } //nolint:gosec // bounded
