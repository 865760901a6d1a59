package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// CallTool returns the recorded result of a call, found by its id: whatever arguments a
// plugin gave the call, the result is that of the recorded ones. A call that
// the model has not made so far, or made nowhere in the recording, gets an error
// result. The error is that of ctx and nothing else.
func (r *Replay) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	if err := ctx.Err(); err != nil {
		return abi.ToolResult{}, fmt.Errorf("replay: tool %s: %w", call.Name, err)
	}
	r.mu.Lock()
	at, known := r.results[call.ID]
	known = known && at < r.cursor
	r.mu.Unlock()
	if !known {
		return abi.ToolResult{
			CallID: call.ID, ToolName: call.Name, Status: abi.ToolError,
			Message: fmt.Sprintf("no recorded result for call %q of tool %s", call.ID, call.Name),
		}, nil
	}
	e := &r.entries[at]
	return abi.ToolResult{CallID: call.ID, ToolName: e.ToolName, Status: e.Status, Content: e.Message.Content}, nil
}

// Tools returns the tools that were called anywhere in the recording, in the
// order of their first call. Recordings do not describe them, so descriptions
// and schemas are empty.
func (r *Replay) Tools() []abi.Tool {
	return slices.Clone(r.tools)
}

func recordedTools(entries []transcript.Entry) []abi.Tool {
	var tools []abi.Tool
	seen := map[string]bool{}
	for i := range entries {
		for _, call := range entries[i].Message.ToolCalls {
			if !seen[call.Name] {
				seen[call.Name] = true
				tools = append(tools, abi.Tool{Name: call.Name, Kind: toolKind(call.Name)})
			}
		}
	}
	return tools
}

// toolKind knows the tools of the agents whose recordings are read, by their
// exact names. A name that merely looks like one of them says nothing.
func toolKind(name string) abi.ToolKind {
	switch name {
	case "bash", "Bash", "shell":
		return abi.ToolExecute
	case "read", "Read", "cat":
		return abi.ToolRead
	case "edit", "Edit", "write", "Write":
		return abi.ToolEdit
	case "grep", "Grep", "find", "Glob":
		return abi.ToolSearch
	default:
		return abi.ToolOther
	}
}
