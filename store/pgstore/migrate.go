package pgstore

import (
	"context"
	"embed"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store"
)

//go:embed schema/*.sql
var migrations embed.FS

// expand puts the schema into a statement or a migration.
func expand(schema, sql string) string {
	prefix, remembered := pgx.Identifier{schema}.Sanitize()+".", strconv.Itoa(store.Remembered)
	return strings.NewReplacer("@.", prefix, "@channel", channel(schema), "@remembered", remembered).Replace(sql)
}

// state is what a schema has. Version is -1 without tables.
type state struct {
	there, old bool
	version    int
}

// migrate brings the schema to the version of this program. Several processes may do so at once.
func (s *Store) migrate(ctx context.Context) error {
	files, err := migrations.ReadDir("schema")
	if err != nil {
		return err
	}
	var st state
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
		st, err = s.state(ctx, tx)
		return err
	})
	if err == nil {
		err = s.check(st, len(files))
	}
	if err != nil || st.version == len(files) {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.upgrade(ctx, tx, files) })
}

// upgrade applies the migrations that the schema does not have. It reads the state again, as another process may have done so meanwhile.
func (s *Store) upgrade(ctx context.Context, tx pgx.Tx, files []fs.DirEntry) error {
	h := fnv.New64a()
	fmt.Fprintf(h, "mortise/%s/migration", s.cfg.Schema)
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(h.Sum64())); err != nil { //nolint:gosec // any number will do
		return err
	}
	st, err := s.state(ctx, tx)
	if err == nil {
		err = s.check(st, len(files))
	}
	if err == nil && !st.there { // a role that may not create schemas can use one that is there
		_, err = tx.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{s.cfg.Schema}.Sanitize())
	}
	if err == nil && st.version < 0 {
		st.version = 0
		const table = `CREATE TABLE @.schema_version (version bigint PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`
		_, err = tx.Exec(ctx, expand(s.cfg.Schema, table))
	}
	for ; err == nil && st.version < len(files); st.version++ {
		err = s.step(ctx, tx, st.version+1, files[st.version].Name())
	}
	return err
}

// step applies one migration.
func (s *Store) step(ctx context.Context, tx pgx.Tx, version int, file string) error {
	sql, err := migrations.ReadFile("schema/" + file)
	if err == nil {
		_, err = tx.Exec(ctx, expand(s.cfg.Schema, string(sql)), pgx.QueryExecModeSimpleProtocol)
	}
	if err == nil {
		_, err = tx.Exec(ctx, expand(s.cfg.Schema, `INSERT INTO @.schema_version (version) VALUES ($1)`), version)
	}
	if err != nil {
		return fmt.Errorf("migration %s: %w", file, err)
	}
	return nil
}

// state reads what the schema has.
func (s *Store) state(ctx context.Context, tx pgx.Tx) (st state, err error) {
	const sql = `SELECT to_regnamespace($1::text) IS NOT NULL,
		EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1::text AND c.relname = 'schema_version'),
		EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1::text
			AND c.relname IN ('migration', 'outbox_migration', 'session_migration', 'record_migration'))`
	var tables bool
	if err := tx.QueryRow(ctx, sql, s.cfg.Schema).Scan(&st.there, &tables, &st.old); err != nil {
		return st, err
	}
	st.version = -1
	if tables {
		err = tx.QueryRow(ctx, s.sql.version).Scan(&st.version)
	}
	return st, err
}

// check refuses a schema that this program cannot use.
func (s *Store) check(st state, known int) error {
	name := s.cfg.Schema
	switch {
	case st.old:
		return fmt.Errorf("an older version of Mortise wrote schema %s, which this one cannot read: use another schema, or drop it", name)
	case st.version > known:
		return fmt.Errorf("schema %s has version %d and this program knows versions up to %d: run the newer program", name, st.version, known)
	case !s.cfg.Existing || st.version == known:
		return nil
	case !st.there:
		return absent(fmt.Sprintf("the database has no schema %s; check the name", name))
	case st.version < 0:
		return absent(fmt.Sprintf("schema %s has no tables of Mortise; check the name", name))
	default:
		return fmt.Errorf("schema %s has version %d, this program %d: let a program that writes open it first", name, st.version, known)
	}
}

// absent is an fs.ErrNotExist of a database.
type absent string

func (a absent) Error() string { return string(a) }

func (absent) Is(target error) bool { return target == fs.ErrNotExist }
