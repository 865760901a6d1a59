package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
)

// story is a log that a test makes up.
type story struct {
	log   []abi.Message
	calls int
}

func (s *story) say(role abi.Role, text string) *story {
	s.log = append(s.log, abi.Message{ID: fmt.Sprintf("id%d", len(s.log)+1), Role: role, Content: []abi.ContentBlock{abi.Text(text)}})
	return s
}

func (s *story) user(text string) *story  { return s.say(abi.RoleUser, text) }
func (s *story) agent(text string) *story { return s.say(abi.RoleAssistant, text) }

// call is a call of the agent and its result.
func (s *story) call(tool string, args any, result string) *story {
	s.calls++
	id := fmt.Sprintf("call%d", s.calls)
	s.say(abi.RoleAssistant, "")
	s.log[len(s.log)-1].Content = nil
	s.log[len(s.log)-1].ToolCalls = []abi.ToolCall{{ID: id, Name: tool, Arguments: args}}
	s.say(abi.RoleTool, result)
	s.log[len(s.log)-1].ToolCallID = id
	return s
}

// failed is a call whose result is an error.
func (s *story) failed(tool string, args any, result string) *story {
	s.call(tool, args, result)
	s.log[len(s.log)-1].Metadata = map[string]any{abi.MetadataIsError: true}
	return s
}

// bash runs a command.
func (s *story) bash(command, result string) *story {
	return s.call("Bash", map[string]any{"command": command}, result)
}

func (s *story) edit(path string) *story {
	return s.call("Edit", map[string]any{"file_path": path, "old_string": "a", "new_string": "b"}, "The file "+path+" has been updated.")
}

func (s *story) read(path string) *story {
	return s.call("Read", map[string]any{"file_path": path}, "1→package a")
}

func (s *story) state() abi.Ledger {
	l := ledger.New()
	l.Add(s.log...)
	return l.State()
}

func (s *story) render(budget int) string {
	state := s.state()
	return ledger.Render(&state, budget)
}

// part is a section of a rendering, without its heading.
func part(text, title string) string {
	_, rest, ok := strings.Cut(text, "\n## "+title+"\n")
	if !ok {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// has fails unless a text holds all of these.
func has(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("lacks %q:\n%s", w, text)
		}
	}
}

// lacks fails if a text holds one of these.
func lacks(t *testing.T, text string, unwanted ...string) {
	t.Helper()
	for _, w := range unwanted {
		if strings.Contains(text, w) {
			t.Errorf("holds %q:\n%s", w, text)
		}
	}
}

// firstAsked is the first request that is more than a command of the agent's program.
func firstAsked(list []abi.LedgerRequest) abi.LedgerRequest {
	for _, r := range list {
		if !strings.HasPrefix(r.Text, "/") || strings.Contains(r.Text, " ") {
			return r
		}
	}
	return list[0]
}
