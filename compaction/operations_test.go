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
