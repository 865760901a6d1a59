package recordstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/pgstore/internal/tables"
)

// Bounds of what is read: how many ids are looked through, and how much of a record, in bytes.
const (
	maxIDs   = 1000
	maxBytes = 256 << 20
)

// List implements record.Store.
func (s *Store) List(n int) (all []record.Known, err error) {
	err = s.call(s.tables.Read, func(ctx context.Context, tx tables.Tx) error {
		all = nil
		return tx.Each(ctx, func(scan func(...any) error) error {
			var id string
			var data []byte
			if err := scan(&id, &data); err != nil {
				return err
			}
			var l record.Line
			if err := json.Unmarshal(data, &l); err == nil && l.Start != nil {
				all = append(all, record.Known{ID: id, Start: *l.Start})
			}
			return nil
		}, `SELECT r.run, l.data FROM @.record_run AS r JOIN @.record_line AS l ON l.run = r.number AND l.n = 1
			ORDER BY r.written DESC LIMIT $1`, max(n, 0))
	})
	if err != nil {
		return nil, fmt.Errorf("recordstore: %w", err)
	}
	return all, nil
}

// Load implements record.Store.
func (s *Store) Load(id string) (*record.Run, error) {
	var out *record.Run
	var unknown error
	err := s.call(s.tables.Read, func(ctx context.Context, tx tables.Tx) error {
		out, unknown = nil, nil
		ids, err := candidates(ctx, tx, id)
		if err != nil {
			return err
		}
		var run string
		if run, unknown = record.Find(id, ids, "schema "+s.tables.Schema()); unknown != nil {
			return nil //nolint:nilerr // it is returned below
		}
		out, err = load(ctx, tx, run)
		return err
	})
	switch {
	case err != nil:
		return nil, s.keeper.Wrap(id, err)
	case unknown != nil:
		return nil, unknown
	case len(out.Starts) == 0:
		return nil, s.keeper.Wrap(id, fmt.Errorf("it is not a record of the format %s", record.Schema))
	}
	return out, nil
}

// candidates are runs that may be meant by an id, and the newest of all if there is none.
func candidates(ctx context.Context, tx tables.Tx, id string) (ids []string, err error) {
	take := func(scan func(...any) error) error {
		var run string
		err := scan(&run)
		ids = append(ids, run)
		return err
	}
	if record.CheckRun(id) == nil {
		const above = "\x7f" // comes after what ids are made of
		err = tx.Each(ctx, take, `SELECT run FROM @.record_run WHERE run >= $1 AND run < $2 ORDER BY run = $1 DESC, written DESC LIMIT $3`, id, id+above, maxIDs)
	}
	if err == nil && len(ids) == 0 {
		err = tx.Each(ctx, take, `SELECT run FROM @.record_run ORDER BY written DESC LIMIT $1`, maxIDs)
	}
	return ids, err
}

// load reads a record line by line.
func load(ctx context.Context, tx tables.Tx, run string) (*record.Run, error) {
	out, size := &record.Run{}, 0
	err := tx.Each(ctx, func(scan func(...any) error) error {
		var data []byte
		if err := scan(&data); err != nil {
			return err
		}
		if size += len(data); size <= maxBytes {
			out.Take(data)
		} else {
			out.Unreadable++
		}
		return nil
	}, `SELECT data FROM @.record_line WHERE run = (SELECT number FROM @.record_run WHERE run = $1) ORDER BY n`, run)
	return out, err
}
