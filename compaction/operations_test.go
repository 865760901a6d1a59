package compaction_test

import (
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

func TestFileOperations(t *testing.T) {
	t.Parallel()
	call := func(tool, path string) abi.Message {
		return abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{Name: tool, Arguments: map[string]any{"path": path}}}}
	}
	read, modified := compaction.FileOperations([]abi.Message{
		call("read", "b.go"), call("read", "a.go"), call("edit", "b.go"), call("unknown", "c.go"),
	})
	if !slices.Equal(read, []string{"a.go"}) || !slices.Equal(modified, []string{"b.go"}) {
		t.Errorf("read %q, modified %q", read, modified)
	}
}

// TestFailedOperations has calls that touched no file, as their results say.
func TestFailedOperations(t *testing.T) {
	t.Parallel()
	var list []abi.Message
	for path, result := range map[string]string{
		"a.go": "<tool_use_error>File has not been read yet.</tool_use_error>", "b.go": "The user doesn't want to proceed with this tool use.",
		"c.go": "Error: old text not found", "errors.go": "errors.go is written",
	} {
		list = append(list,
			abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: path, Name: "edit", Arguments: map[string]any{"path": path}}}},
			abi.Message{Role: abi.RoleTool, ToolCallID: path, Content: []abi.ContentBlock{abi.Text(result)}})
	}
	if read, modified := compaction.FileOperations(list); len(read) > 0 || !slices.Equal(modified, []string{"errors.go"}) {
		t.Errorf("read %q, modified %q", read, modified)
	}
}
