package sqlitestore

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/internal/sqlitefile"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
)

//go:embed schema/*.sql
var schema embed.FS

// Marks of the files in PRAGMA application_id. Earlier versions of Mortise had other tables, with another mark.
const (
	applicationID = 0x6d6f7232 // "mor2"
	earlierID     = 0x6d6f7274 // "mort"
)

// selectMarks is one statement, so that it sees one state of a file that another process migrates.
const selectMarks = `SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
	(SELECT count(*) FROM sqlite_schema)`

// version returns the version of the tables in the file, 0 if it is empty, or an error for a file that this program must not use.
func (c *conn) version(ctx context.Context, known int, existing bool) (int, error) {
	var id, version, tables int
	if _, err := c.row(ctx, []any{&id, &version, &tables}, selectMarks); err != nil {
		return 0, err
	}
	switch {
	case id == earlierID:
		return 0, errors.New("it was written by an older version of Mortise; start with a new file")
	case id != applicationID && (id != 0 || version != 0 || tables != 0):
		return 0, fmt.Errorf("it is a database of another program (application %#x, %d tables); name another file", id, tables)
	case version == 0 && existing:
		return 0, sqlcore.Absent("it has no tables of a store")
	}
	return version, sqlcore.Check(version, known, existing)
}

// migrate brings the tables to the current version. A process that is killed meanwhile leaves the version before.
func (c *conn) migrate(ctx context.Context, existing bool) error {
	scripts, err := sqlcore.Scripts(schema)
	if err != nil {
		return err
	}
	var version int
	err = sqlitefile.Retry(ctx, sqlitefile.LastPause, func() (err error) {
		version, err = c.version(ctx, len(scripts), existing)
		return err
	})
	if err != nil || existing {
		return err
	}
	if err := sqlitefile.Retry(ctx, sqlitefile.LastPause, func() error { return c.logAhead(ctx, version == 0) }); err != nil {
		return err
	}
	for version < len(scripts) {
		if version, err = c.step(ctx, scripts); err != nil {
			return err
		}
	}
	return nil
}

// logAhead brings the file to WAL mode, where it stays. Free pages can be given back only if an empty file was prepared for that.
func (c *conn) logAhead(ctx context.Context, empty bool) error {
	if empty {
		if err := c.script(ctx, "PRAGMA auto_vacuum = INCREMENTAL"); err != nil {
			return err
		}
	}
	var mode string
	_, err := c.row(ctx, []any{&mode}, "PRAGMA journal_mode = WAL")
	if err == nil && mode != "wal" {
		err = fmt.Errorf("the file system allows no write-ahead log (journal mode %s); use a local disk", mode)
	}
	return err
}

// step runs the next script, if there is one, and returns the version after it.
func (c *conn) step(ctx context.Context, scripts []string) (version int, err error) {
	if err := sqlitefile.Retry(ctx, sqlitefile.LastPause, func() error { return c.script(ctx, "BEGIN IMMEDIATE") }); err != nil {
		return 0, err
	}
	version, err = c.version(ctx, len(scripts), false) // another process may have been faster
	if err == nil && version < len(scripts) {
		version++
		err = c.script(ctx, fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = %d", scripts[version-1], applicationID, version))
	}
	if err == nil {
		err = c.script(ctx, "COMMIT")
	}
	if err != nil {
		return 0, errors.Join(fmt.Errorf("schema version %d: %w", version, err), c.script(ctx, "ROLLBACK"))
	}
	return version, nil
}
