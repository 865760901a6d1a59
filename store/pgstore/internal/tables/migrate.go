package tables

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
)

// Migrate brings a set of tables to the version of this program: the scripts in the folder schema, one after the other. The versions
// are in a table of the given name. Several processes may do so at once; versions only go up. Where only existing tables are used it
// checks the version, and tables that are not there are an fs.ErrNotExist.
func (s *Tables) Migrate(ctx context.Context, table string, scripts embed.FS) error {
	files, err := scripts.ReadDir("schema")
	if err != nil {
		return err //nolint:wrapcheck // it is in the program
	}
	m := &migration{Tables: s, table: pgx.Identifier{s.schema, table}.Sanitize(), scripts: scripts}
	version, err := m.version(ctx)
	if err != nil || version == len(files) {
		return err
	}
	if version > len(files) {
		return newer(version, len(files))
	}
	if s.existing {
		return m.missing(ctx, version, len(files))
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { //nolint:wrapcheck // the package above does
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, s.Key("migration")); err != nil {
			return err //nolint:wrapcheck // as above
		}
		version, err := m.prepare(ctx, tx)
		if err != nil {
			return err
		}
		if version > len(files) {
			return newer(version, len(files))
		}
		for i := version; i < len(files); i++ {
			if err := m.apply(ctx, tx, i+1, files[i].Name()); err != nil {
				return fmt.Errorf("migration %s: %w", files[i].Name(), err)
			}
		}
		return nil
	})
}

// migration is one of a set of tables.
type migration struct {
	*Tables

	table   string
	scripts embed.FS
}

// apply makes one step.
func (m *migration) apply(ctx context.Context, tx pgx.Tx, version int, file string) error {
	sql, err := m.scripts.ReadFile("schema/" + file)
	if err != nil {
		return err //nolint:wrapcheck // as above
	}
	if _, err := tx.Exec(ctx, m.SQL(string(sql)), pgx.QueryExecModeSimpleProtocol); err != nil {
		return err //nolint:wrapcheck // as above
	}
	_, err = tx.Exec(ctx, `INSERT INTO `+m.table+` (version) VALUES ($1)`, version)
	return err //nolint:wrapcheck // as above
}

// absent is an fs.ErrNotExist of a database.
type absent string

func (a absent) Error() string { return string(a) }

func (absent) Is(target error) bool { return target == fs.ErrNotExist }

// missing is the error of tables that are older than the program, or are not there.
func (m *migration) missing(ctx context.Context, version, known int) error {
	if version > 0 {
		return fmt.Errorf("it has version %d and this program has version %d: let a program that writes open it first", version, known)
	}
	var there bool
	if err := m.pool.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL`, m.schema).Scan(&there); err != nil {
		return err //nolint:wrapcheck // the package above does
	}
	if !there {
		return absent(fmt.Sprintf("the database has no schema %q; check the name", m.schema))
	}
	return absent(fmt.Sprintf("schema %q has no table %s; check the name", m.schema, m.table))
}

func newer(version, known int) error {
	return fmt.Errorf("it has version %d and this program knows versions up to %d: run the newer program", version, known)
}

// version is 0 while there are no tables.
func (m *migration) version(ctx context.Context) (version int, err error) {
	var there bool
	err = m.pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, m.table).Scan(&there)
	if err != nil || !there {
		return 0, err //nolint:wrapcheck // as above
	}
	err = m.pool.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM `+m.table).Scan(&version)
	return version, err //nolint:wrapcheck // as above
}

// prepare makes the schema and the table of versions, and reads the latest. A role that may not make
// schemas can use one that is there.
func (m *migration) prepare(ctx context.Context, tx pgx.Tx) (version int, err error) {
	var there bool
	if err := tx.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL`, m.schema).Scan(&there); err != nil {
		return 0, err //nolint:wrapcheck // as above
	}
	if !there {
		if _, err := tx.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{m.schema}.Sanitize()); err != nil {
			return 0, errors.Join(err, errors.New("let the role make schemas, or make it for the role"))
		}
	}
	const columns = ` (version bigint PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`
	if _, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS `+m.table+columns); err != nil {
		return 0, err //nolint:wrapcheck // as above
	}
	err = tx.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM `+m.table).Scan(&version)
	return version, err //nolint:wrapcheck // as above
}
