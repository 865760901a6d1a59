package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/daemon"
)

// TestStates: the last state that was written whole is found, whatever a process that was killed left behind it, and later
// ones are found behind that; a file does not grow without bound.
func TestStates(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	s, file, size := daemon.States(dir)
	save := func(step int, summary string) {
		t.Helper()
		if err := s.Save("lane", &hook.Saved{RunID: "r", Step: step, Repair: hook.Repair{Summary: summary}}); err != nil {
			t.Fatal(err)
		}
	}
	found := func(want int) {
		t.Helper()
		fresh, _, _ := daemon.States(dir)
		if got, err := fresh.Load("lane"); err != nil || got == nil || got.Step != want {
			t.Fatalf("%+v, %v, want step %d", got, err, want)
		}
	}
	if got, err := s.Load("lane"); got != nil || err != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	save(1, "")
	found(1)
	save(2, "")
	found(2)
	for i, torn := range []string{"\x00", "\x00\x00\x00\x09abc", "\xff\xff\xff\xffabc"} {
		f, err := os.OpenFile(file("lane"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(torn); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		found(2 + i)
		save(3+i, "")
		found(3 + i)
	}
	for _, summary := range []string{"", strings.Repeat("a long summary ", 300)} {
		for step := range 2000 {
			save(step, summary)
		}
		found(1999)
		if info, err := os.Stat(file("lane")); err != nil || info.Size() > 2*size+6*int64(len(summary)) {
			t.Errorf("%v, %v", info.Size(), err)
		}
	}
	if err := os.WriteFile(file("lane"), []byte("no state"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Load("lane"); got != nil || err != nil {
		t.Errorf("of a damaged file: %+v, %v", got, err)
	}
	save(7, "")
	found(7)
}
