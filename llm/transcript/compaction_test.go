package transcript_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/llm/transcript"
)

// TestCompactions reads sessions that were compacted while they were recorded.
func TestCompactions(t *testing.T) {
	t.Parallel()
	const (
		claudeSummary  = `{"type":"user","uuid":"s1","parentUuid":"b1","isCompactSummary":true,"message":{"role":"user","content":"The user wants K417."}}` + "\n"
		claudeBoundary = `{"type":"system","subtype":"compact_boundary","uuid":"b1","parentUuid":null,"sessionId":"S","compactMetadata":{"trigger":"auto","preTokens":156912}}` + "\n"
	)
	claude := func(id, parent, text string) string {
		return fmt.Sprintf(`{"type":"user","uuid":%q,"parentUuid":%q,"sessionId":"S","message":{"role":"user","content":%q}}`+"\n", id, parent, text)
	}
	pi := func(id, parent, rest string) string {
		return fmt.Sprintf(`{"id":%q,"parentId":%q,%s}`+"\n", id, parent, rest)
	}
	message := func(text string) string {
		return fmt.Sprintf(`"type":"message","message":{"role":"user","content":%q}`, text)
	}
	piCompaction := `"type":"compaction","summary":"Wants K417.","firstKeptEntryId":"b","tokensBefore":9000`
	for name, tc := range map[string]struct{ input, want string }{
		"Claude Code": {
			claude("u1", "", "one") + claudeBoundary + claudeSummary + claude("u2", "s1", "two"),
			"line 2 at 1 kept 1 continued true 156912 The user wants K417.\n",
		},
		"Claude Code without a boundary": {
			claude("u1", "", "one") + claudeSummary + claude("u2", "s1", "two"),
			"line 2 at 1 kept 1 continued true 0 The user wants K417.\n",
		},
		"Claude Code, nothing continues from it": {
			claude("u1", "", "one") + claudeBoundary + claudeSummary + claude("u2", "u1", "two"),
			"line 2 at 1 kept 1 continued false 156912 The user wants K417.\n",
		},
		"Claude Code, at the end":       {claude("u1", "", "one") + claudeBoundary + claudeSummary, "line 2 at 1 kept 1 continued false 156912 The user wants K417.\n"},
		"Claude Code, at the beginning": {claudeBoundary + claudeSummary + claude("u2", "s1", "two"), ""},
		"Claude Code, repeated by a resumed session": {
			claude("u1", "", "one") + claudeBoundary + claudeSummary + claude("u1", "", "one") + claudeBoundary + claudeSummary + claude("u2", "s1", "two"),
			"line 2 at 1 kept 1 continued true 156912 The user wants K417.\n",
		},
		"pi": {
			session + pi("a", "", message("one")) + pi("b", "a", message("two")) + pi("c", "b", piCompaction) + pi("d", "c", message("three")),
			"line 4 at 2 kept 1 continued true 9000 Wants K417.\n",
		},
		"pi, on a branch that was left": {
			session + pi("a", "", message("one")) + pi("c", "a", piCompaction) + pi("d", "a", message("two")), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := transcript.Read(strings.NewReader(tc.input), transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := renderCompactions(&file.Conversations[0]); got != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			}
			for _, e := range file.Conversations[0].Entries {
				if strings.Contains(e.Message.Text(), "K417") && e.Message.Role == "user" {
					t.Errorf("the summary is read as words of the user: %q", e.Message.Text())
				}
			}
		})
	}
}

func renderCompactions(c *transcript.Conversation) string {
	var b strings.Builder
	for _, k := range c.Compactions {
		fmt.Fprintf(&b, "line %d at %d kept %d continued %v %d %s\n", k.Line, k.At, k.Kept, k.Continued, k.TokensBefore, k.Summary)
	}
	return b.String()
}

// TestCompactionsOfRealSessions holds what is found to what stands in the files.
func TestCompactionsOfRealSessions(t *testing.T) {
	t.Parallel()
	dir := sharedTranscripts(t)
	files := 0
	for _, path := range recordings(t, dir) {
		if !strings.HasPrefix(path, compactions) {
			continue
		}
		files++
		data, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		file, err := transcript.Open(filepath.Join(dir, path), transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := file.Conversations[0].Compactions
		if want := strings.Count(string(data), `"isCompactSummary":true`); len(got) != want {
			t.Errorf("%s: %d compactions, want %d", path, len(got), want)
		}
		for _, c := range got {
			if !c.Continued || len(c.Summary) < 2000 || c.TokensBefore < 100_000 || c.At == 0 || c.Time.IsZero() {
				t.Errorf("%s: line %d: at %d, continued %v, %d bytes, %d tokens", path, c.Line, c.At, c.Continued, len(c.Summary), c.TokensBefore)
			}
		}
	}
	if files == 0 {
		t.Error("no session with a compaction")
	}
}
