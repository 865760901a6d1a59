//go:build unix

package outbox

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockFile takes the file for this open file alone. The system lets go of it when
// the process ends, however it ends.
func lockFile(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// syncFolder makes a new name in the folder of path last.
func syncFolder(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = dir.Sync()
	if closing := dir.Close(); err == nil {
		err = closing
	}
	return err
}
