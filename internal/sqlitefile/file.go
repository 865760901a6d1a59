package sqlitefile

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
)

// Create makes a file with mode 0600 if it is missing and may be made, and refuses one that other users can read or write. It does not open
// a file that exists: closing it again would drop the locks that this process has on it. SQLite gives the -wal and -shm files the mode of
// the file.
func Create(path string, existing bool) error {
	if !existing {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case err == nil:
			return f.Close() //nolint:wrapcheck // it names the file
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory; name a file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; name a file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s: other users can access the file (mode %s); use chmod 600", path, info.Mode().Perm())
	}
	return nil
}

// Source returns the name of a file, by its absolute path, for the driver. Waiting for locks is left to [Retry].
func Source(path string, options url.Values) string {
	slashed := filepath.ToSlash(path)
	if slashed[0] != '/' { // a drive letter
		slashed = "/" + slashed
	}
	options["_pragma"] = append([]string{"busy_timeout(0)", "trusted_schema(OFF)"}, options["_pragma"]...)
	return (&url.URL{Scheme: "file", Path: slashed, RawQuery: options.Encode()}).String()
}
