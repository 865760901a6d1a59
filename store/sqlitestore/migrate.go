package sqlitestore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
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

// missing is an fs.ErrNotExist of tables.
type missing struct{}

func (missing) Error() string { return "it has no tables of a store" }

func (missing) Is(target error) bool { return target == fs.ErrNotExist }

// steps returns the scripts that lead from one version of the schema to the next. Those of a release never change.
func steps() ([]string, error) {
	names, err := fs.Glob(schema, "schema/*.sql")
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(schema, name)
		if err != nil {
			return nil, err
		}
		out = append(out, string(text))
	}
	return out, nil
}

// version returns the version of the tables in the file, 0 if it is empty, or an error for a file that this program must not use.
func (c *conn) version(ctx context.Context, known int) (int, error) {
	var id, version, tables int
	if _, err := c.row(ctx, []any{&id, &version, &tables}, selectMarks); err != nil {
		return 0, err
	}
	switch {
	case id == earlierID:
		return 0, errors.New("it was written by an older version of Mortise; start with a new file")
	case id == 0 && version == 0 && tables == 0:
		return 0, nil
	case id != applicationID:
		return 0, fmt.Errorf("it is a database of another program (application %#x, %d tables); name another file", id, tables)
	case version > known:
		return 0, fmt.Errorf("its tables have version %d, and this program knows %d; use a newer version of Mortise", version, known)
	}
	return version, nil
}

// migrate brings the tables to the current version. A process that is killed meanwhile leaves the version before.
func (c *conn) migrate(ctx context.Context, existing bool) error {
	scripts, err := steps()
	if err != nil {
		return err
	}
	var version int
	err = retry(ctx, func() (err error) {
		version, err = c.version(ctx, len(scripts))
		return err
	})
	switch {
	case err != nil:
		return err
	case version == 0 && existing:
		return missing{}
	case version < len(scripts) && existing:
		return fmt.Errorf("its tables have version %d, and this program has %d; open it with a program that writes first", version, len(scripts))
	case existing:
		return nil
	}
	if err := retry(ctx, func() error { return c.logAhead(ctx, version == 0) }); err != nil {
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
	if err := retry(ctx, func() error { return c.script(ctx, "BEGIN IMMEDIATE") }); err != nil {
		return 0, err
	}
	version, err = c.version(ctx, len(scripts)) // another process may have been faster
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
