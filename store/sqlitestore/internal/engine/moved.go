package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// ErrMoved is a file that is not where it was opened any more: it, or the log beside it, was moved, replaced or removed. What is written
// then is lost, or goes where no other process looks.
var ErrMoved = errors.New("the file was moved, replaced or removed while it was open")

const mendMoved = "end all processes that have it, put it back with the -wal file beside it, and start again"

// place remembers which files were opened.
type place struct {
	path string

	mu        sync.Mutex
	file, log fs.FileInfo
}

// look compares the files with those that were there before. None is opened: to close it again would drop the locks that
// this process has on it.
func (p *place) look() error {
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

// same is a file as it is now, and holds that it is the one that was seen first. Before that it need not be there.
func same(path string, seen fs.FileInfo) (fs.FileInfo, error) {
	now, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && seen == nil:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist), err == nil && seen != nil && !os.SameFile(now, seen):
		return nil, fmt.Errorf("%s: %w; %s", path, ErrMoved, mendMoved)
	default:
		return now, err
	}
}
