package pgstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store"
)

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, q store.Scan) (out []store.Ref, err error) {
	key, ref := q.From, ""
	if q.After.IndexKey >= q.From && q.After.Thread != "" {
		key, ref = q.After.IndexKey, reference(q.After.Thread, q.After.Kind, q.After.Key)
	}
	args := []any{[]byte(slot(q.Index, q.Group)), []byte(key), []byte(ref), []byte(upper(q.To)), int64(max(q.Limit, 0)), q.Values}
	err = s.read(ctx, fmt.Sprintf("scan index %.80q", q.Index), func(ctx context.Context, c *pgx.Conn) error {
		out = nil
		rows, err := c.Query(ctx, s.sql.scan, args...)
		if err != nil {
			return err
		}
		var key, ref, value []byte
		_, err = pgx.ForEachRow(rows, []any{&key, &ref, &value}, func() error {
			r, err := dereference(string(ref))
			r.IndexKey, r.Value = string(key), value
			out, value = append(out, r), nil
			return err
		})
		return err
	})
	return out, err
}

// Count implements store.Store.
func (s *Store) Count(ctx context.Context, index string) (out map[string]int, err error) {
	low := slot(index, "")[:indexDigest]
	args := []any{[]byte(low), []byte(low + strings.Repeat("\xff", groupDigest+1))}
	err = s.read(ctx, fmt.Sprintf("count index %.80q", index), func(ctx context.Context, c *pgx.Conn) error {
		out = map[string]int{}
		rows, err := c.Query(ctx, s.sql.count, args...)
		if err != nil {
			return err
		}
		var group []byte
		var n int
		_, err = pgx.ForEachRow(rows, []any{&group, &n}, func() error {
			out[string(group)] = n
			return nil
		})
		return err
	})
	return out, err
}

// Bytes of a slot, in this order.
const (
	indexDigest = 8
	groupDigest = 16
)

// slot returns a digest of a group of an index. Those of one index have the same beginning.
func slot(index, group string) string {
	i, g := sha256.Sum256([]byte(index)), sha256.Sum256([]byte(group))
	return string(i[:indexDigest]) + string(g[:groupDigest])
}

// reference encodes the name of a cell. Encoded names sort as store.Ref does: NUL is written as 00 FF, and 00 01 ends a part.
func reference(thread, kind, key string) string {
	escape := func(s string) string { return strings.ReplaceAll(s, "\x00", "\x00\xff") + "\x00\x01" }
	return escape(thread) + escape(kind) + key
}

// dereference decodes it.
func dereference(ref string) (r store.Ref, err error) {
	thread, rest, ok := strings.Cut(ref, "\x00\x01")
	kind, key, both := strings.Cut(rest, "\x00\x01")
	if !ok || !both {
		return r, errors.New("damaged row of table place")
	}
	plain := func(s string) string { return strings.ReplaceAll(s, "\x00\xff", "\x00") }
	return store.Ref{Thread: plain(thread), Kind: plain(kind), Key: key}, nil
}

// upper returns the end of a range: after the longest key, if it has none.
func upper(to string) string {
	if to == "" {
		return strings.Repeat("\xff", store.MaxKey+1)
	}
	return to
}
