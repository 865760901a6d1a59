package pgstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
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
	there   bool
	version int
}

// migrate brings the schema to the version of this program. Several processes may do so at once.
func (s *Store) migrate(ctx context.Context) error {
	scripts, err := sqlcore.Scripts(migrations)
	if err != nil {
		return err
	}
	var st state
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
		st, err = s.state(ctx, tx, len(scripts))
		return err
	})
	if err != nil || st.version == len(scripts) {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.upgrade(ctx, tx, scripts) })
}

// upgrade runs the scripts that the schema does not have. It reads the state again, as another process may have done so meanwhile.
func (s *Store) upgrade(ctx context.Context, tx pgx.Tx, scripts []string) error {
	h := fnv.New64a()
	fmt.Fprintf(h, "mortise/%s/migration", s.cfg.Schema)
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(h.Sum64())); err != nil { //nolint:gosec // any number will do
		return err
	}
	st, err := s.state(ctx, tx, len(scripts))
	run := func(text string, mode ...any) {
		if err == nil {
			_, err = tx.Exec(ctx, expand(s.cfg.Schema, text), mode...)
		}
	}
	if !st.there { // a role that may not create schemas can use one that is there
		run(`CREATE SCHEMA ` + pgx.Identifier{s.cfg.Schema}.Sanitize())
	}
	if st.version < 0 {
		run(`CREATE TABLE @.schema_version (version bigint PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`)
	}
	for version := max(st.version, 0); err == nil && version < len(scripts); version++ {
		run(scripts[version], pgx.QueryExecModeSimpleProtocol)
		run(`INSERT INTO @.schema_version (version) VALUES ($1)`, version+1)
		if err != nil {
			err = fmt.Errorf("schema version %d: %w", version+1, err)
		}
	}
	return err
}

// state reads what the schema has, and refuses one that this program, which knows so many versions, cannot use.
func (s *Store) state(ctx context.Context, tx pgx.Tx, known int) (st state, err error) {
	const sql = `SELECT to_regnamespace($1::text) IS NOT NULL,
		EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1::text AND c.relname = 'schema_version'),
		EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1::text
			AND c.relname IN ('migration', 'outbox_migration', 'session_migration', 'record_migration'))`
	var tables, old bool
	if err := tx.QueryRow(ctx, sql, s.cfg.Schema).Scan(&st.there, &tables, &old); err != nil {
		return st, err
	}
	if st.version = -1; tables {
		err = tx.QueryRow(ctx, s.sql.version).Scan(&st.version)
	}
	switch {
	case err != nil:
		return st, err
	case old:
		return st, errors.New("an older version of Mortise wrote it, which this one cannot read: use another schema, or drop it")
	case s.cfg.Existing && !st.there:
		return st, sqlcore.Absent("the database has no such schema; check the name")
	case s.cfg.Existing && st.version < 0:
		return st, sqlcore.Absent("it has no tables of Mortise; check the name")
	}
	return st, sqlcore.Check(st.version, known, s.cfg.Existing)
}
