package session_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/session/sessiontest"
)

func TestMain(m *testing.M) {
	sessiontest.CrashChild(openName)
	goleak.VerifyTestMain(m)
}

func openName(_ context.Context, name string) (session.Store, func() error, error) {
	d, err := session.Create(name)
	return d, func() error { return nil }, err
}

func TestStore_killed(t *testing.T) {
	t.Parallel()
	sessiontest.TestCrash(t, openName, t.TempDir())
}

func create(t *testing.T, folder string) *session.Dir {
	t.Helper()
	d, err := session.Create(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestStore(t *testing.T) {
	t.Parallel()
	sessiontest.TestStore(t, func(t *testing.T) (session.Store, func() session.Store) {
		t.Helper()
		folder := t.TempDir()
		return create(t, folder), func() session.Store { return create(t, folder) }
	})
}

func message(id, text string) abi.Message {
	return abi.Message{ID: id, Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text)}}
}

// only is the one file of that name in a folder.
func only(t *testing.T, folder, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*", pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s is there %d times (%v)", pattern, len(found), err)
	}
	return found[0]
}

func TestLog(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	d := create(t, folder)
	if _, err := d.Log("t"); !errors.Is(err, session.ErrUnknown) {
		t.Errorf("an empty folder: got %v", err)
	}
	call := abi.Message{ID: "c", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "1", Name: "x", Arguments: map[string]any{"path": "<a>&"}}}}
	want := []abi.Message{message("a", "one\ntwo"), call, message("b", "\u2028é</x>")}
	if err := errors.Join(d.Append("t"), d.Append("t", want[:2]...), d.Append("t", want[2]), d.Append("other/thread", want[0])); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*session.Dir{d, create(t, folder)} {
		got, err := d.Log("t")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v (%v)", got, err)
		}
	}
	changed := message("a", "redacted")
	if err := d.Replace("t", changed); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Log("t"); err != nil || !reflect.DeepEqual(got, []abi.Message{changed, call, want[2]}) {
		t.Errorf("read %+v (%v)", got, err)
	}
	if threads, err := d.Threads(); err != nil || !reflect.DeepEqual(threads, []string{"other/thread", "t"}) {
		t.Errorf("threads %q (%v)", threads, err)
	}
	if err := d.Append("t", abi.Message{}); err == nil || !strings.Contains(err.Error(), "has no id") {
		t.Errorf("a message without an id: got %v", err)
	}
}

// What is kept is for its user alone.
func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "new", "kept")
	d := create(t, folder)
	if err := errors.Join(d.Append("t", message("a", "x")), d.Record(compaction.Event{Thread: "t"})); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Swap("t", 0, compaction.State{Total: 1}); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		files++
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", e.Name(), info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil || files != 6 {
		t.Errorf("%d files (%v)", files, err)
	}
}

// Whatever the byte at which a crash cut a line: what was whole is read, and what
// comes next is whole again.
func TestTornLine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	d := create(t, folder)
	if err := d.Append("t", message("a", "first"), message("b", strings.Repeat("second ", 900))); err != nil {
		t.Fatal(err)
	}
	name := only(t, folder, "log.jsonl")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	for _, cut := range []int{0, 1, len(lines[0]) - 1, len(lines[0]), len(lines[0]) + 5, len(lines[0]) + len(lines[1]), len(whole) - 5000, len(whole) - 1, len(whole)} {
		if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		want := max(0, strings.Count(string(whole[:cut]), "\n")-1)
		got, err := d.Log("t")
		if err != nil || len(got) != want {
			t.Fatalf("cut at %d: %d messages, want %d (%v)", cut, len(got), want, err)
		}
		if err := d.Append("t", message("c", "third")); err != nil {
			t.Fatal(err)
		}
		if got, err = d.Log("t"); err != nil || len(got) != want+1 || got[want].ID != "c" {
			t.Fatalf("cut at %d, then %d messages (%v)", cut, len(got), err)
		}
	}
}

// What makes no sense is told by file and line, and never guessed at.
func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON":             {"what\n", "log.jsonl: line 2: invalid character"},
		"no message":          {"{}\n", "line 2: holds no message"},
		"replaces nothing":    {`{"replace":{"id":"z"}}` + "\n", `line 2: replaces "z", which does not come before`},
		"a message of a list": {"[]\n", "line 2: json: cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			d := create(t, folder)
			if err := d.Append("t", message("a", "x")); err != nil {
				t.Fatal(err)
			}
			file := only(t, folder, "log.jsonl")
			whole, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(whole), "\n")
			if err := os.WriteFile(file, []byte(head+"\n"+tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Log("t"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	t.Run("a head of another folder", func(t *testing.T) {
		t.Parallel()
		folder := t.TempDir()
		d := create(t, folder)
		if err := d.Append("t", message("a", "x")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Dir(only(t, folder, "log.jsonl")), filepath.Join(folder, "elsewhere")); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Threads(); err == nil || !strings.Contains(err.Error(), "is not the head of a log of this folder") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("state", func(t *testing.T) {
		t.Parallel()
		folder := t.TempDir()
		d := create(t, folder)
		if _, err := d.Swap("t", 0, compaction.State{Total: 1}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(only(t, folder, "state-*.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.Load("t"); err == nil || !strings.Contains(err.Error(), "state-1.json") {
			t.Errorf("got %v", err)
		}
	})
}

// A link out of the folder is not followed.
func TestStaysInItsFolder(t *testing.T) {
	t.Parallel()
	folder, outside := t.TempDir(), t.TempDir()
	d := create(t, folder)
	if err := d.Append("t", message("a", "x")); err != nil {
		t.Fatal(err)
	}
	own := filepath.Dir(only(t, folder, "log.jsonl"))
	if err := errors.Join(os.RemoveAll(own), os.Symlink(outside, own)); err != nil {
		t.Fatal(err)
	}
	if err := d.Append("t", message("b", "x")); err == nil {
		t.Error("wrote through a link")
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("%d files are outside (%v)", len(left), err)
	}
}

// A state of many swaps is one file.
func TestOldStatesGo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	d := create(t, folder)
	rev := uint64(0)
	for i := range 30 {
		var err error
		if rev, err = d.Swap("t", rev, compaction.State{Total: i}); err != nil {
			t.Fatal(err)
		}
	}
	if file := only(t, folder, "state-*"); filepath.Base(file) != fmt.Sprintf("state-%d.json", rev) {
		t.Errorf("left is %s", file)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(only(t, folder, "state-*")), "lock")); err != nil {
		t.Error(err)
	}
}
