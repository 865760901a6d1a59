package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// badStore adds to an error of opening a store what to do about it.
func badStore(path string, err error) error {
	if info, failed := os.Stat(path); failed == nil && info.Size() > 0 {
		if store, failed := isStore(path); failed == nil && !store {
			return fmt.Errorf("%s is a folder; name a file", path)
		} else if failed != nil && !errors.Is(failed, os.ErrPermission) {
			return fmt.Errorf("%s is no SQLite file, and it stays as it is; name another file, or one that is not there yet", path)
		}
	}
	if strings.Contains(err.Error(), "malformed") || strings.Contains(err.Error(), "not a database") {
		return fmt.Errorf("%w; the file is damaged or cut off: put a copy in its place, or move it away and start a new one", err)
	}
	return err
}
