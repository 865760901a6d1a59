package host_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/host"
	fscap "github.com/mortise-dev/mortise/host/capability/fs"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// Errors of WASI.
const (
	again    = 6
	badFile  = 8
	exists   = 20
	ioError  = 29
	isDir    = 31
	noEntry  = 44
	notDir   = 54
	notEmpty = 55
	perm     = 63
	readOnly = 69
)

// tree makes a folder with a secret next to it, and links that lead to the secret.
func tree(t *testing.T) (dir, secret string) {
	t.Helper()
	top := t.TempDir()
	dir, secret = filepath.Join(top, "mounted"), filepath.Join(top, "secret")
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "sub", "deep"), 0o700),
		os.WriteFile(secret, []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(dir, "a"), []byte("text of a"), 0o600),
		os.WriteFile(filepath.Join(dir, "sub", "b"), []byte("text of b"), 0o600))
	if err == nil && runtime.GOOS != "windows" {
		for name, to := range map[string]string{
			"absolute": secret, "relative": "../secret", "folder": top, "up": "..", "fine": "sub/b", "sub/over": "../../secret", "loop": "loop",
			"dangling": "../made",
		} {
			err = errors.Join(err, os.Symlink(to, filepath.Join(dir, name)))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, secret
}

func mounted(dir string, writable bool) host.Grants {
	return host.Grants{Capabilities: []host.Capability{&fscap.Grant{Mounts: []fscap.Mount{{Host: dir, Guest: "/data", Writable: writable, Bytes: 100_000, Entries: 40}}}}}
}

// wantErrno calls the guest files.
func wantErrno(t *testing.T, m *host.Module, export, input string, errno uint64, text string) {
	t.Helper()
	out, err := m.Call(t.Context(), export, []byte(input))
	if err != nil {
		t.Errorf("%s(%q): %v", export, input, err)
		return
	}
	if got := binary.LittleEndian.Uint64(out); got != errno || string(out[8:]) != text {
		t.Errorf("%s(%q): errno %d, %q; want %d, %q", export, input, got, out[8:], errno, text)
	}
}

// TestFiles_escape holds that no path leads out of a folder, whether it is
// writable or not.
func TestFiles_escape(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		for _, writable := range []bool{false, true} {
			dir, secret := tree(t)
			m := load(t, e, host.Spec{Path: wat("files"), Grants: mounted(dir, writable)})
			wantErrno(t, m, "read", first("a", ""), 0, "text of a")
			wantErrno(t, m, "read", first("sub/../sub/./b", ""), 0, "text of b")
			for _, path := range []string{
				"../secret", "sub/../../secret", secret, "/secret", "/etc/passwd", "absolute", "relative", "folder/secret", "up/secret",
				"sub/over", "dangling", "..", "sub/../..", "a/../../secret", "\x00", "a\x00", strings.Repeat("x", 255), strings.Repeat("../", 80) + "etc/passwd",
			} {
				for _, export := range []string{"read", "stat", "write", "append", "overwrite", "list", "mkdir", "unlink_not", "rename_to", "rename_from"} {
					wantOutside(t, m, export, path)
				}
			}
			if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
				t.Errorf("the secret is now %q, %v", b, err)
			}
			if _, err := os.Lstat(filepath.Join(filepath.Dir(dir), "made")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file was made outside: %v", err)
			}
			if runtime.GOOS != "windows" {
				wantErrno(t, m, "read", first("fine", ""), 0, "text of b")
				wantErrno(t, m, "readlink", first("absolute", ""), perm, "")
			}
		}
	})
}

