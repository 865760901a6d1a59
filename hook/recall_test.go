package hook_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/eval/future"
	"github.com/mortise-dev/mortise/internal/testskip"
	recorded "github.com/mortise-dev/mortise/llm/transcript"
)

// cut is a recorded session up to a compaction of the vendor's, without and with the summary, and what was needed later.
type cut struct {
	future.Window

	before, compacted string
}

// cuts reads the real sessions with compactions.
func cuts(t *testing.T) []cut {
	t.Helper()
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	files, err := filepath.Glob(filepath.Join(dir, "data", "transcripts", "claude-code-compactions", "*.jsonl"))
	if err != nil || len(files) == 0 {
		testskip.Skip(t, "no real compactions in data/transcripts/claude-code-compactions; set MORTISE_SHARED to the folder that holds data/ (%v)", err)
	}
	var out []cut
	for _, path := range files {
		f, err := recorded.Open(path, recorded.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := &f.Conversations[0]
		s := future.Session{Name: filepath.Base(path), Messages: c.Messages(), Partial: c.Partial}
		for _, k := range c.Compactions {
			s.Compactions = append(s.Compactions, future.Compaction{At: k.At, Summary: k.Summary, Continued: k.Continued})
		}
		w, ok := future.First(s)
		if !ok || len(w.Needed) < 8 {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines, k := bytes.SplitAfter(data, []byte("\n")), c.Compactions[0]
		write := func(name string, n int) string {
			name = filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(name, bytes.Join(lines[:n], nil), 0o600); err != nil {
				t.Fatal(err)
			}
			return name
		}
		out = append(out, cut{Window: w, before: write("before", k.Line-1), compacted: write("compacted", c.Entries[k.At].Line-1)})
	}
	return out
}

// recall is how many of the needed facts texts hold: word for word, and as the last parts of paths.
type recall struct{ strict, lenient, all int }

func (r *recall) add(w *future.Window, text string) {
	for i := range w.Needed {
		r.all++
		if w.Needed[i].Strict(text) {
			r.strict++
		}
		if w.Needed[i].Lenient(text) {
			r.lenient++
		}
	}
}

func (r *recall) shares() (strict, lenient float64) {
	return float64(r.strict) / float64(r.all), float64(r.lenient) / float64(r.all)
}

// TestRepair_recall: of what an agent needed after a compaction of the vendor's, the summary with what is given back holds
// far more than the summary alone: where the summary is known first as in Codex, and in the two parts of Claude Code.
func TestRepair_recall(t *testing.T) {
	t.Parallel()
	var vendor, known, parts recall
	for _, c := range cuts(t) {
		vendor.add(&c.Window, c.Vendor)
		b := engine(t, options{program: repairing})
		text := func(out map[string]any) string {
			s, _ := at(out, specific, "additionalContext").(string)
			return s
		}
		event := func(dialect, name, path string, more map[string]any) string {
			more["session_id"], more["cwd"], more["transcript_path"] = "s1", "/src", path
			_, out := b.send(dialect, name, more)
			return text(out)
		}
		event("codex", "PreCompact", c.before, map[string]any{"trigger": "auto"})
		event("codex", "PostCompact", c.compacted, map[string]any{"trigger": "auto"})
		note := event("codex", "SessionStart", c.compacted, map[string]any{"source": "compact"})
		known.add(&c.Window, c.Vendor+"\n"+note)

		event("claude", "PreCompact", c.before, map[string]any{"trigger": "auto"})
		first := event("claude", "SessionStart", c.before, map[string]any{"source": "compact"})
		event("claude", "PostCompact", c.before, map[string]any{"trigger": "auto", "compact_summary": c.Vendor})
		second := event("claude", "UserPromptSubmit", c.before, map[string]any{"prompt": "go on"})
		parts.add(&c.Window, c.Vendor+"\n"+first+"\n"+second)
		for _, s := range []string{note, first + second} {
			if n := tokens(s); n > 650 || n < 500 {
				t.Errorf("%s: %d tokens were given back", c.Session, n)
			}
		}
		if n := tokens(first); n > 325 {
			t.Errorf("%s: %d tokens before the summary was known", c.Session, n)
		}
	}
	for name, want := range map[string]struct {
		recall          recall
		strict, lenient float64
	}{"summary known": {known, .74, .80}, "in two parts": {parts, .72, .79}} {
		strict, lenient := want.recall.shares()
		alone, named := vendor.shares()
		t.Logf("%s: %.3f strict, %.3f lenient of %d facts; the summary alone %.3f, %.3f", name, strict, lenient, want.recall.all, alone, named)
		if strict < want.strict || lenient < want.lenient {
			t.Errorf("%s: %.3f strict, %.3f lenient; want %.2f, %.2f", name, strict, lenient, want.strict, want.lenient)
		}
	}
}

func tokens(s string) int64 {
	return compaction.EstimateMessage(&abi.Message{Content: []abi.ContentBlock{abi.Text(s)}})
}
