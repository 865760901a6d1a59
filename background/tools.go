package background

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Names of the tools.
const (
	ToolCancelTask  = "cancel_task"
	ToolSendMessage = "send_message"
	ToolListTasks   = "list_tasks"
	ToolTaskResult  = "task_result"
	ToolWaitTask    = "wait_task"
)

// Bounds of wait_task, and how many tasks list_tasks names.
const (
	defaultWait = time.Minute
	maxWait     = 10 * time.Minute
	maxListed   = 100
)

// ToolsConfig is for whom tools work.
type ToolsConfig struct {
	// Thread whose tasks the tools see. Required.
	Thread string
	// Agent is the name under which messages are sent. ParentThread gets those to the
	// parent; there is none when it is empty.
	Agent, ParentThread string
	// Stop asks a run of the thread to end, when it cancels itself. Nil means that
	// only the run's tasks are cancelled.
	Stop func(runID string)
}

// Tools are the tools with which a model manages the tasks of its thread. It is
// safe for concurrent use.
type Tools struct {
	m   *Manager
	cfg ToolsConfig
}

// Tools makes the tools of a thread.
func (m *Manager) Tools(cfg ToolsConfig) (*Tools, error) {
	if cfg.Thread == "" {
		return nil, fmt.Errorf("background: ToolsConfig.Thread is missing")
	}
	return &Tools{m: m, cfg: cfg}, nil
}

// Tools lists the tools for the model.
func (*Tools) Tools() []abi.Tool { return tools() }

func tools() []abi.Tool {
	text := map[string]any{"type": "string"}
	relation := func(names ...any) map[string]any { return map[string]any{"type": "string", "enum": names} }
	object := func(required []any, properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties, "required": required}
	}
	return []abi.Tool{
		{
			Name: ToolCancelTask, Kind: abi.ToolExecute,
			Description: "Cancel a background task that you started, by name or task id, or yourself, with all that comes from it.",
			Parameters: object([]any{"target"}, map[string]any{
				"target": object([]any{"relation"}, map[string]any{"relation": relation("self", "child"), "name": text}),
			}),
		},
		{
			Name: ToolSendMessage, Kind: abi.ToolExecute,
			Description: "Send a message to a running sub-agent of yours, to your parent, or to another agent's thread.",
			Parameters: object([]any{"to", "message"}, map[string]any{
				"to": object([]any{"relation"}, map[string]any{
					"relation": relation("parent", "child", "agent"), "name": text, "thread_id": text, "agent_id": text,
				}),
				"message": text,
			}),
		},
		{
			Name: ToolListTasks, Kind: abi.ToolRead,
			Description: "List your background tasks and how they stand.",
			Parameters:  object([]any{}, map[string]any{}),
		},
		{
			Name: ToolTaskResult, Kind: abi.ToolRead,
			Description: "Read how a background task stands, and its result if it has ended. It can be read again. You are told when a task ends; do not poll.",
			Parameters:  object([]any{"task_id"}, map[string]any{"task_id": text}),
		},
		{
			Name: ToolWaitTask, Kind: abi.ToolRead,
			Description: "Wait until a background task has ended, or all of them without task_id. Use it only when you cannot go on: you are told when a task ends.",
			Parameters: object([]any{}, map[string]any{
				"task_id": text, "timeout_seconds": map[string]any{"type": "number", "minimum": int64(1), "maximum": int64(maxWait / time.Second)},
			}),
		},
	}
}

// CallTool answers one call. What is wrong with the arguments, and what cannot be
// done, is reported to the model in the result; the error is for a name that is none
// of [Tools.Tools].
func (s *Tools) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	answer, ok := map[string]func(context.Context, arguments) (any, error){
		ToolCancelTask:  s.cancelTask,
		ToolSendMessage: s.sendMessage,
		ToolListTasks:   s.listTasks,
		ToolTaskResult:  s.taskResult,
		ToolWaitTask:    s.waitTask,
	}[call.Name]
	if !ok {
		return abi.ToolResult{}, fmt.Errorf("background: tool %.80q not found", call.Name)
	}
	result := abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolSuccess}
	fields, ok := call.Arguments.(map[string]any)
	if !ok && call.Arguments != nil {
		result.Status, result.Message = abi.ToolError, "Invalid arguments: want an object"
		return result, nil
	}
	data, err := answer(ctx, fields)
	if err != nil {
		result.Status, result.Message = abi.ToolError, err.Error()
		return result, nil //nolint:nilerr // it is reported to the model
	}
	if text, ok := data.(string); ok {
		result.Content = []abi.ContentBlock{abi.Text(text)}
		return result, nil
	}
	result.Data = data
	return result, nil
}

// arguments of a call, as a model wrote them.
type arguments map[string]any

// text returns a field that is text, or nothing.
func (a arguments) text(key string) string {
	s, _ := a[key].(string)
	return s
}

// object returns a field that is an object.
func (a arguments) object(key string) (arguments, error) {
	o, ok := a[key].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("Invalid arguments: missing '%s'", key) //nolint:staticcheck // it is what the model reads
	}
	if s, _ := o["relation"].(string); s == "" {
		return nil, fmt.Errorf("Invalid arguments: missing '%s.relation'", key) //nolint:staticcheck // it is what the model reads
	}
	return o, nil
}
