package pgstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/jackc/pgx/v5"
)

//go:embed schema/*.sql
var migrations embed.FS

// migrate brings the schema to the version of this program. Several processes may do so at once; versions only
// go up.
func (s *Store) migrate(ctx context.Context) error {
	files, err := migrations.ReadDir("schema")
	if err != nil {
		return err
	}
	version, err := s.version(ctx)
	if err != nil || version == len(files) {
		return err
	}
	if version > len(files) {
		return newer(version, len(files))
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, s.key("migration")); err != nil {
			return err
		}
		version, err := s.prepare(ctx, tx)
		if err != nil {
			return err
		}
		if version > len(files) {
			return newer(version, len(files))
		}
		for i := version; i < len(files); i++ {
			if err := s.apply(ctx, tx, i+1, files[i].Name()); err != nil {
				return fmt.Errorf("migration %s: %w", files[i].Name(), err)
			}
		}
		return nil
	})
}

// apply makes one step.
func (s *Store) apply(ctx context.Context, tx pgx.Tx, version int, file string) error {
	sql, err := migrations.ReadFile("schema/" + file)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, s.sql(string(sql)), pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, s.sql(`INSERT INTO @.migration (version) VALUES ($1)`), version)
	return err
}

func newer(version, known int) error {
	return fmt.Errorf("it has version %d and this program knows versions up to %d: run the newer program", version, known)
}

// version is 0 while there is no schema.
func (s *Store) version(ctx context.Context) (version int, err error) {
	var there bool
	err = s.pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, s.sql(`@.migration`)).Scan(&there)
	if err != nil || !there {
		return 0, err
	}
	err = s.pool.QueryRow(ctx, s.sql(`SELECT coalesce(max(version), 0) FROM @.migration`)).Scan(&version)
	return version, err
}

// prepare makes the schema and its table of versions, and reads the latest. A role that may not make
// schemas can use one that is there.
func (s *Store) prepare(ctx context.Context, tx pgx.Tx) (version int, err error) {
	var there bool
	if err := tx.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL`, s.cfg.Schema).Scan(&there); err != nil {
		return 0, err
	}
	if !there {
		if _, err := tx.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{s.cfg.Schema}.Sanitize()); err != nil {
			return 0, errors.Join(err, errors.New("let the role make schemas, or make it for the role"))
		}
	}
	const table = `CREATE TABLE IF NOT EXISTS @.migration (version bigint PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`
	if _, err := tx.Exec(ctx, s.sql(table)); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, s.sql(`SELECT coalesce(max(version), 0) FROM @.migration`)).Scan(&version)
	return version, err
}

// key is the number of an advisory lock.
func (s *Store) key(what string) int64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "mortise/%s/%s", s.cfg.Schema, what)
	return int64(h.Sum64()) //nolint:gosec // any number will do
}
