package sessionstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/pgstore/internal/tables"
)

// Load implements compaction.Store.
func (s *Store) Load(thread string) (state compaction.State, rev uint64, err error) {
	var data []byte
	var have int64
	err = s.call(s.tables.Read, func(ctx context.Context, tx tables.Tx) error {
		data, have = nil, 0
		_, err := tx.One(ctx, `SELECT s.rev, s.data FROM @.session_thread AS t JOIN @.session_state AS s ON s.thread = t.number WHERE t.thread = $1`,
			[]any{[]byte(thread)}, &have, &data)
		return err
	})
	if err == nil && have != 0 {
		if err = json.Unmarshal(data, &state); err != nil {
			err = fmt.Errorf("state %d: %w", have, err)
		}
	}
	if err != nil {
		return compaction.State{}, 0, wrap(thread, err)
	}
	return state, uint64(have), nil //nolint:gosec // it counts from 1
}

// Swap implements compaction.Store.
func (s *Store) Swap(thread string, rev uint64, state compaction.State) (next uint64, err error) {
	data, err := json.Marshal(state)
	if err != nil {
		return 0, wrap(thread, err)
	}
	if rev > 1<<62 {
		return 0, compaction.ErrConflict // there is none
	}
	err = s.call(s.tables.Write, func(ctx context.Context, tx tables.Tx) error { return swap(ctx, tx, thread, int64(rev), data) }) //nolint:gosec // bounded
	if err != nil {
		return 0, wrap(thread, err)
	}
	return rev + 1, nil
}

func swap(ctx context.Context, tx tables.Tx, thread string, rev int64, data []byte) error {
	n, err := numbered(ctx, tx, thread)
	if err != nil {
		return err
	}
	var have int64
	if _, err := tx.One(ctx, `SELECT rev FROM @.session_state WHERE thread = $1`, []any{n}, &have); err != nil {
		return err
	}
	if have != rev {
		return compaction.ErrConflict
	}
	const put = `INSERT INTO @.session_state VALUES ($1, $2, $3) ON CONFLICT (thread) DO UPDATE SET rev = excluded.rev, data = excluded.data`
	_, err = tx.Exec(ctx, put, n, rev+1, data)
	return err
}

// Record implements compaction.Store. Events beyond session.MaxEvents are forgotten.
func (s *Store) Record(e compaction.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return wrap(e.Thread, err)
	}
	return wrap(e.Thread, s.call(s.tables.Write, func(ctx context.Context, tx tables.Tx) error {
		thread, err := numbered(ctx, tx, e.Thread)
		if err != nil {
			return err
		}
		var n int64
		const put = `INSERT INTO @.session_event SELECT $1::bigint, coalesce(max(n), 0) + 1, $2::bytea FROM @.session_event WHERE thread = $1 RETURNING n`
		if _, err := tx.One(ctx, put, []any{thread, data}, &n); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM @.session_event WHERE thread = $1 AND n <= $2`, thread, n-session.MaxEvents)
		return err
	}))
}

// Events implements session.Store.
func (s *Store) Events(thread string) (all []compaction.Event, err error) {
	err = s.call(s.tables.Read, func(ctx context.Context, tx tables.Tx) error {
		all = nil
		n, err := number(ctx, tx, thread)
		if err != nil {
			return err
		}
		return tx.Each(ctx, func(scan func(...any) error) error {
			var e compaction.Event
			var at int64
			var data []byte
			if err := scan(&at, &data); err != nil {
				return err
			}
			if err := json.Unmarshal(data, &e); err != nil {
				return fmt.Errorf("event %d: %w", at, err)
			}
			all = append(all, e)
			return nil
		}, `SELECT n, data FROM @.session_event WHERE thread = $1 ORDER BY n`, n)
	})
	if err != nil {
		return nil, wrap(thread, err)
	}
	return all, nil
}
