package sqlitekv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	_ "modernc.org/sqlite" // the driver

	"github.com/mortise-dev/mortise/host/capability/kv"
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
	if err := private(path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", source(path))
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

// source is the name of the database for the driver. The waiting for other
// writers is done here and not there, because there it ignores the context.
func source(path string) string {
	slashed := filepath.ToSlash(path)
	if slashed[0] != '/' { // a drive letter
		slashed = "/" + slashed
	}
	u := url.URL{Scheme: "file", Path: slashed, RawQuery: url.Values{
		"_pragma": {"busy_timeout(0)", "journal_mode(WAL)", "synchronous(NORMAL)", "trusted_schema(OFF)"},
		"_txlock": {"immediate"},
	}.Encode()}
	return u.String()
}

// private makes the file, so that it never has another mode, and refuses one that
// others can read or write. SQLite gives its companions the mode of the file. A file that is
// there is not opened: closing it again would drop the locks that this process has on it.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		return f.Close()
	case !errors.Is(err, fs.ErrExist):
		return fmt.Errorf("sqlitekv: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("sqlitekv: %w", err)
	case info.IsDir():
		return fmt.Errorf("sqlitekv: %s is a directory; name a file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("sqlitekv: %s is not a regular file; name a file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("sqlitekv: %s: others can use the file (mode %s); use chmod 600", path, info.Mode().Perm())
	}
	return nil
}
