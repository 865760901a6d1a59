package future_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/compaction/eval/future"
)

// worked is a conversation in which claim.go is read and edited, helper.go is
// created, old.go is deleted by a command, and an edit of gate.go fails.
func worked() *talk {
	return new(talk).user("Fix the claim in src/claim.go, and never touch gate.go please.").
		read("/w/src/claim.go").edit("/w/src/claim.go").
		call("Write", map[string]any{"file_path": "/w/src/helper.go", "content": "package src"}, "File created successfully at: /w/src/helper.go").
		fails("Edit", map[string]any{"file_path": "/w/src/gate.go"}, "String to replace not found in file.").
		bash("cd /w && rm src/old.go && sed -i 's/a/b/' src/one.go src/two.go && echo x > out.txt 2>/dev/null", "").
		bash("cd /w && go test ./src", "ok  src 0.2s").
		fails("Bash", map[string]any{"command": "golangci-lint run ./..."}, "Exit code 1\nsrc/claim.go:3: unused")
}

func TestFilesThatATextLists(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text           string
		listed, right  int
		found, created int
	}{
		"a section":             {"## Files modified\n- src/claim.go\n- src/helper.go", 2, 2, 2, 0},
		"absolute names":        {"Modified files:\n- /w/src/claim.go\n", 1, 1, 1, 0},
		"another file":          {"## Files modified\n- src/claim.go\n- src/other.go", 2, 1, 1, 0},
		"a failed edit":         {"## Files modified\n- src/gate.go", 1, 0, 0, 0},
		"by a command":          {"Files changed:\n- src/old.go\n- src/one.go\n- src/two.go\n- out.txt", 4, 4, 0, 0},
		"created":               {"## Files created\n- `src/helper.go`: the helper", 1, 1, 1, 1},
		"marks behind names":    {"## Files\n- src/claim.go (modified)\n- src/helper.go (created m94)\n- src/gate.go (read)", 2, 2, 2, 1},
		"marks before names":    {"- Modified: `src/claim.go`\n- Created `src/helper.go`", 2, 2, 2, 1},
		"items below a name":    {"Files and Code Sections:\n   - **src/claim.go**\n     - Added a lock\n   - src/gate.go\n     - Opens the gate", 1, 1, 1, 0},
		"noted":                 {"- changed /w/src/claim.go (m3, sed -i): Claim\n- created /w/.dev/hooks/pre-push (m5)", 2, 1, 1, 0},
		"grouped":               {"changed in /w/src: claim.go (m3), helper.go (created m5)", 2, 2, 2, 1},
		"a sentence":            {"I modified src/claim.go and src/helper.go to fix it.", 2, 2, 2, 0},
		"a list of read ones":   {"## Files read\n- src/gate.go\n- src/claim.go", 0, 0, 0, 0},
		"code":                  {"## Files modified\n```\n- src/other.go\n```", 0, 0, 0, 0},
		"code of another item":  {"- m3 “Look:\n    ```\n    - changed src/other.go” …\n## Files modified\n- src/claim.go", 1, 1, 1, 0},
		"a heading that is not": {"- src/gate.go\n- only these are tracked for modifications:\n- src/other.go", 0, 0, 0, 0},
		"names and no more":     {"src/claim.go src/helper.go", 0, 0, 0, 0},
		"a plain list, far":     {"Files modified:\n\nsome words\n\nsrc/other.go", 0, 0, 0, 0},
		"unchanged":             {"- src/gate.go - unchanged", 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := future.State(worked().messages, tc.text)
			got := []int{s.Modified.Listed, s.Modified.Right, s.Modified.Found, s.Created.Right}
			if want := []int{tc.listed, tc.right, tc.found, tc.created}; !reflect.DeepEqual(got, want) {
				t.Errorf("listed, right, found, created %v, want %v", got, want)
			}
			if s.FalseFiles != (future.Checked{Checked: tc.listed, Wrong: tc.listed - tc.right}) || s.Modified.Touched != 2 {
				t.Errorf("%+v of %+v", s.FalseFiles, s.Modified)
			}
		})
	}
	read := future.State(worked().messages, "## Files read\n- src/gate.go\n- src/claim.go\n- src/nothing.go").Read
	if want := (future.Files{Listed: 3, Right: 1, Touched: 1, Found: 1, Named: 1}); read != want {
		t.Errorf("read %+v, want %+v", read, want)
	}
}

