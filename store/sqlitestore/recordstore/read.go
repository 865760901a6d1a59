package recordstore

import (
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// Bounds of what is read: how many ids are looked through, and how much of a record, in bytes.
const (
	maxIDs   = 1000
	maxBytes = 256 << 20
)

// List implements record.Store.
func (s *Store) List(n int) (all []record.Known, err error) {
	err = s.call(s.file.Read, func(c *engine.Conn) error {
		all = nil
		return c.Query(func(r *engine.Row) {
			id := r.Text()
			var l record.Line
			if err := json.Unmarshal(r.Bytes(), &l); err == nil && l.Start != nil {
				all = append(all, record.Known{ID: id, Start: *l.Start})
			}
		}, `SELECT r.run, l.data FROM record_run AS r, record_line AS l WHERE l.run = r.number AND l.n = 1
			ORDER BY r.written DESC LIMIT ?`, max(n, 0))
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
	err := s.call(s.file.Read, func(c *engine.Conn) error {
		out, unknown = nil, nil
		ids, err := candidates(c, id)
		if err != nil {
			return err
		}
		var run string
		if run, unknown = record.Find(id, ids, s.file.Path()); unknown != nil {
			return nil //nolint:nilerr // it is returned below
		}
		out, err = load(c, run)
		return err
	})
	switch {
	case unknown != nil:
		return nil, unknown
	case err != nil:
		return nil, s.keeper.Wrap(id, err)
	case len(out.Starts) == 0:
		return nil, s.keeper.Wrap(id, fmt.Errorf("it is not a record of the format %s", record.Schema))
	}
	return out, nil
}

// candidates are runs that may be meant by an id, and the newest of all if there is none.
func candidates(c *engine.Conn, id string) (ids []string, err error) {
	take := func(r *engine.Row) { ids = append(ids, r.Text()) }
	if record.CheckRun(id) == nil {
		const above = "\x7f" // comes after what ids are made of
		err = c.Query(take, "SELECT run FROM record_run WHERE run >= ? AND run < ? ORDER BY run = ? DESC, written DESC LIMIT ?", id, id+above, id, maxIDs)
	}
	if err == nil && len(ids) == 0 {
		err = c.Query(take, "SELECT run FROM record_run ORDER BY written DESC LIMIT ?", maxIDs)
	}
	return ids, err
}

// load reads a record line by line.
func load(c *engine.Conn, run string) (*record.Run, error) {
	out, size := &record.Run{}, 0
	err := c.Query(func(r *engine.Row) {
		data := r.Bytes()
		if size += len(data); size <= maxBytes {
			out.Take(data)
		} else {
			out.Unreadable++
		}
	}, "SELECT data FROM record_line WHERE run = (SELECT number FROM record_run WHERE run = ?) ORDER BY n", run)
	return out, err
}
