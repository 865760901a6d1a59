package sqlitestore

import (
	"context"
	"database/sql"
	"strings"
)

// Commits returns how many transactions the writer committed.
func (s *Store) Commits() int {
	return int(s.writer.commits.Load())
}

// Waiting returns how many jobs the writer has.
func (s *Store) Waiting() int {
	return s.writer.queue.Len()
}

// Script runs statements on the writer's connection, in a transaction.
func (s *Store) Script(ctx context.Context, text string) error {
	return s.writer.write(ctx, 0, change{do: func(ctx context.Context, t *tx) error {
		t.wrote = true
		return t.script(ctx, text)
	}})
}

// Change makes a change, which gets what runs statements in the transaction, and may panic.
func (s *Store) Change(ctx context.Context, do func(script func(string) error) error) error {
	return s.writer.write(ctx, 0, change{do: func(ctx context.Context, t *tx) error {
		t.wrote = true
		return do(func(text string) error { return t.script(ctx, text) })
	}})
}

// KeptNotices is how many notices stay at least.
const KeptNotices = keptNotices

// Number returns the number that a query selects.
func (s *Store) Number(ctx context.Context, text string) (n int64, err error) {
	err = s.read(ctx, func(c *conn) error {
		_, err := c.row(ctx, []any{&n}, text)
		return err
	})
	return n, err
}

// Statements returns those that run often, by what they do.
func Statements() map[string]string {
	return map[string]string{
		"thread": selectThread, "find": findThread, "log": selectLog, "trim": trimEntries, "delete cells": deleteCells + " AND key < ?",
		"delete places": deletePlaces + " AND cell < ?", "places": selectPlaces, "delete place": deletePlace,
		"drop places": "DELETE FROM place WHERE thread = ?",
		"cells":       selectCells + " ORDER BY key", "entries": selectEntries, "scan": scanPlaces + scanValues + scanWhere + scanTo + scanOrder,
		"count": countPlaces, "last event": lastEvent, "trim events": trimEvents, "events": selectEvents, "purge": purgeEvents,
	}
}

// Plan returns how SQLite runs a statement.
func (s *Store) Plan(ctx context.Context, text string) (plan string, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.rows(ctx, func(rows *sql.Rows) error {
			var id, parent, unused int
			var detail string
			err := rows.Scan(&id, &parent, &unused, &detail)
			plan += detail + "\n"
			return err
		}, "EXPLAIN QUERY PLAN "+text, make([]any, strings.Count(text, "?"))...)
	})
	return plan, err
}
