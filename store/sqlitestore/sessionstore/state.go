package sessionstore

import (
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// Load implements compaction.Store.
func (s *Store) Load(thread string) (state compaction.State, rev uint64, err error) {
	var data []byte
	err = s.call(s.file.Read, func(c *engine.Conn) error {
		data, rev = nil, 0
		return c.Query(func(r *engine.Row) { rev, data = r.Uint(), r.Bytes() },
			"SELECT s.rev, s.data FROM session_state AS s, session_thread AS t WHERE t.thread = ? AND s.thread = t.number", thread)
	})
	if err == nil && rev != 0 {
		if err = json.Unmarshal(data, &state); err != nil {
			err = fmt.Errorf("state %d: %w", rev, err)
		}
	}
	if err != nil {
		return compaction.State{}, 0, wrap(thread, err)
	}
	return state, rev, nil
}

// Swap implements compaction.Store.
func (s *Store) Swap(thread string, rev uint64, state compaction.State) (next uint64, err error) {
	data, err := json.Marshal(state)
	if err != nil {
		return 0, wrap(thread, err)
	}
	err = s.call(s.file.Write, func(c *engine.Conn) error { return swap(c, thread, rev, data) })
	if err != nil {
		return 0, wrap(thread, err)
	}
	return rev + 1, nil
}

func swap(c *engine.Conn, thread string, rev uint64, data []byte) error {
	n, err := number(c, thread)
	if err != nil {
		return err
	}
	var have uint64
	if err := c.Query(func(r *engine.Row) { have = r.Uint() }, "SELECT rev FROM session_state WHERE thread = ?", n); err != nil {
		return err
	}
	if have != rev {
		return compaction.ErrConflict
	}
	if n, err = numbered(c, thread); err != nil {
		return err
	}
	_, err = c.Exec("INSERT INTO session_state VALUES (?, ?, ?) ON CONFLICT (thread) DO UPDATE SET rev = excluded.rev, data = excluded.data", n, rev+1, data)
	return err
}

// Record implements compaction.Store. Events beyond session.MaxEvents are forgotten.
func (s *Store) Record(e compaction.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return wrap(e.Thread, err)
	}
	return wrap(e.Thread, s.call(s.file.WriteSoft, func(c *engine.Conn) error {
		thread, err := numbered(c, e.Thread)
		if err != nil {
			return err
		}
		var n int64
		if err := c.Query(func(r *engine.Row) { n = r.Int() + 1 }, "SELECT max(n) FROM session_event WHERE thread = ?", thread); err != nil {
			return err
		}
		if _, err := c.Exec("INSERT INTO session_event VALUES (?, ?, ?)", thread, n, data); err != nil {
			return err
		}
		_, err = c.Exec("DELETE FROM session_event WHERE thread = ? AND n <= ?", thread, n-session.MaxEvents)
		return err
	}))
}

// Events implements session.Store.
func (s *Store) Events(thread string) (all []compaction.Event, err error) {
	err = s.call(s.file.Read, func(c *engine.Conn) error {
		all = nil
		n, err := number(c, thread)
		if err != nil {
			return err
		}
		var broken error
		err = c.Query(func(r *engine.Row) {
			var e compaction.Event
			at := r.Int()
			if err := json.Unmarshal(r.Bytes(), &e); err != nil && broken == nil {
				broken = fmt.Errorf("event %d: %w", at, err)
			}
			all = append(all, e)
		}, "SELECT n, data FROM session_event WHERE thread = ? ORDER BY n", n)
		return firstOf(err, broken)
	})
	if err != nil {
		return nil, wrap(thread, err)
	}
	return all, nil
}
