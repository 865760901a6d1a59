package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// badStore adds to an error of opening a store what to do about it.
func badStore(path string, err error) error {
	info, failed := os.Stat(path)
	switch {
	case failed != nil:
		folder := filepath.Dir(path)
		if _, failed := os.Stat(folder); errors.Is(failed, fs.ErrNotExist) && errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w; make the folder %s, or name another file", err, folder)
		}
	case info.IsDir():
		return fmt.Errorf("%s is a folder; threads and decision records are kept in a SQLite file, as %s, or at a nats:// or postgres:// URL", path, filepath.Join(path, "mortise.db"))
	case info.Size() > 0:
		if file, failed := IsSQLite(path); failed == nil && !file {
			return fmt.Errorf("%s is no SQLite file, and it stays as it is; name another file, or one that is not there yet", path)
		}
	}
	if strings.Contains(err.Error(), "malformed") || strings.Contains(err.Error(), "not a database") {
		return fmt.Errorf("%w; the file is damaged or cut off: put a copy in its place, or move it away and start a new one", err)
	}
	return err
}
