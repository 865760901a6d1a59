//go:build unix

package host_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/host"
)

// TestFiles_pipe holds that a guest does not wait at a named pipe.
func TestFiles_pipe(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		dir := t.TempDir()
		if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		m := load(t, e, host.Spec{Path: wat("files"), Grants: mounted(dir, true)})
		wantErrno(t, m, "read", first("pipe", ""), perm, "")
		out, err := m.Call(t.Context(), "overwrite", []byte(first("pipe", "x")))
		if err != nil || out[0] == 0 {
			t.Errorf("% x, %v", out, err)
		}
	})
}
