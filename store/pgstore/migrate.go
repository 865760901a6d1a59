package pgstore

import (
	"context"
	"embed"

	"github.com/mortise-dev/mortise/store/pgstore/internal/tables"
)

//go:embed schema/*.sql
var migrations embed.FS

// migrate brings the schema to the version of this program.
func (s *Store) migrate(ctx context.Context) error {
	return s.tables.Migrate(ctx, "migration", migrations)
}

// Tables are the schema, for the other packages that have tables in it.
func (s *Store) Tables() *tables.Tables { return s.tables }

// sql puts the schema into a statement.
func (s *Store) sql(statement string) string { return s.tables.SQL(statement) }
