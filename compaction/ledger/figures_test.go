package ledger_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
)

// edited are the files that the tools of a session changed, by a rule of its own: calls of file tools
// whose result is no error.
func edited(log []abi.Message) map[string]bool {
	pending, out := map[string]string{}, map[string]bool{}
	for i := range log {
		for _, c := range log[i].ToolCalls {
			args, _ := c.Arguments.(map[string]any)
			if path, ok := args["file_path"].(string); ok && (c.Name == "Edit" || c.Name == "Write" || c.Name == "MultiEdit") {
				pending[c.ID] = path
			}
		}
		if path, ok := pending[log[i].ToolCallID]; ok && log[i].Role == abi.RoleTool && log[i].Metadata[abi.MetadataIsError] == nil {
			out[path] = true
		}
	}
	return out
}

// TestFigures holds the rendering at the size of the vendor's summary to what it was measured with, less .03.
func TestFigures(t *testing.T) {
	t.Parallel()
	strict, lenient, all := 0, 0, 0
	for _, w := range windows(t, 8) {
		l := ledger.New()
		l.Add(w.before...)
		s := l.State()
		text := ledger.Render(&s, len(w.vendor))
		a, b := recall(text, w.needed)
		strict, lenient, all = strict+a, lenient+b, all+len(w.needed)
		want := edited(w.before)
		files := part(text, "Files")
		for path := range want {
			if !strings.Contains(files, path) {
				t.Errorf("%s: %s is not listed", w.session, path)
			}
		}
		for _, f := range s.Work.Files {
			if f.Changes > 0 && f.Verb == "" && !want[f.Path] {
				t.Errorf("%s: %s was not changed", w.session, f.Path)
			}
		}
		goal := strings.ReplaceAll(part(text, "Goal"), "\n    ", "\n")
		requests := s.Talk.Requests
		for _, r := range []abi.LedgerRequest{firstAsked(requests), requests[len(requests)-1]} {
			if head := r.Text[:min(300, len(r.Text))]; !strings.Contains(goal, strings.TrimSpace(head)) {
				t.Errorf("%s: m%d is not verbatim", w.session, r.Message)
			}
		}
	}
	if all == 0 || float64(strict)/float64(all) < .86 || float64(lenient)/float64(all) < .87 {
		t.Errorf("%d strict, %d lenient of %d facts", strict, lenient, all)
	}
}

var (
	bodies  = regexp.MustCompile(`(?s)<<'(EOF|PY)'([^\n]*\n).*?\n(EOF|PY)(\n|$)`)
	quotes  = regexp.MustCompile(`'[^'\n]*'`)
	writers = regexp.MustCompile(`(>|\b(sed -i|cp|mv|rm)\b[^;&|\n]*)\s\S*$`)
)

// writes reports a command that writes, moves or removes a file, by a rule of its own.
func writes(command, path string) bool {
	command = quotes.ReplaceAllString(bodies.ReplaceAllString(command, "$2"), "")
	for from, name := 0, filepath.Base(path); ; from += len(name) {
		i := strings.Index(command[from:], name)
		if i < 0 {
			return false
		}
		if from += i; writers.MatchString(command[:from]) {
			return true
		}
	}
}

// TestShippedSessions shows that no file counts as changed in the sessions of the repository that no command wrote.
func TestShippedSessions(t *testing.T) {
	t.Parallel()
	for name, least := range map[string]int{"review": 13, "metering": 22} {
		log := messagesOf(load(t, filepath.Join("..", "..", "examples", "sessions", name+".jsonl")))
		s := (&story{log: log}).state()
		changed := 0
		for _, f := range s.Work.Files {
			if f.Changes == 0 {
				continue
			}
			changed++
			wrote := false
			for i := range log {
				for _, c := range log[i].ToolCalls {
					args, _ := c.Arguments.(map[string]any)
					command, _ := args["command"].(string)
					wrote = wrote || writes(command, f.Path)
				}
			}
			if !wrote {
				t.Errorf("%s: no command wrote %s (%s)", name, f.Path, f.Verb)
			}
		}
		if changed < least {
			t.Errorf("%s: %d changed files, want %d", name, changed, least)
		}
	}
}
