package sqlitekv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver

	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/internal/sqlitefile"
)

// Config constructs a [Store].
type Config struct {
	// Path of the file. It is made when it is not there; its folder must be. Required.
	Path string
}

// Store is a [host.KV] in a file.
type Store struct{ db *sql.DB }

var _ kv.Store = (*Store)(nil)

// Open opens the file and brings it to the current version.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Path == "" {
		return nil, errors.New("sqlitekv: config: Path is empty; name a file")
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("sqlitekv: config: Path %s: %w", cfg.Path, err)
	}
	if err := sqlitefile.Create(path, false); err != nil {
		return nil, fmt.Errorf("sqlitekv: %w", err)
	}
	db, err := sql.Open("sqlite", sqlitefile.Source(path, url.Values{
		"_pragma": {"journal_mode(WAL)", "synchronous(NORMAL)"}, "_txlock": {"immediate"},
	}))
	if err != nil {
		return nil, fmt.Errorf("sqlitekv: open %s: %w", path, err)
	}
	// One writer at a time is all that SQLite does; readers need few.
	db.SetMaxOpenConns(4)
	s := &Store{db: db}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlitekv: open %s: %w", path, err), db.Close())
	}
	return s, nil
}

// Close closes the file. Calls after it fail; closing again is fine.
func (s *Store) Close() error { return s.db.Close() }
