package background

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// Codes of a receipt that failed.
const (
	codeNotFound    = "recipient_not_found"
	codeDenied      = "permission_denied"
	codeUnavailable = "recipient_unavailable"
)

func (s *Tools) sendMessage(ctx context.Context, args arguments) (any, error) {
	to, err := args.object("to")
	if err != nil {
		return nil, err
	}
	content, ok := args["message"].(string)
	if !ok {
		return nil, errors.New("Invalid arguments: missing 'message'") //nolint:staticcheck // it is what the model reads
	}
	if len(content) > s.m.cfg.MaxPayload {
		return nil, fmt.Errorf("Invalid arguments: 'message' has %d bytes, at most %d are allowed", len(content), s.m.cfg.MaxPayload) //nolint:staticcheck // it is what the model reads
	}
	message := Message{From: s.cfg.Agent, Content: content}
	switch relation := to.text("relation"); relation {
	case "child":
		name := to.text("name")
		if name == "" {
			return nil, errors.New("Invalid arguments: child requires 'name'") //nolint:staticcheck // it is what the model reads
		}
		return s.toChild(ctx, name, content), nil
	case "parent":
		message.Thread = s.cfg.ParentThread
		return s.forward(ctx, message), nil
	case "agent":
		message.Thread, message.Agent = to.text("thread_id"), to.text("agent_id")
		if message.Thread == "" {
			return nil, errors.New("Invalid arguments: agent requires 'thread_id'") //nolint:staticcheck // it is what the model reads
		}
		return s.forward(ctx, message), nil
	default:
		return nil, fmt.Errorf("Invalid arguments: unknown relation '%.80s'", relation) //nolint:staticcheck // it is what the model reads
	}
}

// toChild sends to a running task of the thread, by id and else by name.
func (s *Tools) toChild(ctx context.Context, called, content string) map[string]any {
	s.m.mu.Lock()
	id := called
	if s.m.tasks[called] == nil {
		id = s.m.named(s.cfg.Thread, called)
	}
	s.m.mu.Unlock()
	err := s.m.SendMessage(ctx, id, s.cfg.Thread, s.cfg.Agent, content)
	switch {
	case err == nil:
		return receipt(uuid.NewString(), "")
	case errors.Is(err, ErrNotOwner):
		return receipt("", codeDenied)
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrTerminated):
		return receipt("", codeNotFound)
	default: // no inbox, closed, full
		return receipt("", codeUnavailable)
	}
}

// forward sends to another thread.
func (s *Tools) forward(ctx context.Context, message Message) map[string]any {
	if message.Thread == "" || s.m.cfg.Forward == nil {
		return receipt("", codeUnavailable)
	}
	id, err := s.m.cfg.Forward(ctx, message)
	if err != nil {
		return receipt("", "transport_failed: "+s.m.cutError(err.Error()))
	}
	return receipt(id, "")
}

func receipt(id, code string) map[string]any {
	if code != "" {
		return map[string]any{"message_id": id, "status": failed, "error": code}
	}
	return map[string]any{"message_id": id, "status": accepted}
}