func TestOutcomesThatATextStates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]future.Checked{
		"`go test ./src`: ok":                              {Checked: 1},
		"`go test ./src` passes":                           {Checked: 1},
		"`go test ./src` failed":                           {Checked: 1, Wrong: 1},
		"`go test ./src` runs without errors":              {Checked: 1},
		"golangci-lint run ./... → fails with unused":      {Checked: 1},
		"`golangci-lint run ./...` now passes":             {Checked: 1, Wrong: 1},
		"`go test ./src` first failed, then passed":        {},
		"`go vet ./...` passes":                            {},
		"`go test ./src`":                                  {},
		"all tests pass":                                   {},
		"- go test ./src (m12): ok\n- go test ./src: FAIL": {Checked: 2, Wrong: 1},
	} {
		if got := future.State(worked().messages, text).FalseOutcomes; got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestWordsThatATextGivesToTheUser(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]future.Checked{
		"All user messages:\n- \"Fix the claim in src/claim.go, and never touch gate.go please.\"": {Checked: 1},
		"All user messages:\n- \"Fix the claim in src/claim.go ... never touch gate.go\"":          {Checked: 1},
		"All user messages:\n- \"Fix the claim [in a file] and never touch\"":                      {Checked: 1},
		"All user messages:\n- \"Always touch gate.go please\"":                                    {Checked: 1, Wrong: 1},
		"The user said: “never touch\n  gate.go please”":                                           {Checked: 1},
		"The user said: “touch gate.go at once”":                                                   {Checked: 1, Wrong: 1},
		"the agent at m3: “I will touch gate.go”":                                                  {},
		"## Requests\n- m1 “Fix the claim in …” → the agent: “It is done now”":                     {Checked: 1},
		"## Findings\n- \"some words of a log line\"":                                              {},
		"## Goal\nthe name \"claim checker tool\" is kept":                                         {},
		"the user said \"fix\"": {},
	} {
		if got := future.State(worked().messages, text).FalseWords; got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	said := new(talk).user("<command-name>/review</command-name>\n<command-args>the gate twice please</command-args>").
		call("Edit", map[string]any{"file_path": "a.go"}, "The user doesn't want to proceed. The user said: use the other hook please").messages
	if got := future.State(said, "All user messages:\n- \"/review the gate twice please\"\n- \"use the other hook please\"").FalseWords; got.Wrong != 0 || got.Checked != 2 {
		t.Errorf("%+v", got)
	}
}

func TestGoalAndOpenWork(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 100)
	log := new(talk).user("First: "+long).read("a.go").
		user("<local-command-stdout>no words</local-command-stdout>").
		user("Then do the second thing").agent("done").
		user("And the third thing").
		call("TodoWrite", map[string]any{"todos": []any{
			map[string]any{"content": "Write the tests", "status": "completed"},
			map[string]any{"content": "Run the linter", "status": "pending"},
		}}, "ok").messages
	s := future.State(log, "First: "+long+"\nAnd the third  thing\n- run the linter")
	if s.FirstRequest != 1 || s.LatestRequest != 1 {
		t.Errorf("first %d, latest %d", s.FirstRequest, s.LatestRequest)
	}
	if want := (future.Kept{Kept: 2, Total: 3}); s.Requests != want {
		t.Errorf("requests %+v, want %+v", s.Requests, want)
	}
	if want := (future.Kept{Kept: 1, Total: 1}); s.Stopped != want || s.Tasks != want {
		t.Errorf("stopped %+v, tasks %+v, want %+v", s.Stopped, s.Tasks, want)
	}
	if s := future.State(log, "First: "+long[:200]); s.FirstRequest != 0 || s.LatestRequest != 0 || s.Stopped.Kept != 1 || s.Tasks.Kept != 0 {
		t.Errorf("%+v", s)
	}
}
