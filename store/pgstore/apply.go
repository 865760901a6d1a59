package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
)

// Outcomes of the function apply.
const (
	outcomeApplied = iota
	outcomeRevision
	outcomeEntries
	outcomeLocked
)

// Apply implements store.Store.
func (s *Store) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if err := b.Validate(); err != nil {
		return 0, err
	}
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	if s.tx != nil {
		revision, err := s.alone(ctx, &b)
		if err != nil {
			return 0, err
		}
		return revision, s.notify(ctx, b.Notify) // the server does so when the transaction is committed
	}
	m, err := s.grouped(ctx, &b)
	if err != nil {
		return 0, err
	}
	if m.alone {
		m.revision, m.err = s.alone(ctx, &b)
	}
	if m.err == nil {
		s.notifyLater(ctx, b.Notify)
	}
	return m.revision, m.err
}

// alone applies a batch, after other transactions that have its thread.
func (s *Store) alone(ctx context.Context, b *store.Batch) (uint64, error) {
	out, err := s.call(ctx, true, []*store.Batch{b})
	if err != nil {
		return 0, err
	}
	return out[0].of(b)
}

// answer is what the function apply returns for a batch.
type answer struct {
	revision int64
	outcome  int32
}

// call calls the function apply.
func (s *Store) call(ctx context.Context, alone bool, list []*store.Batch) ([]answer, error) {
	what := fmt.Sprintf("thread %.80q", list[0].Thread)
	if n := len(list) - 1; n > 0 {
		what += fmt.Sprintf(" and %d others", n)
	}
	args := append([]any{alone}, batchArgs(list)...)
	var revisions []int64
	var outcomes []int32
	err := s.write(ctx, what, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, s.sql.apply, args...).Scan(&revisions, &outcomes)
	})
	if err != nil {
		return nil, err
	}
	out := make([]answer, len(list))
	for i := range out {
		out[i] = answer{revisions[i], outcomes[i]}
	}
	return out, nil
}

// of returns the answer as Apply does.
func (a answer) of(b *store.Batch) (uint64, error) {
	switch a.outcome {
	case outcomeRevision:
		return 0, fmt.Errorf("pgstore: thread %.80q: %w: it has %d, the batch was made for %d", b.Thread, store.ErrConflict, a.revision, b.Base)
	case outcomeEntries:
		return 0, fmt.Errorf("pgstore: thread %.80q: %w: entries do not follow their logs", b.Thread, store.ErrConflict)
	}
	return uint64(a.revision), nil //nolint:gosec // not negative
}

// batchArgs returns the parameters of the function apply, in its order.
func batchArgs(list []*store.Batch) []any {
	var threads, deletes columns
	var bases []int64
	var dropping []bool
	var of []int32
	for i, b := range list {
		threads.add(b.Thread, b.ID)
		base := int64(-1)
		if b.Base != store.AnyRevision {
			base = sqlcore.Number(b.Base)
		}
		bases, dropping = append(bases, base), append(dropping, b.Drop)
		for _, r := range b.Delete {
			of = append(of, position(i))
			deletes.add(r.Kind, r.From, upper(r.To))
		}
	}
	args := []any{threads.at(0), threads.at(1), bases, dropping, of, deletes.at(0), deletes.at(1), deletes.at(2)}
	args = append(args, putArgs(list)...)
	return append(args, entryArgs(list)...)
}

func putArgs(list []*store.Batch) []any {
	var cells, places columns
	var values [][]byte
	var batches, from, to, of []int32
	var sole []bool
	for n, b := range list {
		for i := range b.Put {
			c := &b.Put[i]
			cells.add(c.Kind, c.Key)
			values, batches = append(values, sqlcore.Bytes(c.Value)), append(batches, position(n))
			from, to = append(from, position(len(of))), append(to, position(len(of)+len(c.Index)-1))
			ref := reference(b.Thread, c.Kind, c.Key)
			for _, k := range c.Index {
				places.add(slot(k.Name, k.Group), k.Group, k.Key, ref)
				of, sole = append(of, position(len(batches)-1)), append(sole, k.Unique)
			}
		}
	}
	return []any{
		batches, cells.at(0), cells.at(1), values, from, to,
		of, places.at(0), places.at(1), places.at(2), places.at(3), sole,
	}
}

func entryArgs(list []*store.Batch) []any {
	var trims, logs columns
	var trimmed, appended []int32
	var before, nth, seq []int64
	var data [][]byte
	for n, b := range list {
		for _, t := range b.Trim {
			trims.add(t.Log)
			trimmed, before = append(trimmed, position(n)), append(before, sqlcore.Number(t.Before))
		}
		count := map[string]int64{}
		for i := range b.Append {
			e := &b.Append[i]
			count[e.Log]++
			logs.add(e.Log)
			appended, nth = append(appended, position(n)), append(nth, count[e.Log])
			seq, data = append(seq, sqlcore.Number(e.Seq)), append(data, sqlcore.Bytes(e.Data))
		}
	}
	return []any{trimmed, trims.at(0), before, appended, logs.at(0), nth, seq, data}
}

// position is an index of a list as PostgreSQL counts.
func position(i int) int32 { return int32(i + 1) } //nolint:gosec // lists are shorter

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