// wantOutside tries an operation on a path that leads out, or nowhere.
func wantOutside(t *testing.T, m *host.Module, export, path string) {
	t.Helper()
	input := first(path, "changed")
	switch export {
	case "unlink_not": // a link itself may be removed
		return
	case "rename_to":
		if !strings.Contains(path, "/") || path == "sub/over" {
			return // the link itself is replaced
		}
		export, input = "rename", first("a", path)
	case "rename_from":
		if !strings.Contains(path, "/") || path == "sub/over" {
			return
		}
		export, input = "rename", first(path, "stolen")
	case "mkdir":
		if len(path) == 255 {
			return // a fine name
		}
	case "write", "append", "stat":
		if len(path) == 255 {
			return
		}
	}
	out, err := m.Call(t.Context(), export, []byte(input))
	if err != nil {
		t.Errorf("%s %q: %v", export, path, err)
		return
	}
	if errno := binary.LittleEndian.Uint64(out); errno == 0 || len(out) > 8 {
		t.Errorf("%s %q: errno %d, %q", export, path, errno, out[8:])
	}
}

func TestFiles_readOnly(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		dir, _ := tree(t)
		m := load(t, e, host.Spec{Path: wat("files"), Grants: mounted(dir, false)})
		for _, export := range []string{"write", "append", "exclusive", "overwrite", "extend", "write_far", "mkdir", "rmdir", "unlink"} {
			for _, path := range []string{"a", "new", "sub/deep"} {
				wantErrno(t, m, export, first(path, "x"), readOnly, "")
			}
		}
		wantErrno(t, m, "rename", first("a", "c"), readOnly, "")
		wantErrno(t, m, "symlink", first("a", "c"), perm, "")
		wantErrno(t, m, "link", first("a", "c"), perm, "")
		wantErrno(t, m, "read", first("a", ""), 0, "text of a")
		wantErrno(t, m, "read", first("none", ""), noEntry, "")
		wantErrno(t, m, "read", first("sub", ""), isDir, "")
		wantErrno(t, m, "list", first("a", ""), notDir, "")
		out, err := m.Call(t.Context(), "list", []byte(first("sub", "")))
		if err != nil || out[0] != 0 || !strings.Contains(string(out[8:]), "b") || !strings.Contains(string(out[8:]), "deep") {
			t.Errorf("list: %q, %v", out, err)
		}
		wantErrno(t, m, "stat", first("sub/b", ""), 0, "")
		if s := m.Stats(); s.Denied != 30 || s.Uses["fs"] < 30 {
			t.Errorf("%+v", s)
		}
	})
}

func TestFiles_writable(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		dir, _ := tree(t)
		m := load(t, e, host.Spec{Path: wat("files"), Grants: mounted(dir, true)})
		wantErrno(t, m, "write", first("new", "one"), 0, "")
		wantErrno(t, m, "append", first("new", " two"), 0, "")
		wantErrno(t, m, "read", first("new", ""), 0, "one two")
		wantErrno(t, m, "overwrite", first("new", "ONE"), 0, "")
		wantErrno(t, m, "read", first("new", ""), 0, "ONE two")
		wantErrno(t, m, "exclusive", first("new", ""), exists, "")
		wantErrno(t, m, "mkdir", first("folder2", ""), 0, "")
		wantErrno(t, m, "mkdir", first("folder2", ""), exists, "")
		wantErrno(t, m, "rename", first("new", "folder2/moved"), 0, "")
		wantErrno(t, m, "read", first("new", ""), noEntry, "")
		wantErrno(t, m, "rmdir", first("folder2", ""), notEmpty, "")
		wantErrno(t, m, "rmdir", first("a", ""), notDir, "")
		wantErrno(t, m, "unlink", first("folder2/moved", ""), 0, "")
		wantErrno(t, m, "rmdir", first("folder2", ""), 0, "")
		wantErrno(t, m, "symlink", first("/etc/passwd", "mine"), perm, "")
		wantErrno(t, m, "link", first("a", "mine"), perm, "")
		wantErrno(t, m, "write", first("private", ""), 0, "")
		info, err := os.Stat(filepath.Join(dir, "private"))
		if err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	})
}

