package sessionstore

import (
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// line is one of a log, ready to be kept.
type line struct {
	id   string
	data []byte
}

// lines makes lines of messages, before anybody waits for the file.
func lines(messages []abi.Message, of func(*abi.Message) session.Line) ([]line, error) {
	out := make([]line, len(messages))
	for i := range messages {
		data, err := json.Marshal(of(&messages[i]))
		if err != nil {
			return nil, fmt.Errorf("message %.80q: %w", messages[i].ID, err)
		}
		out[i] = line{id: messages[i].ID, data: data}
	}
	return out, nil
}

// Append implements session.Store. All messages are kept or none.
func (s *Store) Append(thread string, messages ...abi.Message) error {
	if len(messages) == 0 {
		return nil
	}
	if err := session.Check(thread, messages); err != nil {
		return err
	}
	list, err := lines(messages, func(m *abi.Message) session.Line { return session.Line{Message: m} })
	if err != nil {
		return wrap(thread, err)
	}
	return wrap(thread, s.call(s.file.Write, func(c *engine.Conn) error {
		n, err := numbered(c, thread)
		if err != nil {
			return err
		}
		return add(c, n, list)
	}))
}

// Replace implements session.Store. All messages are replaced or none; those that are stay in the
// file.
func (s *Store) Replace(thread string, messages ...abi.Message) error {
	if len(messages) == 0 {
		return nil
	}
	list, err := lines(messages, func(m *abi.Message) session.Line { return session.Line{Replace: m} })
	if err != nil {
		return wrap(thread, err)
	}
	return wrap(thread, s.call(s.file.Write, func(c *engine.Conn) error {
		n, err := logged(c, thread)
		if err != nil {
			return err
		}
		for _, l := range list {
			there := false
			err := c.Query(func(*engine.Row) { there = true }, "SELECT 1 FROM session_line WHERE thread = ? AND id = ? LIMIT 1", n, l.id)
			if err != nil {
				return err
			}
			if !there {
				return fmt.Errorf("there is no message %.80q to replace", l.id)
			}
		}
		return add(c, n, list)
	}))
}

// logged is the number of a thread that has a log.
func logged(c *engine.Conn, thread string) (int64, error) {
	n, err := number(c, thread)
	if err != nil {
		return 0, err
	}
	last, err := last(c, n)
	if err == nil && last == 0 {
		err = session.ErrUnknown
	}
	return n, err
}

// last is the number of the last line of a log, 0 if there is none.
func last(c *engine.Conn, thread int64) (n int64, err error) {
	err = c.Query(func(r *engine.Row) { n = r.Int() }, "SELECT max(n) FROM session_line WHERE thread = ?", thread)
	return n, err
}

func add(c *engine.Conn, thread int64, list []line) error {
	n, err := last(c, thread)
	if err != nil {
		return err
	}
	for i, l := range list {
		if _, err := c.Exec("INSERT INTO session_line VALUES (?, ?, ?, ?)", thread, n+int64(i)+1, l.id, l.data); err != nil {
			return err
		}
	}
	return nil
}

// Log implements session.Store. It reads line by line, as the log is at one moment.
func (s *Store) Log(thread string) ([]abi.Message, error) {
	var log *session.Log
	err := s.call(s.file.Read, func(c *engine.Conn) error {
		log = &session.Log{}
		n, err := logged(c, thread)
		if err != nil {
			return err
		}
		var broken error
		err = c.Query(func(r *engine.Row) {
			at := r.Int()
			if broken != nil {
				return
			}
			if broken = log.Add(r.Bytes()); broken != nil {
				broken = fmt.Errorf("line %d: %w", at, broken)
			}
		}, "SELECT n, data FROM session_line WHERE thread = ? ORDER BY n", n)
		return firstOf(err, broken)
	})
	if err != nil {
		return nil, wrap(thread, err)
	}
	return log.Messages(), nil
}

// Threads implements session.Store.
func (s *Store) Threads() (all []string, err error) {
	err = s.call(s.file.Read, func(c *engine.Conn) error {
		all = nil
		return c.Query(func(r *engine.Row) { all = append(all, r.Text()) },
			"SELECT thread FROM session_thread WHERE EXISTS (SELECT 1 FROM session_line WHERE thread = number) ORDER BY thread")
	})
	if err != nil {
		return nil, fmt.Errorf("sessionstore: %w", err)
	}
	return all, nil
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
