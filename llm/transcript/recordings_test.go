package transcript_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// compactions is the folder of sessions that were compacted while they were
// recorded.
const compactions = "claude-code-compactions/"

// recorded is what a real recording must be read as. The counts were taken from
// the files by other means.
type recorded struct {
	format        transcript.Format
	conversations int
	roles         map[abi.Role]int
	calls         int
	synthetic     int
	notes         int
	usage         int // messages with usage
	skipped       map[string]int
}

func expected() map[string]recorded {
	mini := func(assistant, commands int) recorded { // the others get an answer of the program in the user's place
		return recorded{
			format: transcript.FormatMiniSWEAgent, conversations: 1, usage: assistant, calls: commands,
			roles: map[abi.Role]int{"system": 1, "user": 1 + assistant - commands, "assistant": assistant, "tool": commands},
		}
	}
	return map[string]recorded{
		"pi-mono/large-session.jsonl": {
			format: transcript.FormatPi, conversations: 1,
			// 914 recorded messages and 18 placeholders for calls cut short
			roles: map[abi.Role]int{"user": 88, "assistant": 453, "tool": 373 + 18},
			calls: 391, synthetic: 18, notes: 18 + 22, usage: 439,
			skipped: map[string]int{"model_change": 1, "thinking_level_change": 103},
		},
		"claude-code/short.jsonl": {
			format: transcript.FormatClaudeCode, conversations: 1,
			roles: map[abi.Role]int{"user": 2, "assistant": 1, "tool": 2}, calls: 2, usage: 1,
			skipped: map[string]int{"file-history-snapshot": 1, "progress": 3, "system": 2},
		},
		"claude-code/tool_heavy.jsonl": {
			format: transcript.FormatClaudeCode, conversations: 1,
			roles: map[abi.Role]int{"user": 7, "assistant": 4, "tool": 6}, calls: 6, usage: 4, notes: 1,
			skipped: map[string]int{"file-history-snapshot": 3, "progress": 10, "queue-operation": 2, "system": 2},
		},
		"claude-code/subagent.jsonl": {
			format: transcript.FormatClaudeCode, conversations: 1,
			roles: map[abi.Role]int{"user": 4, "assistant": 12, "tool": 16}, calls: 16, usage: 12, notes: 1,
			skipped: map[string]int{"file-history-snapshot": 3, "progress": 44, "system": 1},
		},
		"mini-swe-agent/django__django-11099/django__django-11099.traj.json":       mini(21, 21),
		"mini-swe-agent/django__django-15957/django__django-15957.traj.json":       mini(49, 49),
		"mini-swe-agent/psf__requests-2317/psf__requests-2317.traj.json":           mini(33, 32),
		"mini-swe-agent/sphinx-doc__sphinx-9258/sphinx-doc__sphinx-9258.traj.json": mini(108, 98),
		"mini-swe-agent/sympy__sympy-17139/sympy__sympy-17139.traj.json":           mini(42, 41),
		"mini-swe-agent/sympy__sympy-20916/sympy__sympy-20916.traj.json":           mini(51, 50),
		"tau-bench/gpt-4o-airline-tasks-0-24.json": {
			format: transcript.FormatTauBench, conversations: 50,
			roles: map[abi.Role]int{"system": 50, "user": 439, "assistant": 702, "tool": 313},
			calls: 313, notes: 20, // calls that use an id again
		},
		"bfcl-memory/memory_customer.json": {
			format: transcript.FormatBFCLMemory, conversations: 10, roles: map[abi.Role]int{"user": 109},
		},
		"bfcl-memory/memory_notetaker.json": {
			format: transcript.FormatBFCLMemory, conversations: 5, roles: map[abi.Role]int{"user": 24},
		},
		"qmsum/academic-val.jsonl": {
			format: transcript.FormatQMSum, conversations: 9, roles: map[abi.Role]int{"user": 6673},
		},
		"qmsum/committee-val.jsonl": {
			format: transcript.FormatQMSum, conversations: 6, roles: map[abi.Role]int{"user": 1376},
		},
	}
}

func TestRealRecordings(t *testing.T) {
	t.Parallel()
	dir := sharedTranscripts(t)
	want := expected()
	for _, path := range recordings(t, dir) {
		if strings.HasPrefix(path, compactions) {
			continue // see TestRealCompactions
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			file, err := transcript.Open(filepath.Join(dir, path), transcript.Options{})
			if filepath.Base(path) == "report.json" {
				if !errors.Is(err, transcript.ErrUnknownFormat) || !strings.Contains(err.Error(), "Claude Code") {
					t.Errorf("error %v, want ErrUnknownFormat with a list", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			w, ok := want[path]
			if !ok {
				t.Fatal("no expectation for this recording")
			}
			compare(t, file, w)
		})
	}
}

func compare(t *testing.T, file *transcript.File, want recorded) {
	t.Helper()
	got := recorded{format: file.Format, conversations: len(file.Conversations), roles: map[abi.Role]int{}}
	ids := map[string]bool{}
	for i := range file.Conversations {
		c := &file.Conversations[i]
		if err := c.Validate(); err != nil {
			t.Errorf("conversation %s: %v", c.ID, err)
		}
		if ids[c.ID] {
			t.Errorf("conversation id %s stands twice", c.ID)
		}
		ids[c.ID] = true
		got.notes += len(c.Notes)
		for _, e := range c.Entries {
			got.roles[e.Message.Role]++
			got.calls += len(e.Message.ToolCalls)
			if e.Synthetic {
				got.synthetic++
			}
			if e.Usage != nil {
				got.usage++
			}
			if e.Line < 1 {
				t.Errorf("message %s has line %d", e.Message.ID, e.Line)
			}
		}
	}
	if got.format != want.format || got.conversations != want.conversations || got.calls != want.calls ||
		got.synthetic != want.synthetic || got.notes != want.notes || got.usage != want.usage || !maps.Equal(got.roles, want.roles) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !maps.Equal(file.Skipped, want.skipped) {
		t.Errorf("skipped %v, want %v", file.Skipped, want.skipped)
	}
}

// The text of every message of the pi session must arrive, in order.
func TestPiRecordingKeepsEveryText(t *testing.T) {
	t.Parallel()
	path := filepath.Join(sharedTranscripts(t), "pi-mono", "large-session.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := transcript.Open(path, transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	byLine := map[int]*transcript.Entry{}
	entries := file.Conversations[0].Entries
	for i := range entries {
		if !entries[i].Synthetic {
			byLine[entries[i].Line] = &entries[i]
		}
	}
	read := 0
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var l struct {
			Type    string `json:"type"`
			Message struct {
				Content []struct {
					Type string `json:"type"`
					Text string `json:"text"`
				} `json:"content"`
			} `json:"message"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Type != "message" {
			continue
		}
		var want strings.Builder
		for _, b := range l.Message.Content {
			if b.Type == "text" {
				want.WriteString(b.Text)
			}
		}
		e := byLine[i+1]
		if e == nil {
			t.Errorf("line %d is missing", i+1)
			continue
		}
		read++
		if e.Message.Text() != want.String() {
			t.Errorf("line %d: text differs", i+1)
		}
	}
	if read != 914 || len(byLine) != 914 {
		t.Errorf("%d messages compared, %d read, want 914", read, len(byLine))
	}
}