func TestFiles_quota(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		dir, _ := tree(t)
		m := load(t, e, host.Spec{Path: wat("files"), Grants: mounted(dir, true)})
		half := strings.Repeat("h", 60_000)
		wantErrno(t, m, "write", first("one", half), 0, "")
		wantErrno(t, m, "write", first("two", half), ioError, "")
		wantErrno(t, m, "write", first("one", half), 0, "") // in place of the old one
		wantErrno(t, m, "rename", first("one", "two"), 0, "")
		wantErrno(t, m, "write", first("one", half), ioError, "")
		wantErrno(t, m, "unlink", first("two", ""), 0, "")
		wantErrno(t, m, "write", first("one", half), 0, "")
		for _, export := range []string{"write_far", "extend"} {
			out, err := m.Call(t.Context(), export, []byte(first("far", "xyz")))
			if err != nil || binary.LittleEndian.Uint64(out) == 0 {
				t.Errorf("%s: % x, %v", export, out, err)
			}
		}
		if info, err := os.Stat(filepath.Join(dir, "far")); err != nil || info.Size() > 100_000 {
			t.Errorf("%v, %v", info, err)
		}
		wantErrno(t, m, "churn", first("one", ""), ioError, "")
		wantErrno(t, m, "open_many", first("a", ""), again, "")
		out, err := m.Call(t.Context(), "make_many", []byte(first("A", "")))
		if err != nil || binary.LittleEndian.Uint64(out) != ioError || out[8] < 'B' {
			t.Errorf("make_many: % x, %v", out, err)
		}
		wantEntries(t, dir, 40)
		if s := m.Stats(); s.Denied < 6 {
			t.Errorf("%+v", s)
		}
		_, err = newHost(t, host.Config{Engine: hosttest.Engine(e)}).Load(t.Context(), host.Spec{
			Path: wat("files"), Grants: host.Grants{Capabilities: []host.Capability{&fscap.Grant{Mounts: []fscap.Mount{{Host: dir, Guest: "/", Writable: true, Bytes: 1000}}}}},
		})
		if !errors.Is(err, host.ErrQuota) {
			t.Errorf("a folder that is above its quota from the start: %v", err)
		}
	})
}

// TestFiles_quotaNameless: a file that lost its name while it was open takes its room until it is closed, and
// neither making it smaller nor closing it gives back more than that.
func TestFiles_quotaNameless(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		testskip.Skip(t, "an open file cannot be removed here")
	}
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		dir := t.TempDir()
		m := load(t, e, host.Spec{Path: wat("files"), Grants: mounted(dir, true)})
		for range 3 {
			wantErrno(t, m, "nameless", first("a", ""), 0, "")
			wantErrno(t, m, "write", first("b", "small"), 0, "")
			wantErrno(t, m, "replaced", first("a", "b"), 0, "")
			wantErrno(t, m, "read", first("a", ""), 0, "small")
		}
		wantErrno(t, m, "write", first("one", strings.Repeat("h", 60_000)), 0, "")
		wantErrno(t, m, "write", first("two", strings.Repeat("h", 60_000)), ioError, "")
		wantErrno(t, m, "nameless", first("c", ""), ioError, "") // there is no room for it
		wantErrno(t, m, "unlink", first("one", ""), 0, "")
		wantErrno(t, m, "nameless", first("c", ""), 0, "")
	})
}

// TestFiles_quotaStrangers: removing what another program has put into the folder gives no room beyond the quota.
func TestFiles_quotaStrangers(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		dir := t.TempDir()
		m := load(t, e, host.Spec{Path: wat("files"), Grants: mounted(dir, true)})
		for range 60 {
			if err := os.WriteFile(filepath.Join(dir, "theirs"), make([]byte, 90_000), 0o600); err != nil {
				t.Fatal(err)
			}
			wantErrno(t, m, "unlink", first("theirs", ""), 0, "")
		}
		wantErrno(t, m, "write", first("one", strings.Repeat("h", 60_000)), 0, "")
		wantErrno(t, m, "write", first("two", strings.Repeat("h", 60_000)), ioError, "")
		out, err := m.Call(t.Context(), "make_many", []byte(first("A", "")))
		if err != nil || binary.LittleEndian.Uint64(out) != ioError {
			t.Errorf("make_many: % x, %v", out, err)
		}
		wantEntries(t, dir, 40)
	})
}

