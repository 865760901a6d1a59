package sqlitekv_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
)

// sharedLock is where SQLite locks a file for as long as a connection in the mode of a
// write-ahead log is open: 510 bytes behind its pending byte.
const sharedLock = "1073741826 1073742335"

// isLocked reports whether this process holds the lock on the file.
func isLocked(t *testing.T, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		testskip.Missing(t, "/proc/locks cannot be read (%v)", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("the system does not tell the number of a file")
	}
	for line := range strings.Lines(string(locks)) {
		f := strings.Fields(line)
		if len(f) == 8 && f[4] == fmt.Sprint(os.Getpid()) && strings.HasSuffix(f[5], fmt.Sprintf(":%d", stat.Ino)) && f[6]+" "+f[7] == sharedLock {
			return true
		}
	}
	return false
}

// TestStore_twiceInOneProcess: to close a descriptor of the file gives up all locks that the process has on it, those
// of an open store too, and another process may take the log for left behind.
func TestStore_twiceInOneProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kv.db")
	s := open(t, path)
	if err := s.Set(t.Context(), "n", "key", []byte("value"), roomy()); err != nil {
		t.Fatal(err)
	}
	if !isLocked(t, path) {
		testskip.Missing(t, "/proc/locks does not show the lock of an open store")
	}
	_ = open(t, path) // the file of another module
	if !isLocked(t, path) {
		t.Error("the store lost its lock when the file was opened again")
	}
}
