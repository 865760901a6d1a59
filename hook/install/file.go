package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/hook/frame"
)

// backupsKept of a file; older ones are deleted.
const backupsKept = 5

// lockTime is how long to wait for another process that edits the file.
const lockTime = 10 * time.Second

// Change is what was done to a file.
type Change struct {
	File, Backup string
	Before       []byte
	After        []byte
	// Deleted means that the file was ours alone and is gone.
	Deleted bool
}

// Changed reports whether the file is another one now.
func (c *Change) Changed() bool { return c.Deleted || !bytes.Equal(c.Before, c.After) }

// errMeanwhile is a file that an agent, which knows no lock of ours, wrote while it was edited.
var errMeanwhile = errors.New("another program writes the file at the same time")

// tries is how often an edit begins again because of that.
const tries = 10

// Edit replaces a file by what edit makes of it. A link is followed, the mode stays, a backup is kept. A file that is
// not there is empty, and made. With dry nothing is written. Edit is called again when the file changed meanwhile.
func Edit(path string, dry bool, edit func([]byte) ([]byte, error)) (*Change, error) {
	path, err := followed(path)
	if err != nil {
		return nil, err
	}
	if !dry {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // an agent's own folder
			return nil, fmt.Errorf("install: %w", err)
		}
		unlock, err := lock(path + ".mortise-lock")
		if err != nil {
			return nil, err
		}
		defer unlock()
		sweep(path)
	}
	for try := 1; ; try++ {
		c, err := editOnce(path, dry, edit)
		switch {
		case !errors.Is(err, errMeanwhile):
			return c, err
		case try == tries:
			return nil, fmt.Errorf("install: %s: %w; end the agent and try again", path, errMeanwhile)
		}
	}
}

// editOnce edits a file unless it changes meanwhile.
func editOnce(path string, dry bool, edit func([]byte) ([]byte, error)) (*Change, error) {
	c := &Change{File: path}
	mode := fs.FileMode(0o600)
	info, err := os.Stat(path)
	if err == nil {
		mode = info.Mode().Perm()
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("install: %s is no regular file", path)
		}
		if mode&0o200 == 0 {
			return nil, fmt.Errorf("install: %s is read-only, make it writable first if it may be changed", path)
		}
	}
	if c.Before, err = os.ReadFile(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("install: %w", err)
	}
	there := err == nil
	if c.After, err = edit(c.Before); err != nil {
		return nil, fmt.Errorf("install: %s: %w", path, err)
	}
	if dry || !c.Changed() && there {
		return c, nil
	}
	if there {
		if c.Backup, err = backup(path, c.Before, mode); err != nil {
			return nil, err
		}
	}
	err = write(path, c.After, mode, func() error {
		now, err := os.ReadFile(path)
		if (err == nil) != there || !bytes.Equal(now, c.Before) {
			return errMeanwhile
		}
		return nil
	})
	switch {
	case err == nil:
		prune(path)
	case c.Backup != "":
		err = errors.Join(err, os.Remove(c.Backup)) // of what is not replaced
	}
	return c, err
}

// followed is the file that a path leads to. A link to nothing would be replaced by a file.
func followed(path string) (string, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target, nil
	}
	if target, err := os.Readlink(path); err == nil {
		return "", fmt.Errorf("install: %s is a link to %s, which is not there; make it first", path, target)
	}
	return path, nil
}

// lock waits for a lock of a file.
func lock(path string) (unlock func(), err error) {
	for limit := time.Now().Add(lockTime); ; <-time.After(20 * time.Millisecond) {
		f, err := frame.Lock(path)
		if err != nil {
			return nil, fmt.Errorf("install: lock: %w", err)
		}
		if f != nil && current(f, path) {
			return func() { _ = os.Remove(path); _ = f.Close() }, nil
		}
		if f != nil {
			_ = f.Close() // of a file that the holder before has deleted
		}
		if time.Now().After(limit) {
			return nil, fmt.Errorf("install: another process holds %s", path)
		}
	}
}

// current reports whether an open file is the one at a path.
func current(f *os.File, path string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

const backupMark = ".mortise-"

// backup keeps a copy.
func backup(path string, data []byte, mode fs.FileMode) (string, error) {
	name := path + backupMark + time.Now().UTC().Format("20060102T150405.000000")
	if err := write(name, data, mode, nil); err != nil {
		return "", err
	}
	return name, nil
}

// prune leaves the newest few of the backups: when a file was replaced, as an edit that begins again must not take those of before.
func prune(path string) {
	old := backups(path)
	for _, b := range old[:max(0, len(old)-backupsKept)] {
		_ = os.Remove(b)
	}
}

// backups of a file, the oldest first.
func backups(path string) []string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+backupMark); ok && strings.HasPrefix(rest, "2") {
			out = append(out, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(out)
	return out
}

// Original returns what a file was before the install that made it what it is now: uninstall then restores it byte for byte.
func Original(path string, now []byte, installed func(before []byte) ([]byte, error)) ([]byte, bool) {
	for _, b := range slices.Backward(backups(path)) {
		before, err := os.ReadFile(b)
		if err != nil {
			continue
		}
		if after, err := installed(before); err == nil && bytes.Equal(after, now) && !bytes.Equal(before, now) {
			return before, true
		}
	}
	return nil, false
}

// temporary is in the names of files that are not written to their end yet.
const temporary = ".mortise-tmp-"

// sweep deletes what processes left that were killed while they wrote a file or a backup of it. The file's lock is held.
func sweep(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+filepath.Base(path)) && strings.Contains(e.Name(), temporary) {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}

// write replaces a file at once: a crash leaves the old one or the new one. Last is asked when all but that is done.
func write(path string, data []byte, mode fs.FileMode, last func() error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+temporary+"*")
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil && last != nil {
		err = last()
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("install: %w", err), os.Remove(f.Name()))
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
	return nil
}
