package ledger

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// status translates the state of a task.
func status(s string) string {
	switch strings.ToLower(s) {
	case "in_progress", "doing", "active":
		return abi.TaskDoing
	case "completed", "done", "complete", "cancelled", "canceled", "skipped":
		return abi.TaskDone
	case "pending", "todo", "open", "not_started":
		return abi.TaskOpen
	}
	return strings.ToLower(cut(s, 40))
}

// todoList reads a whole list.
func todoList(args map[string]any, n int) []abi.LedgerTask {
	var out []abi.LedgerTask
	for _, key := range []string{"todos", "plan", "task_list", "todoList", "items", "tasks"} {
		list, ok := args[key].([]any)
		for _, v := range list {
			m, isMap := v.(map[string]any)
			if text := str(m, "content", "step", "description", "title", "text", "subject"); isMap && text != "" && len(out) < maxTasks {
				out = append(out, abi.LedgerTask{Message: n, Text: clip(text, maxSentence), Status: status(str(m, "status", "state"))})
			}
		}
		if ok {
			return out
		}
	}
	for line := range strings.SplitSeq(str(args, "content", "todos"), "\n") {
		line = strings.TrimSpace(line)
		for mark, state := range map[string]string{"- [ ] ": abi.TaskOpen, "- [x] ": abi.TaskDone, "- [X] ": abi.TaskDone, "- [~] ": abi.TaskDoing} {
			if text, ok := strings.CutPrefix(line, mark); ok && len(out) < maxTasks {
				out = append(out, abi.LedgerTask{Message: n, Text: clip(text, maxSentence), Status: state})
			}
		}
	}
	return out
}
