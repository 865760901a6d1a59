package mortise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
)

// taskTool is the type of background tasks that execute a call of a tool.
const taskTool = "tool_call"

// maxArguments bounds the arguments in the description of a task, in bytes.
const maxArguments = 1024

// errDecides fails a call in the background whose tool wants a decision.
var errDecides = errors.New("the tool asks for a decision, and no person can give it in the background")

// inBackground executes calls of some tools as background tasks of a thread.
type inBackground struct {
	own    agent.Tools
	names  []string
	thread string
	tasks  *background.Manager
}

// Tools implements agent.Tools.
func (b inBackground) Tools() []abi.Tool {
	list := slices.Clone(b.own.Tools())
	for i := range list {
		if slices.Contains(b.names, list[i].Name) {
			list[i].Description += "\n\nThe call runs in the background: it returns a task id at once, and the result comes as a notification."
		}
	}
	return list
}

// CallTool implements agent.Tools. A task that a crash of the process ends is not begun again.
func (b inBackground) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	if !slices.Contains(b.names, call.Name) {
		return b.own.CallTool(ctx, call)
	}
	arguments, err := json.Marshal(call.Arguments)
	if err != nil {
		return abi.ToolResult{}, fmt.Errorf("arguments: %w", err)
	}
	id, err := b.tasks.Spawn(ctx, background.Spec{
		Thread: b.thread, Type: taskTool, Description: call.Name + " " + strings.ToValidUTF8(string(arguments[:min(len(arguments), maxArguments)]), ""),
		Body: func(ctx context.Context, _ *background.Task) (any, error) { return b.result(ctx, call) },
	})
	if err != nil {
		return abi.ToolResult{}, err
	}
	return abi.ToolResult{
		Status: abi.ToolSuccess, Data: map[string]any{"task_id": id},
		Message: "Started as background task " + id + ". Its result comes as a notification; do not wait for it.",
	}, nil
}

// result is what a call came to, as a text if it is one.
func (b inBackground) result(ctx context.Context, call abi.ToolCall) (any, error) {
	out, err := b.own.CallTool(ctx, call)
	if err != nil {
		return nil, err
	}
	m := abi.Message{Content: out.Content}
	text := m.Text()
	if text == "" {
		text = out.Message
	}
	switch {
	case out.Status == abi.ToolPending:
		return nil, errDecides
	case out.Status == abi.ToolError:
		return nil, errors.New(text)
	case text == "" && out.Data != nil:
		return out.Data, nil
	default:
		return text, nil
	}
}
