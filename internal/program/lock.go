package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ErrLocked reports that another process has a lock.
var ErrLocked = errors.New("another process uses it")

// lockTries and lockPause bound how long lock waits.
const (
	lockTries = 20
	lockPause = 10 * time.Millisecond
)

// HoldFile keeps other processes from the inbox of a SQLite file until it is closed. It makes no lock where no process has used the inbox.
func HoldFile(store string) (io.Closer, error) {
	path := inboxOf(store)
	if _, err := os.Stat(path + ".lock"); err != nil {
		return io.NopCloser(nil), nil //nolint:nilerr // nothing has used it
	}
	return Lock(path)
}

// inboxOf is the path of the lock of a SQLite file.
func inboxOf(store string) string { return store + "-inbox" }

// Lock takes what is at a path for this process alone, until it is closed or the process ends. The lock is a
// file, path.lock. It is for stores that several processes can open, but whose inbox only one may use.
func Lock(path string) (io.Closer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = lockFile(f)
	for range lockTries { // a process that this one starts has the lock of a store that was just closed for a moment
		if err == nil {
			return f, nil
		}
		<-time.After(lockPause)
		err = lockFile(f)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w: %w", path, ErrLocked, err), f.Close())
	}
	return f, nil
}
