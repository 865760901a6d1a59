package verify_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
	"github.com/mortise-dev/mortise/compaction/verify"
)

func message(role abi.Role, text string) abi.Message {
	return abi.Message{Role: role, Content: []abi.ContentBlock{abi.Text(text)}}
}

// call is a call of a tool and its result.
func call(id, tool, result string, arguments map[string]any) []abi.Message {
	ask := abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: id, Name: tool, Arguments: arguments}}}
	answer := message(abi.RoleTool, result)
	answer.ToolCallID = id
	return []abi.Message{ask, answer}
}

// session is a log: claim.go is changed, new_helper.go created, report.go read, and the tests fail at first.
func session() []abi.Message {
	log := []abi.Message{message(abi.RoleUser, "Please let the claim expire after 4500 seconds, and never touch the schema.")}
	log = append(log, call("1", "Read", "package claim", map[string]any{"file_path": "/w/claim.go"})...)
	log = append(log, call("2", "Read", "package claim", map[string]any{"file_path": "/w/report.go"})...)
	log = append(log, call("3", "Edit", "The file /w/claim.go has been updated.", map[string]any{"file_path": "/w/claim.go", "old_string": "a", "new_string": "b"})...)
	log = append(log, call("4", "Write", "File created successfully at: /w/new_helper.go", map[string]any{"file_path": "/w/new_helper.go", "content": "package claim"})...)
	log = append(log, call("5", "Bash", "--- FAIL: TestClaim\nFAIL\nexit status 1", map[string]any{"command": "go test ./claim"})...)
	log = append(log, call("6", "Bash", "ok  	claim	0.01s", map[string]any{"command": "go vet ./claim"})...)
	return append(log, message(abi.RoleAssistant, "The test of the expiry fails because the clock is not injected."))
}

func verifier() *verify.Log {
	log := session()
	l := ledger.New()
	l.Add(log...)
	state := l.State()
	return verify.New(log, &state, "")
}

// TestStrike: what the log does not bear out goes, and everything else stays byte for byte.
func TestStrike(t *testing.T) {
	t.Parallel()
	l := verifier()
	for name, tc := range map[string]struct{ text, want string }{
		"true changes stay":                {"## Files modified\n- `/w/claim.go`\n- new_helper.go (created): helpers", "same"},
		"a file that no call changed":      {"## Files modified\n- /w/claim.go\n- /w/report.go\n- other.go", "## Files modified\n- /w/claim.go"},
		"with what is said of it":          {"## Files\n- report.go (modified)\n  - a new field\n    - of a type\n- claim.go (modified)", "## Files\n- claim.go (modified)"},
		"a file that was not created":      {"- claim.go (created)", ""},
		"read files may be listed":         {"## Files read\n- report.go\n- claim.go", "same"},
		"a folder of both":                 {"## Files examined and modified\n- report.go\n- claim.go", "same"},
		"what was done, below":             {"- **`report.go`**\n  - Added a field\n  - It has two types", "- **`report.go`**\n  - It has two types"},
		"what was done, below, truly":      {"- **`claim.go`**\n  - Added a field", "same"},
		"a sentence":                       {"I wrote it down. Modified report.go, so that it compiles.\nModified claim.go.", "Modified claim.go."},
		"a plan is no claim":               {"## Files to modify\n- report.go\n## Next\n- report.go needs to be changed", "same"},
		"a failure that was none":          {"- `go vet ./claim` failed", ""},
		"a pass that was none":             {"- `go test ./claim` passes", ""},
		"outcomes as they were":            {"- `go test ./claim` failed, `go vet ./claim` passes\n- `go vet ./claim` has no errors", "same"},
		"words of the user":                {`- User: "let the claim expire after 4500 seconds"`, "same"},
		"a cut quotation":                  {`- User: "Please let the claim ... never touch the schema"`, "same"},
		"not the user's words":             {`- User: "delete the schema, and the tests"`, ""},
		"the agent's are not the user's":   {`- User: "the clock is not injected"`, ""},
		"the agent's words":                {`- The agent said "the clock is not injected".`, "same"},
		"a quotation in a sentence":        {`- The build said "undefined: claim.Expire" twice.`, `- The build said undefined: claim.Expire twice.`},
		"a number of the log":              {"- expiry: 4500 seconds (4,500)", "same"},
		"a number that is not there":       {"- expiry: 5400 seconds\n- years: 19", "- years: 19"},
		"code is left alone":               {"```go\n- report.go (modified)\nx := 98765\n```", "same"},
		"a fence in one line ends with it": {"```x```\n- report.go (modified)", "```x```"},
		"nothing":                          {"", "same"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := tc.want
			if want == "same" {
				want = tc.text
			}
			got, struck := l.Strike(tc.text)
			if got != want {
				t.Errorf("got %q, want %q, struck %q", got, want, struck)
			}
			if again, more := l.Strike(got); again != got || len(more) > 0 {
				t.Errorf("again: %q, struck %q", again, more)
			}
		})
	}
}

// TestSummaryBefore: what a summary of earlier messages has is not struck.
func TestSummaryBefore(t *testing.T) {
	t.Parallel()
	log := session()
	state := abi.Ledger{}
	l := verify.New(log, &state, `The user had said "keep the old port 70777".`)
	text := `- User: "keep the old port 70777"`
	if got, struck := l.Strike(text); got != text {
		t.Errorf("got %q, struck %q", got, struck)
	}
}

// FuzzStrike: the result has no line that the text has not, but for marks of quotation.
func FuzzStrike(f *testing.F) {
	f.Add("## Files modified\n- report.go\n  - x\n\n```\ncode")
	f.Add(`User: "never said at all" and “nor this one …”`)
	l := verifier()
	f.Fuzz(func(t *testing.T, text string) {
		got, _ := l.Strike(text)
		bare := func(s string) string { return strings.NewReplacer(`"`, "", "“", "", "”", "").Replace(s) }
		have := bare(text)
		for line := range strings.SplitSeq(got, "\n") {
			if !strings.Contains(have, bare(strings.TrimSpace(line))) {
				t.Fatalf("%q is not in %q", line, text)
			}
		}
	})
}
