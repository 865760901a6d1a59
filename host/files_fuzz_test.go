package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/fs"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// FuzzFiles holds that no path reads or changes what lies outside of the folder.
func FuzzFiles(f *testing.F) {
	for _, path := range []string{
		"a", "../secret", "up/secret", "absolute", "sub/over", "folder/secret", "dangling", "loop", "sub/../../secret", "/", "", "\x00", "a//../..//secret", "fine/..",
	} {
		f.Add(path, "sub/deep")
		f.Add("a", path)
	}
	top := f.TempDir()
	dir, secret := filepath.Join(top, "mounted"), filepath.Join(top, "secret")
	m := load(f, hosttest.Native, host.Spec{Path: wat("files"), Grants: host.Grants{Capabilities: []host.Capability{&fs.Grant{Mounts: []fs.Mount{{Host: mkdir(f, dir), Guest: "/data", Writable: true, Entries: 100_000}}}}}})
	f.Fuzz(func(t *testing.T, path, other string) {
		if len(path) > 255 {
			return
		}
		prepare(t, dir, secret, top)
		for _, export := range []string{"read", "list", "stat", "lstat", "readlink", "write", "append", "extend", "mkdir", "rename", "symlink", "link", "unlink", "rmdir"} {
			out, err := m.Call(t.Context(), export, []byte(first(path, other)))
			if err != nil {
				t.Fatalf("%s: %v", export, err)
			}
			if strings.Contains(string(out), "the secret text") {
				t.Fatalf("%s %q read what lies outside", export, path)
			}
		}
		entries, err := os.ReadDir(top)
		if b, readErr := os.ReadFile(secret); err != nil || readErr != nil || len(entries) != 2 || string(b) != "the secret text" {
			t.Fatalf("%q, %q changed what lies outside: %q, %v, %v, %v", path, other, b, entries, err, readErr)
		}
	})
}

func mkdir(tb testing.TB, dir string) string {
	tb.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// prepare puts the folder back, links that lead out included.
func prepare(t *testing.T, dir, secret, top string) {
	t.Helper()
	mkdir(t, filepath.Join(dir, "sub", "deep"))
	for name, to := range map[string]string{"absolute": secret, "up": "..", "folder": top, "dangling": "../made", "loop": "loop", "fine": "sub"} {
		_ = os.Symlink(to, filepath.Join(dir, name)) // most are there from before
	}
	if err := os.WriteFile(secret, []byte("the secret text"), 0o600); err != nil {
		t.Fatal(err)
	}
}
