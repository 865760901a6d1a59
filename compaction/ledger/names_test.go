package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain words are no names.":                              "",
		"see internal/foo/bar.go:12:3: undefined: Foo.Bar()":     "internal/foo/bar.go Foo.Bar",
		"internal/foo/bar.go-12-\tx := retryLimit":               "internal/foo/bar.go retryLimit",
		"open https://example.com/a?b=c&d=e#f, or (./cmd/main).": "https://example.com/a?b=c&d=e#f ./cmd/main",
		`;\nnewName "max_retries": 12345`:                        "newName max_retries 12345",
		"</system-reminder> **/glob_name.go ~/notes.md":          "system-reminder glob_name.go ~/notes.md",
		"“quoted_name” → next_name … other-name":                 "quoted_name next_name other-name",
		"localhost:8080 e4d909c290d0fb1ca068ffaddf22cbd0":        "localhost:8080 e4d909c290d0fb1ca068ffaddf22cbd0",
		"../up/file.txt .github/workflows @scope/package":        "../up/file.txt .github/workflows scope/package",
	} {
		var got []string
		for _, n := range (&story{}).user(text).state().Names {
			got = append(got, n.Text)
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%q: %q, want %q", text, g, want)
		}
	}
}

// TestNamesByForm: what only looks like a file name is none, and an address of a person is none.
func TestNamesByForm(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("look around").bash("ls", "console.log theme.fg README.md notes.txt go.mod src/a.ts src/b.ts me@example.com 12345 https://example.com/x userName").agent("Done.")
	names := part(s.render(1500), "Other names")
	has(t, names, "- Paths: ", "- Links and ids: ", "- Identifiers: ")
	for line := range strings.Lines(names) {
		label, list, _ := strings.Cut(line, ":")
		want := map[string]string{
			"- Paths": "README.md go.mod notes.txt src/a.ts src/b.ts", "- Links and ids": "12345 https://example.com/x me@example.com", "- Identifiers": "console.log theme.fg userName",
		}[label]
		if got := strings.Join(slices.Sorted(strings.FieldsSeq(list)), " "); got != want {
			t.Errorf("%s: %q, want %q", label, got, want)
		}
	}
}

func TestNamesKnowWhoUsedThem(t *testing.T) {
	t.Parallel()
	s := (&story{}).user("look at user_name").agent("I see agent_name").read("/w/home_file.go").bash("run call_name", "result_name user_name")
	by := map[string]abi.LedgerName{}
	for _, n := range s.state().Names {
		by[n.Text] = n
	}
	for name, want := range map[string]abi.LedgerName{
		"user_name":       {Text: "user_name", Count: 2, User: true, Last: 6, Own: 1},
		"agent_name":      {Text: "agent_name", Count: 1, Agent: true, Last: 2, Own: 2},
		"call_name":       {Text: "call_name", Count: 1, Call: true, Last: 5, Own: 5},
		"result_name":     {Text: "result_name", Count: 1, Last: 6},
		"/w/home_file.go": {Text: "/w/home_file.go", Count: 1, Call: true, Last: 3, Own: 3, Home: "/w/home_file.go"},
	} {
		if by[name] != want {
			t.Errorf("%+v, want %+v", by[name], want)
		}
	}
	state := s.state()
	if got := strings.Fields(ledger.Index(&state, 1000)); !slices.Contains(got, "call_name") || slices.Index(got, "call_name") > slices.Index(got, "result_name") {
		t.Errorf("%q", got)
	}
}
