package recordstore

import (
	"context"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/pgstore/internal/tables"
)

// write puts a line. Only the last one waits for the disk.
func (s *Store) write(p record.Put) (kept bool, err error) {
	err = s.call(s.tables.Write, func(ctx context.Context, tx tables.Tx) (err error) {
		if !p.Last {
			if _, err := tx.Exec(ctx, `SET LOCAL synchronous_commit = off`); err != nil {
				return err
			}
		}
		kept, err = put(ctx, tx, p)
		return err
	})
	return kept && err == nil, err
}

// put adds a line to a record, unless that would be too large, or is not there and not begun by it.
func put(ctx context.Context, tx tables.Tx, p record.Put) (kept bool, err error) {
	if p.First && int64(len(p.Data)) <= p.Limit {
		const insert = `INSERT INTO @.record_run (run, written, bytes) VALUES ($1, 0, 0) ON CONFLICT DO NOTHING`
		if _, err := tx.Exec(ctx, insert, p.Run); err != nil {
			return false, err
		}
	}
	var number, bytes int64
	found, err := tx.One(ctx, `SELECT number, bytes FROM @.record_run WHERE run = $1 FOR UPDATE`, []any{p.Run}, &number, &bytes)
	if err != nil || !found || bytes+int64(len(p.Data)) > p.Limit {
		return false, err
	}
	const insert = `INSERT INTO @.record_line SELECT $1::bigint, coalesce(max(n), 0) + 1, $2::bytea FROM @.record_line WHERE run = $1`
	if _, err := tx.Exec(ctx, insert, number, p.Data); err != nil {
		return false, err
	}
	const update = `UPDATE @.record_run SET bytes = bytes + $2, written = nextval($3::text::regclass) WHERE number = $1`
	_, err = tx.Exec(ctx, update, number, len(p.Data), tx.Name("record_written"))
	return err == nil, err
}
