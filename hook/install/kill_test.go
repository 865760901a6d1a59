package install_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/install"
)

// TestMain is also a process that installs and uninstalls until it is killed, when a variable names a file.
func TestMain(m *testing.M) {
	if path := os.Getenv("MORTISE_TEST_INSTALL"); path != "" {
		fmt.Fprintln(os.Stderr, installing(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// installing registers and removes hooks in turn, until something fails.
func installing(path string) error {
	a, err := install.AgentOf("claude")
	if err != nil {
		return err
	}
	entries := install.Entries(a.Dialect, client, profile, []string{"PreToolUse", "PostToolUse"}, func(e *hook.EventSpec) bool { return e.Gate })
	mark := install.Mark(profile, "claude")
	fmt.Println("ready")
	for {
		if _, err := install.Edit(path, false, func(b []byte) ([]byte, error) { return a.Added(b, mark, entries) }); err != nil {
			return err
		}
		now, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := a.Uninstall(path, now, mark); err != nil {
			return err
		}
	}
}

// TestKilled: settings are as before an install or as after it, whenever the process that writes them is killed, and the next one
// works and cleans up.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "settings.json")
	before := []byte("{\n  \"model\": \"x\",\n  \"env\": {\"A\": \"" + strings.Repeat("long ", 10_000) + "\"}\n}\n")
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	a := agent(t, "claude")
	entries := install.Entries(a.Dialect, client, profile, []string{"PreToolUse", "PostToolUse"}, func(e *hook.EventSpec) bool { return e.Gate })
	mark := install.Mark(profile, "claude")
	after, err := a.Added(before, mark, entries)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[bool]int{}
	for i := range 30 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "MORTISE_TEST_INSTALL="+path)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 16)); err != nil {
			t.Fatal(err, stderr.String())
		}
		<-time.After(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); !errors.As(err, new(*exec.ExitError)) || stderr.Len() > 0 {
			t.Fatalf("%v %s", err, stderr.String())
		}
		now, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(now, before) && !bytes.Equal(now, after) {
			t.Fatalf("kill %d left %d bytes of neither file: %v", i, len(now), err)
		}
		seen[bytes.Equal(now, after)]++
	}
	if _, err := install.Edit(path, false, func(b []byte) ([]byte, error) { return a.Added(b, mark, entries) }); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Uninstall(path, now, mark); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		t.Errorf("uninstall after the kills: %v, %d bytes", err, len(now))
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if strings.Contains(e.Name(), "tmp") || strings.Contains(e.Name(), "lock") {
			t.Errorf("%s is left", e.Name())
		}
	}
	t.Logf("before and after: %v, %d files", seen, len(left))
}
