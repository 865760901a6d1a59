package summarizers_test

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/transcript"
	"github.com/mortise-dev/mortise/summarizers"
)

// TestNoFalseModifiedFile summarizes real sessions: each file that a summary
// lists as modified was modified by a call, and none of them is listed as read.
func TestNoFalseModifiedFile(t *testing.T) {
	t.Parallel()
	p := openExtract(t)
	for name, c := range realSessions(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkModified(t, p, c)
		})
	}
}

func checkModified(t *testing.T, p *summarizers.Policy, c *transcript.Conversation) {
	t.Helper()
	done := changes(c.Entries)
	r := &abi.SummarizeRequest{ABI: 1, ThreadID: "t", Policy: "extract", Messages: c.Messages()}
	r.ReadFiles, r.ModifiedFiles = compaction.FileOperations(r.Messages)
	r.BudgetTokens = compaction.Estimate(r.Messages) / 10
	s, err := p.Summarize(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	modified := filesUnder(s.Text, "## Files modified")
	for _, f := range modified {
		if !done.modified(f) {
			t.Errorf("%s is listed as modified, and no call modified it", f)
		}
	}
	for _, f := range filesUnder(s.Text, "## Files read") {
		if slices.ContainsFunc(modified, func(m string) bool { return m == f || strings.HasSuffix(m, "/"+f) && strings.HasPrefix(m, "/") }) {
			t.Errorf("%s is listed as read, and as modified", f)
		}
	}
	listed := 0
	for _, f := range done.edited {
		if slices.ContainsFunc(modified, func(m string) bool { return sameFile(m, f) }) {
			listed++
		}
	}
	t.Logf("budget %d: %d of %d edited files are listed, and %d others", r.BudgetTokens, listed, len(done.edited), len(modified)-listed)
	if listed < len(done.edited) {
		t.Errorf("only %d of %d edited files are listed", listed, len(done.edited))
	}
}

func openExtract(t *testing.T) *summarizers.Policy {
	t.Helper()
	cache := ""
	if dir, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(dir, "mortise-test")
	}
	h, err := host.New(host.Config{CacheDir: cache, Limits: host.Limits{Timeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	m, err := h.Load(t.Context(), host.Spec{Path: filepath.Join("..", "testdata", "guests", "summarizers.wasm")})
	if err != nil {
		t.Fatal(err)
	}
	p, err := summarizers.Open(t.Context(), m, summarizers.Config{Use: summarizers.UseSummarize, Policy: "extract"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// realSessions are those of the examples and, where they are, the shared ones of
// coding agents.
func realSessions(t *testing.T) map[string]*transcript.Conversation {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "examples", "sessions", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d example sessions: %v", len(files), err)
	}
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	dir = filepath.Join(dir, "data", "transcripts")
	shared := 0
	for _, pattern := range []string{"pi-mono/*.jsonl", "claude-code/*.jsonl", "claude-code-compactions/*.jsonl", "mini-swe-agent/*/*.traj.json"} {
		more, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files, shared = append(files, more...), shared+len(more)
	}
	if shared == 0 {
		t.Run("shared", func(t *testing.T) {
			t.Parallel()
			testskip.Skip(t, "no real recordings in %s (set MORTISE_SHARED)", dir)
		})
	}
	out := map[string]*transcript.Conversation{}
	for _, f := range files {
		file, err := transcript.Open(f, transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = &file.Conversations[0]
	}
	return out
}

// filesUnder returns the files under a heading of a summary.
func filesUnder(text, heading string) []string {
	_, rest, ok := strings.Cut("\n"+text, "\n"+heading+"\n")
	if !ok {
		return nil
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Split(line, ", ")
}

// sessionChanges is what the calls of a session modified, read from the calls and the
// recorded status of their results by other means than the policy's.
type sessionChanges struct {
	edited   []string // by tools that edit
	commands []string // that write or change files
}

var changing = regexp.MustCompile(`>|\bsed\b|\bperl\b|\brm\b|\bmv\b|\bcp\b|\btee\b|\btouch\b`)

func changes(entries []transcript.Entry) sessionChanges {
	var out sessionChanges
	failed := map[string]bool{}
	for i := range entries {
		if e := &entries[i]; e.Message.Role == abi.RoleTool {
			failed[e.Message.ToolCallID] = e.Status != abi.ToolSuccess || e.Synthetic
		}
	}
	for i := range entries {
		m := &entries[i].Message
		if m.Role != abi.RoleAssistant {
			continue
		}
		if i+1 < len(entries) && len(m.ToolCalls) == 0 && strings.HasPrefix(entries[i+1].Message.Text(), "<returncode>") {
			out.commands = append(out.commands, m.Text())
		}
		for _, c := range m.ToolCalls {
			args, _ := c.Arguments.(map[string]any)
			if command, ok := args["command"].(string); ok && changing.MatchString(command) {
				out.commands = append(out.commands, command)
			}
			switch strings.ToLower(c.Name) {
			case "edit", "write", "multiedit", "notebookedit":
				for _, key := range []string{"path", "file_path", "notebook_path"} {
					if f, ok := args[key].(string); ok && !failed[c.ID] && !slices.Contains(out.edited, f) {
						out.edited = append(out.edited, f)
					}
				}
			}
		}
	}
	return out
}

func (c *sessionChanges) modified(f string) bool {
	return slices.ContainsFunc(c.edited, func(e string) bool { return sameFile(e, f) }) ||
		slices.ContainsFunc(c.commands, func(s string) bool { return strings.Contains(s, path.Base(f)) && changing.MatchString(s) })
}

func sameFile(a, b string) bool {
	return a == b || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a)
}
