package background

import (
	"context"
	"errors"

	"github.com/google/uuid"
)

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
