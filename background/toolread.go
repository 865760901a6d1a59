package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// visible returns the tasks of the thread that a model may know of, oldest first.
func (s *Tools) visible() []Info {
	var out []Info
	for _, i := range s.m.List(s.cfg.Thread) {
		if i.Class != Housekeeping {
			out = append(out, i)
		}
	}
	return out
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

func (s *Tools) taskResult(_ context.Context, args arguments) (any, error) {
	id := args.text("task_id")
	info, ok := s.m.Get(id)
	if !ok || info.Thread != s.cfg.Thread || info.Class == Housekeeping {
		return nil, s.unknown(id)
	}
	return standing(info), nil
}

func (s *Tools) unknown(id string) error {
	return fmt.Errorf("task not found: %.80s (either it never existed, or it ended and was forgotten after %d newer tasks)", id, s.m.cfg.Keep)
}

func (s *Tools) waitTask(ctx context.Context, args arguments) (any, error) {
	wait := defaultWait
	if seconds, ok := number(args["timeout_seconds"]); ok {
		wait = min(max(time.Duration(seconds*float64(time.Second)), time.Second), maxWait)
	}
	var ids []string
	if id := args.text("task_id"); id != "" {
		if info, ok := s.m.Get(id); !ok || info.Thread != s.cfg.Thread || info.Class == Housekeeping {
			return nil, s.unknown(id)
		}
		ids = []string{id}
	} else if ids = s.pending(LineageOf(ctx).TaskID); len(ids) == 0 {
		return "no background task is running", nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var texts []string
	for _, id := range ids {
		info, err := s.m.WaitTask(waitCtx, id)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, ErrNotFound):
			continue // it ended and was forgotten
		case err != nil:
			texts = append(texts, standing(info)+fmt.Sprintf("\n\nnot ended within %s; you will be told when it has", wait))
		default:
			texts = append(texts, standing(info))
		}
	}
	return strings.Join(texts, "\n\n"), nil
}

// pending returns the tasks that a caller may wait for: no services, and not the
// task of the caller.
func (s *Tools) pending(except string) []string {
	var ids []string
	for _, i := range s.visible() {
		if !i.Status.Terminal() && i.Class != Service && i.ID != except {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// standing renders the state of a task.
func standing(i Info) string {
	head := fmt.Sprintf("task_id: %s\nstate: %s", i.ID, i.Status)
	switch i.Status {
	case Completed:
		if text := ResultText(i.Result); text != "" {
			return head + "\n\n" + text
		}
	case Failed:
		return head + "\n\nerror: " + i.Error
	case Queued, Running, Cancelled:
	}
	return head
}

// ResultText returns a result as text: as it is if it is text, else as JSON.
func ResultText(result any) string {
	switch x := result.(type) {
	case nil:
		return ""
	case string:
		return x
	}
	data, err := json.Marshal(result)
	if err != nil {
		return fmt.Sprintf("[a result that cannot be written as JSON: %T]", result)
	}
	return string(data)
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
