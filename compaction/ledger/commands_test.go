package ledger_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
)

func outcomeOf(s *story) string {
	list := s.state().Work.Commands
	if len(list) == 0 {
		return "none"
	}
	return list[len(list)-1].Outcome
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		story *story
		want  string
	}{
		"unmarked, not hidden":           {(&story{}).bash("go vet ./...", ""), abi.CommandOK},
		"marked":                         {(&story{}).failed("Bash", map[string]any{"command": "go vet ./..."}, "Exit code 1\nvet: broken"), abi.CommandFailed},
		"compile error behind a pipe":    {(&story{}).bash("go build ./... 2>&1 | head -5", "a.go:3:2: undefined: x"), abi.CommandFailed},
		"piped, no evidence":             {(&story{}).bash("./deploy.sh | tail -3", "uploaded"), abi.CommandEnded},
		"piped, positive line":           {(&story{}).bash("go test ./... | tail -3", "ok  \texample.com/a\t0.1s"), abi.CommandOK},
		"positive line behind head":      {(&story{}).bash("go test ./... | head -3", "ok  \texample.com/a\t0.1s"), abi.CommandEnded},
		"positive line behind grep":      {(&story{}).bash("go test -v ./... | grep PASS", "--- PASS: TestX (0.00s)"), abi.CommandEnded},
		"no result":                      {(&story{}).failed("Bash", map[string]any{"command": "make x"}, "[no result was recorded]"), "none"},
		"both lines":                     {(&story{}).bash("go test ./... | tail -3", "ok  \texample.com/a\t0.1s\n--- FAIL: TestX (0.00s)\nFAIL"), abi.CommandFailed},
		"semicolon":                      {(&story{}).bash("make build; echo done", "done"), abi.CommandEnded},
		"alternative":                    {(&story{}).bash("make build || true", ""), abi.CommandEnded},
		"log of a test that passes":      {(&story{}).bash("go test -v ./a | tail -3", "    a_test.go:10: start\n--- PASS: TestX (0.00s)\nPASS"), abi.CommandOK},
		"log behind a pipe":              {(&story{}).bash("go test -v ./a | grep start", "    a_test.go:10: start"), abi.CommandEnded},
		"grep that finds an error":       {(&story{}).bash("grep -rn 'panic:' . | head", "panic: was here"), abi.CommandEnded},
		"git log about failures":         {(&story{}).bash("git log --oneline | head -2", "fatal: is a word in this commit"), abi.CommandEnded},
		"exit code of Codex":             {(&story{}).call("shell", map[string]any{"command": []any{"bash", "-lc", "go vet ./..."}}, "Exit code: 1\nWall time: 0.2 seconds\nOutput:\na.go:1:1: bad"), abi.CommandFailed},
		"exit code 0 of Codex":           {(&story{}).call("shell", map[string]any{"command": []any{"bash", "-lc", "go vet ./..."}}, "Exit code: 0\nWall time: 0.2 seconds\nOutput:\n"), abi.CommandOK},
		"exit code of Gemini":            {(&story{}).call("run_shell_command", map[string]any{"command": "npm test"}, "Output: broken\nExit Code: 2"), abi.CommandFailed},
		"shell without marks":            {(&story{}).call("run_terminal_cmd", map[string]any{"command": "make x"}, "whatever"), abi.CommandEnded},
		"shell without marks, exit code": {(&story{}).call("run_terminal_cmd", map[string]any{"command": "make x"}, "whatever\nexit code 0"), abi.CommandOK},
		"did not run":                    {(&story{}).failed("Bash", map[string]any{"command": "make x"}, "<tool_use_error>Sibling tool call errored</tool_use_error>"), "none"},
		"pytest":                         {(&story{}).bash("pytest -q | tail -2", "12 passed in 0.41s"), abi.CommandOK},
		"pytest with failures":           {(&story{}).bash("pytest -q | tail -2", "FAILED test_a.py::test_b - AssertionError\n1 failed, 11 passed in 0.41s"), abi.CommandFailed},
		"background":                     {(&story{}).bash("npm start &", ""), abi.CommandEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := outcomeOf(tc.story); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestDecisiveLine(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("test").failed("Bash", map[string]any{"command": "cd /w && FOO=1 go test ./... 2>&1 | tail -20"},
		"Exit code 1\nsome noise\n    a_test.go:12: got 1, want 2\n--- FAIL: TestRetry (0.00s)\nFAIL\nFAIL\texample.com/a\t0.1s\ntask failed")
	open := part(s.render(8000), "Open")
	has(t, open, "- failed at m3, not seen to pass since: `go test ./...`", "“--- FAIL: TestRetry (0.00s)”")
	lacks(t, open, "Exit code", "task failed")
}

func TestFailuresThatPassLater(t *testing.T) {
	t.Parallel()
	fail := func(s *story, cmd string) *story {
		return s.failed("Bash", map[string]any{"command": cmd}, "Exit code 1\nerror: broken")
	}
	for name, tc := range map[string]struct {
		story *story
		open  bool
	}{
		"same command":                {fail(&story{}, "make lint").bash("make lint", "0 issues."), false},
		"same command, other filter":  {fail(&story{}, "make lint | tail -5").edit("/w/a.go").bash("cd /w && make lint 2>&1", ""), false},
		"in a chain":                  {fail(&story{}, "make lint").bash("make lint && make test", ""), false},
		"second of a chain":           {fail(&story{}, "make test").bash("make lint && make test", ""), false},
		"chain, then its parts":       {fail(&story{}, "make lint && make test").bash("make lint", "").bash("make test", ""), false},
		"chain, then one part":        {fail(&story{}, "make lint && make test").bash("make lint", ""), true},
		"failed chain proves nothing": {fail(fail(&story{}, "make lint"), "make lint && make test"), true},
		"piped pass proves nothing":   {fail(&story{}, "make lint").bash("make lint | tail -1", "done"), true},
		"wider test":                  {fail(&story{}, "go test ./a/...").bash("go test ./...", "ok  \texample.com/a\t0.1s"), false},
		"other command":               {fail(&story{}, "make lint").bash("make build", ""), true},
		"all tests, by another tool":  {fail(&story{}, "go test ./pkg -run TestA").bash("mise run test && mise run lint", ""), false},
		"all tests, all packages":     {fail(&story{}, "go test -v -run TestA ./pkg").bash("go test -race ./...", ""), false},
		"tests of one package":        {fail(&story{}, "go test ./pkg -run TestA").bash("go test ./other", ""), true},
		"tests of the folder":         {fail(&story{}, "go test ./pkg -run TestA").bash("go test", ""), true},
		"the test of the same name":   {fail(&story{}, "go test ./pkg -v -run TestA").bash("cd pkg && go test -run TestA", ""), false},
		"a test of another name":      {fail(&story{}, "pytest -k one").bash("pytest -k two", ""), true},
		"the file of the test":        {fail(&story{}, "pytest tests/a_test.py::test_one").bash("pytest -q tests/a_test.py", "5 passed in 0.1s"), false},
		"another file":                {fail(&story{}, "pytest tests/a_test.py::test_one").bash("pytest tests/b_test.py", "5 passed in 0.1s"), true},
		"the package of the test":     {fail(&story{}, "go test ./pkg -run TestA").bash("go test ./pkg", ""), false},
		"integration tests":           {fail(&story{}, "go test -tags=integration ./pkg -run TestA").bash("make test", ""), true},
		"tests of another language":   {fail(&story{}, "npx vitest run a").bash("go test ./...", ""), true},
		"lint is in no test":          {fail(&story{}, "golangci-lint run").bash("make test", ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := tc.story.user("next").render(8000)
			if got := strings.Contains(part(text, "Open"), "not seen to pass"); got != tc.open {
				t.Errorf("open: %v, want %v\n%s", got, tc.open, text)
			}
			if fixed := part(text, "Errors that were fixed"); tc.open == (fixed != "") {
				t.Errorf("fixed: %q", fixed)
			}
		})
	}
}

// TestMissingProgramIsNoOpenWork: it stands among the commands.
func TestMissingProgramIsNoOpenWork(t *testing.T) {
	t.Parallel()
	old := (&story{}).user("go").failed("Bash", map[string]any{"command": "jq .x a.json"}, "Exit code 3\njq: error: no")
	for range 10 {
		old.edit("/w/a.go")
	}
	lacks(t, old.render(8000), "## Open") // a question that failed once, long ago
	lacks(t, (&story{}).user("go").edit("/w/a.go").failed("Bash", map[string]any{"command": "mise run lint:full"}, "Exit code 1\nmise ERROR no task lint:full found").render(8000), "## Open")
	text := (&story{}).user("test it").edit("/w/a.py").failed("Bash", map[string]any{"command": "pytest tests/a.py"}, "Exit code 127\nbash: line 1: pytest: command not found").render(8000)
	lacks(t, text, "## Open")
	has(t, part(text, "Commands"), "`pytest tests/a.py` failed: “bash: line 1: pytest: command not found”")
}

func TestCommitsAndBranch(t *testing.T) {
	t.Parallel()
	text := (&story{}).user("commit it").edit("/w/a.go").bash("git add -A && git commit -m x", "[feature/retry 1a2b3c4] Retry less\n 1 file changed").agent("Done.").user("thanks").render(8000)
	has(t, text, ", on branch feature/retry")
	has(t, part(text, "Commits"), "- m4 1a2b3c4 on feature/retry: Retry less")
	has(t, part(text, "Goal"), "“commit it”\n  → changed a.go; committed 1a2b3c4")
	// A line that a program prints is no commit.
	lacks(t, (&story{}).bash("go test ./...", "[main 1a2b3c4] not a commit").render(8000), "## Commits")
}

func TestUnknownToolClaimsNothing(t *testing.T) {
	t.Parallel()
	text := (&story{}).user("go").call("frobnicate", map[string]any{"target": "/w/deep/thing.go", "n": int64(3)}, "everything failed at /w/other/thing2.go").render(4000)
	has(t, text, "frobnicate", "/w/other/thing2.go")
	lacks(t, text, "## Files", "## Commands", "changed", "failed at")
}
