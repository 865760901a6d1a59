package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/dynamic"
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
	all []tool
}

// Tools makes the tools of a thread.
func (m *Manager) Tools(cfg ToolsConfig) (*Tools, error) {
	if cfg.Thread == "" {
		return nil, errors.New("background: ToolsConfig.Thread is missing")
	}
	return &Tools{m: m, cfg: cfg, all: tools()}, nil
}

// tool is one of them, with what answers its calls: text, or data.
type tool struct {
	abi.Tool

	answer func(s *Tools, ctx context.Context, args arguments) (any, error)
}

func newTool(name string, kind abi.ToolKind, description, parameters string, answer func(*Tools, context.Context, arguments) (any, error)) tool {
	schema, _ := dynamic.Of(json.RawMessage(parameters)) // it is one of those below
	return tool{abi.Tool{Name: name, Kind: kind, Description: description, Parameters: schema}, answer}
}

func tools() []tool {
	return []tool{
		newTool(ToolCancelTask, abi.ToolExecute,
			"Cancel a background task that you started, by name or task id, or yourself, with all that comes from it.",
			`{"type": "object", "required": ["target"], "properties": {
				"target": {"type": "object", "required": ["relation"], "properties": {
					"relation": {"type": "string", "enum": ["self", "child"]}, "name": {"type": "string"}}}}}`,
			(*Tools).cancelTask),
		newTool(ToolSendMessage, abi.ToolExecute,
			"Send a message to a running sub-agent of yours, to your parent, or to another agent's thread.",
			`{"type": "object", "required": ["to", "message"], "properties": {
				"to": {"type": "object", "required": ["relation"], "properties": {
					"relation": {"type": "string", "enum": ["parent", "child", "agent"]},
					"name": {"type": "string"}, "thread_id": {"type": "string"}, "agent_id": {"type": "string"}}},
				"message": {"type": "string"}}}`,
			(*Tools).sendMessage),
		newTool(ToolListTasks, abi.ToolRead, "List your background tasks and how they stand.",
			`{"type": "object", "required": [], "properties": {}}`, (*Tools).listTasks),
		newTool(ToolTaskResult, abi.ToolRead,
			"Read the status of a background task, and its result if it has ended. It can be read again. You are notified when a task ends; do not poll.",
			`{"type": "object", "required": ["task_id"], "properties": {"task_id": {"type": "string"}}}`, (*Tools).taskResult),
		newTool(ToolWaitTask, abi.ToolRead,
			"Wait until a background task has ended, or all of them without task_id. Use it only when you cannot continue without: you are notified when a task ends.",
			fmt.Sprintf(`{"type": "object", "required": [], "properties": {
				"task_id": {"type": "string"}, "timeout_seconds": {"type": "number", "minimum": 1, "maximum": %d}}}`, maxWait/time.Second),
			(*Tools).waitTask),
	}
}

// Tools lists the tools for the model.
func (*Tools) Tools() []abi.Tool { return listed() }

func listed() (list []abi.Tool) {
	for _, t := range tools() {
		list = append(list, t.Tool)
	}
	return list
}

// CallTool answers one call. What is wrong with the arguments, and what cannot be
// done, is reported to the model in the result; the error is for a name that is none
// of [Tools.Tools].
func (s *Tools) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	i := slices.IndexFunc(s.all, func(t tool) bool { return t.Name == call.Name })
	if i < 0 {
		return abi.ToolResult{}, fmt.Errorf("background: tool %.80q not found", call.Name)
	}
	result := abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolSuccess}
	var data any
	fields, ok := call.Arguments.(map[string]any)
	err := invalid("want an object")
	if ok || call.Arguments == nil {
		data, err = s.all[i].answer(s, ctx, fields)
	}
	if err != nil {
		result.Status, result.Message = abi.ToolError, err.Error()
		return result, nil //nolint:nilerr // it is reported to the model
	}
	if text, ok := data.(string); ok {
		result.Content = []abi.ContentBlock{abi.Text(text)}
	} else {
		result.Data = data
	}
	return result, nil
}

// arguments of a call, as a model wrote them.
type arguments map[string]any

// invalid reports to the model what is wrong with them.
func invalid(format string, args ...any) error {
	return fmt.Errorf("Invalid arguments: "+format, args...)
}

// text returns a field that is text, or nothing.
func (a arguments) text(key string) string {
	s, _ := a[key].(string)
	return s
}

// related returns a field that is an object with a relation. One to a child has its name.
func (a arguments) related(key string) (o arguments, relation string, err error) {
	o, ok := a[key].(map[string]any)
	relation = o.text("relation")
	switch {
	case !ok:
		err = invalid("missing '%s'", key)
	case relation == "":
		err = invalid("missing '%s.relation'", key)
	case relation == "child" && o.text("name") == "":
		err = invalid("child requires 'name'")
	}
	return o, relation, err
}
