package future_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval"
)

// talk builds a conversation.
type talk struct{ messages []abi.Message }

func (t *talk) say(role abi.Role, text string) *talk {
	t.messages = append(t.messages, abi.Message{ID: fmt.Sprintf("m%d", len(t.messages)), Role: role, Content: []abi.ContentBlock{abi.Text(text)}})
	return t
}

func (t *talk) user(text string) *talk  { return t.say(abi.RoleUser, text) }
func (t *talk) agent(text string) *talk { return t.say(abi.RoleAssistant, text) }

// call adds a call and its result.
func (t *talk) call(name string, args map[string]any, result string) *talk {
	id := fmt.Sprintf("c%d", len(t.messages))
	t.messages = append(t.messages,
		abi.Message{ID: "m" + id, Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: id, Name: name, Arguments: args}}},
		abi.Message{ID: "r" + id, Role: abi.RoleTool, ToolCallID: id, Content: []abi.ContentBlock{abi.Text(result)}})
	return t
}

// fails adds a call whose result is marked as an error.
func (t *talk) fails(name string, args map[string]any, result string) *talk {
	t.call(name, args, result)
	t.messages[len(t.messages)-1].Metadata = map[string]any{abi.MetadataIsError: true}
	return t
}

func (t *talk) bash(command, result string) *talk {
	return t.call("Bash", map[string]any{"command": command}, result)
}

func (t *talk) edit(path string) *talk {
	return t.call("Edit", map[string]any{"file_path": path, "old_string": "a", "new_string": "b"}, "The file has been updated.")
}

func (t *talk) read(path string) *talk {
	return t.call("Read", map[string]any{"file_path": path}, "1 package main")
}

// summarize is a summarizer that is a function.
type summarize func(r *abi.SummarizeRequest) (string, error)

func (f summarize) Summarize(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	text, err := f(r)
	if err != nil {
		return nil, err
	}
	return &abi.Summary{Text: text}, nil
}

func policy(name string, f summarize) eval.Contender {
	return eval.Contender{Name: name, Kind: eval.KindPolicy, Summarizer: f, BytesPerToken: 1}
}