// wantEntries counts the files and folders below dir.
func wantEntries(t *testing.T, dir string, want int) {
	t.Helper()
	n := -1
	err := filepath.WalkDir(dir, func(_ string, _ fs.DirEntry, err error) error {
		n++
		return err
	})
	if err != nil || n != want {
		t.Errorf("%d entries, %v; want %d", n, err, want)
	}
}

// TestFiles_quotaTogether holds that instances which write at once keep one quota.
func TestFiles_quotaTogether(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		dir := t.TempDir()
		m := load(t, e, host.Spec{Path: wat("files"), Grants: mounted(dir, true), Limits: host.Limits{Instances: 4}})
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				name := string(rune('a' + i))
				if _, err := m.Call(t.Context(), "append", []byte(first(name, strings.Repeat(name, 30_000)))); err != nil {
					t.Errorf("append: %v", err)
				}
			})
		}
		wg.Wait()
		var size int64
		entries, err := os.ReadDir(dir)
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil {
				size += info.Size()
			}
		}
		if err != nil || size != 90_000 {
			t.Errorf("%d bytes, %v", size, err)
		}
	})
}

// TestFiles_fresh holds that a descriptor does not outlive its call.
func TestFiles_fresh(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		dir, _ := tree(t)
		m := load(t, e, host.Spec{Path: wat("files"), Grants: mounted(dir, false), Limits: host.Limits{Instances: 1}})
		for range 70 {
			wantErrno(t, m, "leave_open", first("a", ""), 0, "\x04")
		}
	})
}

func TestFiles_badGrant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for want, files := range map[string][]fscap.Mount{
		"fs.Grant.Mounts[0].Host is empty":                           {{Guest: "/x"}},
		`fs.Grant.Mounts[0].Guest "" is not an absolute clean path`:  {{Host: dir}},
		`fs.Grant.Mounts[0].Guest "x" is not an absolute clean path`: {{Host: dir, Guest: "x"}},
		`fs.Grant.Mounts[0].Guest "/x/../y" is not`:                  {{Host: dir, Guest: "/x/../y"}},
		`fs.Grant.Mounts[0].Guest "/x/" is not`:                      {{Host: dir, Guest: "/x/"}},
		"fs.Grant.Mounts[1].Guest /x is there twice":                 {{Host: dir, Guest: "/x"}, {Host: dir, Guest: "/x"}},
		"fs.Grant.Mounts[0].Bytes -1 is negative":                    {{Host: dir, Guest: "/x", Bytes: -1}},
		"fs.Grant.Mounts[0].Entries -1 is negative":                  {{Host: dir, Guest: "/x", Entries: -1}},
		"fs.Grant.Mounts[1]: mount /y":                               {{Host: dir, Guest: "/x"}, {Host: filepath.Join(dir, "none"), Guest: "/y"}},
	} {
		_, err := newHost(t, host.Config{}).Load(t.Context(), host.Spec{Path: wat("files"), Grants: host.Grants{Capabilities: []host.Capability{&fscap.Grant{Mounts: files}}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// TestFiles_describe holds that a file which describe opens does not get into the
// state that instances start from.
func TestFiles_describe(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		dir, _ := tree(t)
		m := load(t, e, host.Spec{Path: wat("files_describe"), Grants: mounted(dir, false), Limits: host.Limits{Instances: 1}})
		for range 3 {
			call(t, m, "read", "", "text of a")
		}
	})
}
