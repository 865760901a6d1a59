package recordstore

import (
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
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
	err = s.call(s.file.WriteSoft, func(c *engine.Conn) (err error) {
		kept, err = put(c, run, data, s.cfg.RunBytes+record.EndRoom, true)
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
		err = s.call(s.file.WriteSoft, func(c *engine.Conn) (err error) {
			kept, err = put(c, run, data, s.cfg.RunBytes, false)
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
	return wrap(run, s.call(s.file.Write, func(c *engine.Conn) error {
		_, err := put(c, run, data, s.cfg.RunBytes+record.EndRoom, false)
		return err
	}))
}

// put adds a line to a record, unless it would be larger than limit, or is not there and is not
// begun.
func put(c *engine.Conn, run string, data []byte, limit int64, begin bool) (kept bool, err error) {
	var number, bytes int64
	err = c.Query(func(r *engine.Row) { number, bytes = r.Int(), r.Int() }, "SELECT number, bytes FROM record_run WHERE run = ?", run)
	if err != nil || bytes+int64(len(data)) > limit || number == 0 && !begin {
		return false, err
	}
	if number == 0 {
		number, err = c.Insert("INSERT INTO record_run (run, written, bytes) SELECT ?, ifnull(max(written), 0) + 1, 0 FROM record_run", run)
		if err != nil {
			return false, err
		}
	}
	_, err = c.Exec("INSERT INTO record_line SELECT ?, ifnull(max(n), 0) + 1, ? FROM record_line WHERE run = ?", number, data, number)
	if err != nil {
		return false, err
	}
	_, err = c.Exec("UPDATE record_run SET bytes = bytes + ? WHERE number = ?", len(data), number)
	if err != nil {
		return false, err
	}
	_, err = c.Exec(`UPDATE record_run SET written = (SELECT max(written) FROM record_run) + 1
		WHERE number = ? AND written < (SELECT max(written) FROM record_run)`, number)
	return true, err
}
