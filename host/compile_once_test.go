package host_test

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// TestLoad_compilesOnce counts what a module adds to the folder of compiled code: one piece, whatever it is like.
func TestLoad_compilesOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHost(t, host.Config{Engine: hosttest.Engine(hosttest.Native), CacheDir: dir})
	loaded := func(name string) int {
		t.Helper()
		if _, err := h.Load(t.Context(), host.Spec{Path: wat(name)}); err != nil {
			t.Fatal(err)
		}
		return compiledFiles(t, dir)
	}
	before := loaded("echo") // and the kernel
	for _, name := range []string{"stores", "pages", "many_functions"} {
		after := loaded(name)
		if after != before+1 {
			t.Errorf("%s was compiled %d times, want once", name, after-before)
		}
		before = after
	}
}

// compiledFiles counts the pieces of compiled code in a cache folder.
func compiledFiles(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Base(filepath.Dir(path)) != "known" {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
