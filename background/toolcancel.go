package background

import (
	"context"
	"errors"
	"fmt"
)

// Receipts of the tools.
const (
	accepted = "accepted"
	failed   = "failed"
)

// errNoCurrentTask is shown to the model.
var errNoCurrentTask = errors.New("current_task_unavailable")

// scope is whose tool it is: that of a task, or else of a run.
type scope struct{ task, run string }

// scope returns for whom a call is made.
func (s *Tools) scope(ctx context.Context) (scope, error) {
	l := LineageOf(ctx)
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if t := s.m.tasks[l.TaskID]; t != nil && !t.info.Status.Terminal() {
		return scope{task: l.TaskID}, nil
	}
	if l.RunID == "" {
		return scope{}, errNoCurrentTask
	}
	return scope{run: l.RunID}, nil
}

// child finds a live direct child of the scope by name or id.
func (s *Tools) child(of scope, called string) string {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	for id, t := range s.m.tasks {
		p := t.spec.Parent
		direct := of.task != "" && p.TaskID == of.task || of.task == "" && p.TaskID == "" && p.RunID == of.run
		named := id == called || t.spec.Name == called
		if direct && named && !t.info.Status.Terminal() && t.spec.Class != Housekeeping {
			return id
		}
	}
	return ""
}

func (s *Tools) cancelTask(ctx context.Context, args arguments) (any, error) {
	target, err := args.object("target")
	if err != nil {
		return nil, err
	}
	of, err := s.scope(ctx)
	if err != nil {
		return nil, err
	}
	var root string
	var n int
	switch relation := target.text("relation"); relation {
	case "self":
		root, n = s.cancelSelf(of)
	case "child":
		called := target.text("name")
		if called == "" {
			return nil, errors.New("Invalid arguments: child requires 'name'") //nolint:staticcheck // it is what the model reads
		}
		root = called
		if id := s.child(of, called); id != "" {
			root, n = id, s.m.CancelTree(id)
		}
	default:
		return nil, fmt.Errorf("Invalid arguments: unknown relation '%.80s'", relation) //nolint:staticcheck // it is what the model reads
	}
	receipt := map[string]any{"status": accepted, "root_task_id": root, "cancelled_count": int64(n)}
	if n == 0 {
		receipt["status"], receipt["error"] = failed, "task_not_found"
	}
	return receipt, nil
}

// cancelSelf cancels the task with all that comes from it, or what the run
// started and the run itself.
func (s *Tools) cancelSelf(of scope) (root string, n int) {
	if of.task != "" {
		return of.task, s.m.CancelTree(of.task)
	}
	n = s.m.CancelRun(of.run)
	if s.cfg.Stop != nil {
		s.cfg.Stop(of.run)
		n++
	}
	return of.run, n
}
