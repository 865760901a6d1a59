package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
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

// receipt is the answer to a call that asks for an effect.
func receipt(code string, fields map[string]any) map[string]any {
	fields["status"] = "accepted"
	if code != "" {
		fields["status"], fields["error"] = "failed", code
	}
	return fields
}

func (s *Tools) cancelTask(ctx context.Context, args arguments) (any, error) {
	target, relation, err := args.related("target")
	if err != nil {
		return nil, err
	}
	l := LineageOf(ctx)
	if i, ok := s.m.Get(l.TaskID); !ok || i.Status.Terminal() {
		if l.TaskID = ""; l.RunID == "" {
			return nil, errors.New("current_task_unavailable")
		}
	}
	var root string
	var n int
	switch relation {
	case "self":
		root, n = s.cancelSelf(l)
	case "child":
		root = target.text("name")
		if id := s.child(l, root); id != "" {
			root, n = id, s.m.CancelTree(id)
		}
	default:
		return nil, invalid("unknown relation '%.80s'", relation)
	}
	code := ""
	if n == 0 {
		code = "task_not_found"
	}
	return receipt(code, map[string]any{"root_task_id": root, "cancelled_count": int64(n)}), nil
}

// child finds a live direct child, by name or id, of a task, or of a run.
func (s *Tools) child(of Lineage, called string) (id string) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	for _, t := range s.m.find(func(i *Info) bool {
		direct := i.Parent.TaskID == of.TaskID && (of.TaskID != "" || i.Parent.RunID == of.RunID)
		return direct && (i.ID == called || i.Name == called) && !i.Status.Terminal() && i.Class != Housekeeping
	}) {
		id = t.info.ID
	}
	return id
}

// cancelSelf cancels the task with all that comes from it, or what the run
// started and the run itself.
func (s *Tools) cancelSelf(of Lineage) (root string, n int) {
	if of.TaskID != "" {
		return of.TaskID, s.m.CancelTree(of.TaskID)
	}
	n = s.m.CancelRun(of.RunID)
	if s.cfg.Stop != nil {
		s.cfg.Stop(of.RunID)
		n++
	}
	return of.RunID, n
}

func (s *Tools) sendMessage(ctx context.Context, args arguments) (any, error) {
	to, relation, err := args.related("to")
	if err != nil {
		return nil, err
	}
	content, ok := args["message"].(string)
	switch {
	case !ok:
		return nil, invalid("missing 'message'")
	case len(content) > s.m.cfg.MaxPayload:
		return nil, invalid("'message' has %d bytes, at most %d are allowed", len(content), s.m.cfg.MaxPayload)
	}
	var id, code string
	message := Message{From: s.cfg.Agent, Content: content}
	switch relation {
	case "child":
		id, code = s.toChild(ctx, to.text("name"), content)
	case "parent":
		message.Thread = s.cfg.ParentThread
		id, code = s.forward(ctx, message)
	case "agent":
		message.Thread, message.Agent = to.text("thread_id"), to.text("agent_id")
		if message.Thread == "" {
			return nil, invalid("agent requires 'thread_id'")
		}
		id, code = s.forward(ctx, message)
	default:
		return nil, invalid("unknown relation '%.80s'", relation)
	}
	return receipt(code, map[string]any{"message_id": id}), nil
}

// Codes of a message that was not accepted.
const (
	codeNotFound    = "recipient_not_found"
	codeDenied      = "permission_denied"
	codeUnavailable = "recipient_unavailable"
)

// toChild sends to a running task of the thread, by id and else by name.
func (s *Tools) toChild(ctx context.Context, called, content string) (id, code string) {
	s.m.mu.Lock()
	task := called
	if s.m.tasks[called] == nil {
		task = s.m.named(s.cfg.Thread, called)
	}
	s.m.mu.Unlock()
	err := s.m.SendMessage(ctx, task, s.cfg.Thread, s.cfg.Agent, content)
	switch {
	case err == nil:
		return uuid.NewString(), ""
	case errors.Is(err, ErrNotOwner):
		return "", codeDenied
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrTerminated):
		return "", codeNotFound
	default: // no inbox, closed, full
		return "", codeUnavailable
	}
}

