package recordstore

import (
	"context"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/pgstore/internal/tables"
)

// Start implements record.Store.
func (s *Store) Start(b record.Start) error {
	run := b.Run.RunID
	if err := record.CheckRun(run); err != nil {
		return err
	}
	b.Schema, b.Source = record.Schema, s.cfg.Source
	data, err := record.Line{Start: &b}.Encode()
	if err != nil {
		return err
	}
	var kept bool
	err = s.call(s.tables.Write, func(ctx context.Context, tx tables.Tx) (err error) {
		if err := soft(ctx, tx); err != nil {
			return err
		}
		kept, err = put(ctx, tx, run, data, s.cfg.RunBytes+record.EndRoom, true)
		return err
	})
	if err != nil {
		return wrap(run, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return wrap(run, errClosed)
	}
	s.started[run] += dropped(kept)
	return nil
}

// dropped counts what was not kept.
func dropped(kept bool) int {
	if kept {
		return 0
	}
	return 1
}

// Add implements record.Store.
func (s *Store) Add(run string, e record.Entry) error {
	s.mu.Lock()
	_, started := s.started[run]
	s.mu.Unlock()
	if !started {
		return nil
	}
	data, err := record.Line{Entry: &e}.Encode()
	if err != nil {
		return err
	}
	kept := false
	if len(data) <= record.MaxLine {
		err = s.call(s.tables.Write, func(ctx context.Context, tx tables.Tx) (err error) {
			if err := soft(ctx, tx); err != nil {
				return err
			}
			kept, err = put(ctx, tx, run, data, s.cfg.RunBytes, false)
			return err
		})
	}
	if err != nil {
		return wrap(run, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, started := s.started[run]; started {
		s.started[run] += dropped(kept)
	}
	return nil
}

// End implements record.Store.
func (s *Store) End(run string, e record.End) error {
	s.mu.Lock()
	missing, started := s.started[run]
	delete(s.started, run)
	s.mu.Unlock()
	if !started {
		return nil
	}
	e.Dropped = missing
	data, err := record.Line{End: &e}.Encode()
	if err != nil {
		return err
	}
	return wrap(run, s.call(s.tables.Write, func(ctx context.Context, tx tables.Tx) error {
		_, err := put(ctx, tx, run, data, s.cfg.RunBytes+record.EndRoom, false)
		return err
	}))
}

// soft lets the commit return before it is on the disk.
func soft(ctx context.Context, tx tables.Tx) error {
	_, err := tx.Exec(ctx, `SET LOCAL synchronous_commit = off`)
	return err
}

// put adds a line to a record, unless it would be larger than limit, or is not there and is not
// begun.
func put(ctx context.Context, tx tables.Tx, run string, data []byte, limit int64, begin bool) (kept bool, err error) {
	if begin && int64(len(data)) <= limit {
		const insert = `INSERT INTO @.record_run (run, written, bytes) VALUES ($1, 0, 0) ON CONFLICT DO NOTHING`
		if _, err := tx.Exec(ctx, insert, run); err != nil {
			return false, err
		}
	}
	var number, bytes int64
	found, err := tx.One(ctx, `SELECT number, bytes FROM @.record_run WHERE run = $1 FOR UPDATE`, []any{run}, &number, &bytes)
	if err != nil || !found || bytes+int64(len(data)) > limit {
		return false, err
	}
	const insert = `INSERT INTO @.record_line SELECT $1::bigint, coalesce(max(n), 0) + 1, $2::bytea FROM @.record_line WHERE run = $1`
	if _, err := tx.Exec(ctx, insert, number, data); err != nil {
		return false, err
	}
	const update = `UPDATE @.record_run SET bytes = bytes + $2, written = nextval($3::text::regclass) WHERE number = $1`
	_, err = tx.Exec(ctx, update, number, len(data), tx.Name("record_written"))
	return err == nil, err
}
