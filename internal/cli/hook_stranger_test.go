package cli_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/exit"
)

// TestHook_stranger: the config that a project brings is used only where its user has installed it or names it. Otherwise nothing of it
// is loaded: here it is no config at all. What the project makes of it after that changes nothing.
func TestHook_stranger(t *testing.T) {
	p := newHookPlace(t)
	good, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	project, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(project)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	theirs, own := filepath.Join(project, "mortise.yaml"), filepath.Join(p.home, ".config", "mortise", "mortise.yaml")
	write := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want exit.Code, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		code := cli.Main(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, links.All())
		if code != want {
			t.Errorf("%q: exit %d, not %d: %s%s", args, code, want, out.String(), errs.String())
		}
		return out.String() + errs.String()
	}
	commands := [][]string{
		{"hook", "list"},
		{"hook", "stats"},
		{"hook", "pending"},
		{"mcp", "--", "cat"},
		{"mcp", "--url", "http://127.0.0.1:1/"},
		{"mcp", "serve"},
		{"hook", "doctor", "claude", "--client", p.client},
	}
	write(theirs, "stranger: true\n")
	for _, args := range commands {
		if out := run(exit.Config, args...); !strings.Contains(out, theirs+" is not used") {
			t.Errorf("%q without a config of the user: %s", args, out)
		}
	}
	write(own, string(good))
	for _, args := range commands {
		want := exit.OK
		if slices.Contains(args, "doctor") {
			want = exit.Run // nothing is installed
		}
		if out := run(want, args...); strings.Count(out, theirs+" is not used") != 1 {
			t.Errorf("%q with a config of the user: %s", args, out)
		}
	}
	if out := run(exit.Config, "hook", "list", "--config", theirs); !strings.Contains(out, "stranger") {
		t.Errorf("named: %s", out)
	}
	write(theirs, string(good))
	run(exit.OK, "hook", "install", "claude", "--client", p.client)
	if out := run(exit.OK, "hook", "list"); !strings.Contains(out, "config   "+theirs) || strings.Contains(out, "is not used") {
		t.Errorf("installed: %s", out)
	}
	for _, change := range []func() error{
		func() error { return os.WriteFile(theirs, []byte("stranger: true\n"), 0o600) },
		func() error { return os.Remove(theirs) },
		func() error { return os.Symlink(own, theirs) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(own, append(good, "# of the user\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range commands {
			if slices.Contains(args, "pending") {
				continue
			}
			if out := run(exit.OK, args...); !strings.Contains(out, theirs+": not what is installed") {
				t.Errorf("%q of another config than what is installed: %s", args, out)
			}
		}
	}
}
