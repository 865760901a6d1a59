package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// childArgs makes this test binary a process that is the command, with these arguments, a list in JSON.
const childArgs = "MORTISE_TEST_CLI_ARGS"

// beChild is the command if this process was started as it, and does not return then.
func beChild() {
	if text := os.Getenv(childArgs); text != "" {
		var args []string
		if err := errors.Join(json.Unmarshal([]byte(text), &args), os.Unsetenv(childArgs)); err != nil {
			panic(err)
		}
		os.Exit(int(cli.Main(context.Background(), args, cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, links.All())))
	}
}

// child is the command in a process of its own, in that folder.
func child(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), childArgs+"="+string(text))
	return cmd
}

// killAt runs the command in a process of its own, and kills it as soon as it says something.
func killAt(t *testing.T, says string, args ...string) {
	t.Helper()
	cmd := child(t, "", args...)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var heard []string
	killed := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		heard = append(heard, lines.Text())
		if strings.Contains(lines.Text(), says) && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); !killed || err == nil {
		t.Fatalf("it ended by itself (%v): %s", err, strings.Join(heard, "\n"))
	}
}

// What a process that was killed has kept is there: its compactions, the messages of the steps before, its
// decisions. The next one continues and comes to the same end.
func TestStoreOfAKilledRun(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	path, cfg := filepath.Join(t.TempDir(), "mortise.db"), config(t, compacting)
	total, before := 0, []string{}
	for _, says := range []string{"swapped in", "compaction admitted"} {
		killAt(t, says, "run", "-c", cfg, "--pace", "200ms", "--store", path, review(t))
		v := show(t, path).Threads[0]
		after := ids(t, path, v.ID)
		if says == "swapped in" && v.State.Total <= total || v.State.Total < total {
			t.Errorf("%d compactions were there, and now %d", total, v.State.Total)
		}
		if len(after) < len(before) || len(after) > 174 || !slices.Equal(after[:len(before)], before) {
			t.Errorf("%d messages were there, and now %d", len(before), len(after))
		}
		total, before = v.State.Total, after
	}
	code, r, stderr := run(t, cfg, review(t), "--store", path)
	if code != exit.OK || !r.Threads[0].Complete || len(before) == 0 {
		t.Fatalf("exit code %d, %+v: %s", code, r.Threads, stderr)
	}
	after := ids(t, path, r.Threads[0].ID)
	if len(after) != r.Session.Messages || len(slices.Compact(slices.Sorted(slices.Values(after)))) != len(after) || !slices.Equal(after[:len(before)], before) {
		t.Errorf("the log has %d and then %d messages, the recording gives %d", len(before), len(after), r.Session.Messages)
	}
	list := strings.Split(strings.TrimSpace(must(t, "explain", "--store", path)), "\n")[1:]
	if len(list) <= r.Runs.Count { // the second process may have been killed before its first run
		t.Errorf("runs %q", list)
	}
	for _, line := range list { // also those that have no end
		if id, _, _ := strings.Cut(strings.TrimSpace(line), " "); !strings.Contains(must(t, "explain", id, "--store", path), "run "+id) {
			t.Errorf("%s is not explained", id)
		}
	}
	if left, err := filepath.Glob(path + "*"); err != nil || !slices.Equal(left, []string{path}) {
		t.Errorf("files %q (%v)", left, err)
	}
}
