package sqlitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/mortise-dev/mortise/internal/sqlitefile"
)

// ErrMoved reports a file that is not where it was opened any more: it, or its write-ahead log, was moved, replaced or removed. What is
// written then is lost, or goes where no other process reads it.
var ErrMoved = errors.New("the file was moved, replaced or removed while it was open; " +
	"end all processes that have it open, restore it together with its -wal file, and start again")

// locate returns the path of a file, without symbolic links: SQLite puts the -wal file next to the target.
func locate(path string, existing bool) (string, error) {
	if path == "" {
		return "", errors.New("config: Path is empty; name a file")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("config: Path: %w", err)
	}
	if err := sqlitefile.Create(path, existing); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// place has the files that were opened.
type place struct {
	path string

	mu        sync.Mutex
	file, log fs.FileInfo
}

// check returns ErrMoved if the files are not those of the first check. It opens none: see sqlitefile.Create.
func (p *place) check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	file, err := same(p.path, p.file)
	if err != nil {
		return err
	}
	log, err := same(p.path+"-wal", p.log)
	if err != nil {
		return err
	}
	p.file, p.log = file, log
	return nil
}

// same returns a file as it is now. It must be the one that was seen before, if one was.
func same(path string, seen fs.FileInfo) (fs.FileInfo, error) {
	now, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && seen == nil:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist), err == nil && seen != nil && !os.SameFile(now, seen):
		return nil, fmt.Errorf("%s: %w", path, ErrMoved)
	default:
		return now, err
	}
}
