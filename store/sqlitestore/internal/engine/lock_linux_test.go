package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Where SQLite locks a database file that somebody has open.
const sharedFirst, sharedSize = 0x40000000 + 2, 510

// TestOpen_keepsLocks: a file that is opened a second time keeps the locks that the first
// time took. The locks of POSIX go when any of the process's descriptors is closed.
func TestOpen_keepsLocks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "twice.db")
	open(t, path, "CREATE TABLE t (n INTEGER)")
	f, err := os.Open(path) // closed last
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	locked := func() bool {
		l := unix.Flock_t{Type: unix.F_WRLCK, Start: sharedFirst, Len: sharedSize}
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l); err != nil {
			t.Fatal(err)
		}
		return l.Type != unix.F_UNLCK
	}
	if !locked() {
		t.Fatal("an open file is not locked: the test looks at the wrong place")
	}
	open(t, path, "CREATE TABLE t (n INTEGER)")
	if !locked() {
		t.Fatal("opening the file again dropped its locks")
	}
}
