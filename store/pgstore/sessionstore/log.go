package sessionstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/pgstore/internal/tables"
)

// lines are those of a log, ready to be kept.
type lines struct{ ids, data [][]byte }

// linesOf makes lines of messages, before anybody waits for the thread.
func linesOf(messages []abi.Message, of func(*abi.Message) session.Line) (l lines, err error) {
	for i := range messages {
		data, err := json.Marshal(of(&messages[i]))
		if err != nil {
			return l, fmt.Errorf("message %.80q: %w", messages[i].ID, err)
		}
		l.ids, l.data = append(l.ids, []byte(messages[i].ID)), append(l.data, data)
	}
	return l, nil
}

// Append implements session.Store. All messages are kept or none.
func (s *Store) Append(thread string, messages ...abi.Message) error {
	if len(messages) == 0 {
		return nil
	}
	if err := session.Check(thread, messages); err != nil {
		return err
	}
	l, err := linesOf(messages, func(m *abi.Message) session.Line { return session.Line{Message: m} })
	if err != nil {
		return wrap(thread, err)
	}
	return wrap(thread, s.call(s.tables.Write, func(ctx context.Context, tx tables.Tx) error {
		n, err := numbered(ctx, tx, thread)
		if err != nil {
			return err
		}
		return add(ctx, tx, n, l)
	}))
}

// Replace implements session.Store. All messages are replaced or none; those that are stay in the table.
func (s *Store) Replace(thread string, messages ...abi.Message) error {
	if len(messages) == 0 {
		return nil
	}
	l, err := linesOf(messages, func(m *abi.Message) session.Line { return session.Line{Replace: m} })
	if err != nil {
		return wrap(thread, err)
	}
	return wrap(thread, s.call(s.tables.Write, func(ctx context.Context, tx tables.Tx) error {
		n, err := locked(ctx, tx, thread)
		if err != nil {
			return err
		}
		if err := logged(ctx, tx, n); err != nil {
			return err
		}
		var missing []byte
		const look = `SELECT want.id FROM unnest($2::bytea[]) AS want (id) WHERE NOT EXISTS (SELECT FROM @.session_line WHERE thread = $1 AND id = want.id) LIMIT 1`
		found, err := tx.One(ctx, look, []any{n, l.ids}, &missing)
		if found {
			err = fmt.Errorf("there is no message %.80q to replace", missing)
		}
		if err != nil {
			return err
		}
		return add(ctx, tx, n, l)
	}))
}

// logged refuses a thread that has no log.
func logged(ctx context.Context, tx tables.Tx, thread int64) error {
	found, err := tx.One(ctx, `SELECT n FROM @.session_line WHERE thread = $1 ORDER BY n LIMIT 1`, []any{thread}, new(int64))
	if err == nil && !found {
		err = session.ErrUnknown
	}
	return err
}

// add adds lines to a thread that is locked.
func add(ctx context.Context, tx tables.Tx, thread int64, l lines) error {
	_, err := tx.Exec(ctx, `INSERT INTO @.session_line (thread, n, id, data)
		SELECT $1::bigint, coalesce((SELECT max(n) FROM @.session_line WHERE thread = $1), 0) + l.place, l.id, l.data
		FROM unnest($2::bytea[], $3::bytea[]) WITH ORDINALITY AS l (id, data, place)`, thread, l.ids, l.data)
	return err
}

// Log implements session.Store. It reads line by line, as the log is at one moment.
func (s *Store) Log(thread string) ([]abi.Message, error) {
	var log *session.Log
	err := s.call(s.tables.Read, func(ctx context.Context, tx tables.Tx) error {
		log = &session.Log{}
		n, err := number(ctx, tx, thread)
		if err != nil {
			return err
		}
		if err := logged(ctx, tx, n); err != nil {
			return err
		}
		return tx.Each(ctx, func(scan func(...any) error) error {
			var at int64
			var data []byte
			if err := scan(&at, &data); err != nil {
				return err
			}
			if err := log.Add(data); err != nil {
				return fmt.Errorf("line %d: %w", at, err)
			}
			return nil
		}, `SELECT n, data FROM @.session_line WHERE thread = $1 ORDER BY n`, n)
	})
	if err != nil {
		return nil, wrap(thread, err)
	}
	return log.Messages(), nil
}

// Threads implements session.Store.
func (s *Store) Threads() (all []string, err error) {
	err = s.call(s.tables.Read, func(ctx context.Context, tx tables.Tx) error {
		all = nil
		return tx.Each(ctx, func(scan func(...any) error) error {
			var thread []byte
			err := scan(&thread)
			all = append(all, string(thread))
			return err
		}, `SELECT t.thread FROM @.session_thread AS t WHERE EXISTS (SELECT FROM @.session_line AS l WHERE l.thread = t.number) ORDER BY t.thread`)
	})
	if err != nil {
		return nil, fmt.Errorf("sessionstore: %w", err)
	}
	return all, nil
}
