package pgstore

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
)

// Rows of the function read.
const (
	rowRevision = iota
	rowCell
	rowLast
	rowEntry
)

// Read implements store.Store.
func (s *Store) Read(ctx context.Context, thread string, q store.Query) (out store.Snapshot, err error) {
	args := queryArgs(thread, q)
	err = s.read(ctx, fmt.Sprintf("thread %.80q", thread), func(ctx context.Context, c *pgx.Conn) error {
		out = store.Snapshot{Last: map[string]uint64{}}
		for _, span := range q.Entries {
			out.Last[span.Log] = 0
		}
		rows, err := c.Query(ctx, s.sql.read, args...)
		if err != nil {
			return err
		}
		var what int
		var nth, seq *int64
		var key, data []byte
		_, err = pgx.ForEachRow(rows, []any{&what, &nth, &key, &seq, &data}, func() error {
			switch what {
			case rowRevision:
				out.Revision = uint64(*seq) //nolint:gosec // not negative
			case rowCell:
				out.Cells = append(out.Cells, store.Cell{Kind: q.Cells[*nth-1].Kind, Key: string(key), Value: data})
			case rowLast:
				out.Last[q.Entries[*nth-1].Log] = uint64(*seq) //nolint:gosec // not negative
			case rowEntry:
				out.Entries = append(out.Entries, store.Entry{Log: q.Entries[*nth-1].Log, Seq: uint64(*seq), Data: data}) //nolint:gosec // not negative
			}
			key, data = nil, nil // the next row does not reuse them
			return nil
		})
		return err
	})
	return out, err
}

// queryArgs returns the parameters of the function read, in its order.
func queryArgs(thread string, q store.Query) []any {
	var ranges, spans columns
	var limits, from, most []int64
	for _, r := range q.Cells {
		ranges.add(r.Kind, r.From, upper(r.To))
		limit := int64(r.Limit)
		if limit <= 0 {
			limit = math.MaxInt64
		}
		limits = append(limits, limit)
	}
	for _, span := range q.Entries {
		spans.add(span.Log)
		from, most = append(from, sqlcore.Number(span.From)), append(most, int64(max(span.Limit, 0)))
	}
	return []any{[]byte(thread), ranges.at(0), ranges.at(1), ranges.at(2), limits, spans.at(0), from, most}
}
