package recordstore

import (
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// write puts a line. Only the last one waits for the disk.
func (s *Store) write(p record.Put) (kept bool, err error) {
	run := s.file.WriteSoft
	if p.Last {
		run = s.file.Write
	}
	err = s.call(run, func(c *engine.Conn) (err error) {
		kept, err = put(c, p)
		return err
	})
	return kept && err == nil, err
}

// put adds a line to a record, unless that would be too large, or is not there and not begun by it.
func put(c *engine.Conn, p record.Put) (kept bool, err error) {
	var number, bytes int64
	err = c.Query(func(r *engine.Row) { number, bytes = r.Int(), r.Int() }, "SELECT number, bytes FROM record_run WHERE run = ?", p.Run)
	if err != nil || bytes+int64(len(p.Data)) > p.Limit || number == 0 && !p.First {
		return false, err
	}
	if number == 0 {
		number, err = c.Insert("INSERT INTO record_run (run, written, bytes) SELECT ?, ifnull(max(written), 0) + 1, 0 FROM record_run", p.Run)
		if err != nil {
			return false, err
		}
	}
	_, err = c.Exec("INSERT INTO record_line SELECT ?, ifnull(max(n), 0) + 1, ? FROM record_line WHERE run = ?", number, p.Data, number)
	if err != nil {
		return false, err
	}
	_, err = c.Exec("UPDATE record_run SET bytes = bytes + ? WHERE number = ?", len(p.Data), number)
	if err != nil {
		return false, err
	}
	_, err = c.Exec(`UPDATE record_run SET written = (SELECT max(written) FROM record_run) + 1
		WHERE number = ? AND written < (SELECT max(written) FROM record_run)`, number)
	return true, err
}