// forward sends to another thread.
func (s *Tools) forward(ctx context.Context, message Message) (id, code string) {
	if message.Thread == "" || s.m.cfg.Forward == nil {
		return "", codeUnavailable
	}
	id, err := s.m.cfg.Forward(ctx, message)
	if err != nil {
		return "", "transport_failed: " + s.m.cutError(err.Error())
	}
	return id, ""
}

// visible returns the tasks of the thread that a model may know of, oldest first.
func (s *Tools) visible() []Info {
	return slices.DeleteFunc(s.m.List(s.cfg.Thread), func(i Info) bool { return i.Class == Housekeeping })
}

func (s *Tools) listTasks(context.Context, arguments) (any, error) {
	all := s.visible()
	left := max(0, len(all)-maxListed)
	list := make([]any, 0, len(all)-left)
	for _, i := range all[left:] {
		entry := map[string]any{
			"task_id": i.ID, "task_type": i.Type, "description": i.Description, "class": string(i.Class),
			"status": string(i.Status), "started_at": i.CreatedAt.UTC().Format(time.RFC3339),
		}
		if i.Name != "" {
			entry["name"] = i.Name
		}
		if i.Status.Terminal() {
			entry["seconds"] = i.EndedAt.Sub(i.CreatedAt).Seconds()
		}
		list = append(list, entry)
	}
	return map[string]any{"tasks": list, "older_tasks_not_listed": int64(left)}, nil
}

// task returns a task of the thread that a model may know of.
func (s *Tools) task(id string) (Info, error) {
	info, ok := s.m.Get(id)
	if !ok || info.Thread != s.cfg.Thread || info.Class == Housekeeping {
		return info, fmt.Errorf("task not found: %.80s (either it never existed, or it ended and was forgotten after %d newer tasks)", id, s.m.cfg.Keep)
	}
	return info, nil
}

func (s *Tools) taskResult(_ context.Context, args arguments) (any, error) {
	info, err := s.task(args.text("task_id"))
	return standing(info), err
}

func (s *Tools) waitTask(ctx context.Context, args arguments) (any, error) {
	wait := defaultWait
	if seconds, ok := number(args["timeout_seconds"]); ok {
		wait = min(max(time.Duration(seconds*float64(time.Second)), time.Second), maxWait)
	}
	var list []Info
	if id := args.text("task_id"); id != "" {
		info, err := s.task(id)
		if err != nil {
			return nil, err
		}
		list = []Info{info}
	} else if list = s.pending(LineageOf(ctx).TaskID); len(list) == 0 {
		return "no background task is running", nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var texts []string
	for _, i := range list {
		info, err := s.m.WaitTask(waitCtx, i.ID)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, ErrNotFound):
			continue // it ended and was forgotten
		case err != nil:
			texts = append(texts, standing(info)+fmt.Sprintf("\n\nnot ended within %s; you will be notified when it has", wait))
		default:
			texts = append(texts, standing(info))
		}
	}
	return strings.Join(texts, "\n\n"), nil
}

// pending returns the tasks that a caller may wait for: no services, and not the
// task of the caller.
func (s *Tools) pending(except string) []Info {
	return slices.DeleteFunc(s.visible(), func(i Info) bool { return i.Status.Terminal() || i.Class == Service || i.ID == except })
}

// standing renders the state of a task.
func standing(i Info) string {
	head := fmt.Sprintf("task_id: %s\nstate: %s", i.ID, i.Status)
	switch text := inbox.Text(i.Result); {
	case i.Status == Completed && text != "":
		return head + "\n\n" + text
	case i.Status == Failed:
		return head + "\n\nerror: " + i.Error
	}
	return head
}

func number(v any) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case float64:
		return x, true
	default:
		return 0, false
	}
}
