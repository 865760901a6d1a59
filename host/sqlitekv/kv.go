package sqlitekv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/kv"
)

// Get implements [host.KV].
func (s *Store) Get(ctx context.Context, namespace, key string) (value []byte, found bool, err error) {
	err = retry(ctx, func() error {
		row := s.db.QueryRowContext(ctx, "SELECT value FROM kv WHERE namespace = ? AND key = ?", []byte(namespace), []byte(key))
		err := row.Scan(&value)
		if found = err == nil; errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("sqlitekv: get: %w", err)
	}
	return value, found, nil
}

// Set implements [host.KV].
func (s *Store) Set(ctx context.Context, namespace, key string, value []byte, q kv.Quota) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		if err := check(ctx, tx, namespace, key, int64(len(value)), q); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx,
			"INSERT INTO kv VALUES (?1, ?2, ?3) ON CONFLICT (namespace, key) DO UPDATE SET value = ?3",
			[]byte(namespace), []byte(key), append([]byte{}, value...))
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlitekv: set: %w", err)
	}
	return nil
}

// check decides whether a value fits into the quota. What only shrinks always does.
func check(ctx context.Context, tx *sql.Tx, namespace, key string, size int64, q kv.Quota) error {
	var keys, bytes, old sql.NullInt64
	err := tx.QueryRowContext(ctx, `SELECT (SELECT keys FROM usage WHERE namespace = ?1),
		(SELECT bytes FROM usage WHERE namespace = ?1),
		(SELECT length(value) FROM kv WHERE namespace = ?1 AND key = ?2)`, []byte(namespace), []byte(key)).Scan(&keys, &bytes, &old)
	if err != nil {
		return err
	}
	after := bytes.Int64 + size - old.Int64
	if !old.Valid {
		keys.Int64++
		after += int64(len(key))
	}
	if (!old.Valid && keys.Int64 > int64(q.Keys)) || (after > bytes.Int64 && after > q.Bytes) {
		return fmt.Errorf("space %q: %w: %d keys of %d, %d bytes of %d", namespace, host.ErrQuota, keys.Int64, q.Keys, after, q.Bytes)
	}
	return nil
}

// Delete implements [host.KV].
func (s *Store) Delete(ctx context.Context, namespace, key string) (bool, error) {
	var n int64
	err := s.write(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "DELETE FROM kv WHERE namespace = ? AND key = ?", []byte(namespace), []byte(key))
		if err != nil {
			return err
		}
		n, err = done.RowsAffected()
		return err
	})
	if err != nil {
		return false, fmt.Errorf("sqlitekv: delete: %w", err)
	}
	return n > 0, nil
}

// List implements [host.KV].
func (s *Store) List(ctx context.Context, namespace, prefix, after string, limit int) (keys []string, err error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	query, args := "SELECT key FROM kv WHERE namespace = ? AND key >= ?", []any{[]byte(namespace), []byte(prefix)}
	if after != "" {
		query, args = query+" AND key > ?", append(args, []byte(after))
	}
	if end := beyond(prefix); end != nil {
		query, args = query+" AND key < ?", append(args, end)
	}
	args = append(args, limit)
	err = retry(ctx, func() error {
		keys, err = s.strings(ctx, query+" ORDER BY key LIMIT ?", args)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sqlitekv: list: %w", err)
	}
	return keys, nil
}

func (s *Store) strings(ctx context.Context, query string, args []any) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var key []byte
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		out = append(out, string(key))
	}
	return out, rows.Err()
}

// beyond is the least key after all that begin with prefix, nil if there is none.
func beyond(prefix string) []byte {
	end := []byte(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		end[i]++
		if end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
