//go:build unix

package program

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks an open file. The system releases it when the process ends, however it ends.
func lockFile(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}
