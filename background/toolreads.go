package background

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/inbox"
)

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
