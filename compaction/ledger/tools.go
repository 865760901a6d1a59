package ledger

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// kind is what a tool does to the ledger.
type kind string

const (
	kindRead    kind = "read"
	kindEdit    kind = "edit"
	kindWrite   kind = "write"
	kindPatch   kind = "patch"
	kindEditor  kind = "editor" // an editor whose command argument decides
	kindShell   kind = "shell"
	kindSearch  kind = "search"
	kindLookup  kind = "lookup"
	kindTodo    kind = "todo"
	kindNewTask kind = "new task"
	kindTask    kind = "task"
	kindPlan    kind = "plan"
	kindOther   kind = "other"
)

// toolNames are the tools of agents by kind, in lower case.
func toolNames() map[kind]string {
	return map[kind]string{
		kindRead:    "read read_file view view_file cat open_file open read_many_files view_image notebookread",
		kindEdit:    "edit edit_file multiedit multi_edit notebookedit notebook_edit str_replace replace replace_in_file search_replace update_file",
		kindWrite:   "write write_file write_to_file create_file",
		kindPatch:   "apply_patch patch apply_diff",
		kindEditor:  "str_replace_editor str_replace_based_edit_tool developer__text_editor text_editor file_editor",
		kindShell:   "bash shell shell_command exec_command local_shell container.exec run_shell_command execute_bash developer__shell execute_command run_terminal_cmd run_command terminal run_in_terminal exec run bash_command",
		kindSearch:  "grep glob find ls list list_directory list_dir search_file_content grep_search codebase_search file_search search_files list_files find_path",
		kindLookup:  "webfetch web_fetch websearch web_search google_web_search fetch task agent delegate subagent browser dispatch_agent",
		kindTodo:    "todowrite update_plan write_todos todo__write task_tracker todo_write manage_todo_list todo",
		kindNewTask: "taskcreate task_create",
		kindTask:    "taskupdate task_update",
		kindPlan:    "exitplanmode exit_plan_mode",
	}
}

// flagged are shells whose failures are marked as errors, or end with an exit code. Of others
// a result without a mark proves nothing.
const flagged = " bash shell shell_command exec_command local_shell container.exec run_shell_command execute_bash "

func newKinds() map[string]kind {
	out := map[string]kind{}
	for k, names := range toolNames() {
		for n := range strings.FieldsSeq(names) {
			out[n] = k
		}
	}
	return out
}

// kindOf returns what a call does. A known name counts more than the kind that the tool declares.
func (l *Ledger) kindOf(c *abi.ToolCall, args map[string]any) kind {
	k, ok := l.kinds[strings.ToLower(c.Name)]
	switch {
	case ok:
	case strings.HasPrefix(c.Name, "mcp__"):
		switch k = l.kinds[strings.ToLower(c.Name[strings.LastIndex(c.Name, "__")+2:])]; k {
		case kindRead, kindEdit, kindWrite:
		default:
			return kindLookup
		}
	case c.Kind == abi.ToolRead:
		k = kindRead
	case c.Kind == abi.ToolEdit:
		k = kindEdit
	case c.Kind == abi.ToolExecute && commandOf(args) != "":
		k = kindShell
	case c.Kind == abi.ToolSearch:
		k = kindSearch
	default:
		k = kindOther
	}
	switch k {
	case kindEditor:
		return editorKind(args)
	case kindRead, kindEdit, kindWrite:
		if len(pathsOf(args)) == 0 {
			return kindOther
		}
	case kindShell:
		if commandOf(args) == "" {
			return kindOther
		}
	default:
	}
	return k
}

func editorKind(args map[string]any) kind {
	if len(pathsOf(args)) == 0 {
		return kindOther
	}
	switch str(args, "command") {
	case "view":
		return kindRead
	case "create", "write":
		return kindWrite
	case "str_replace", "insert", "undo_edit", "edit", "edit_file", "diff":
		return kindEdit
	}
	return kindOther
}

// str is the first of these arguments that is a string.
func str(args map[string]any, keys ...string) string {
	for _, k := range keys {
		if s, ok := args[k].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// pathsOf returns the files that arguments name.
func pathsOf(args map[string]any) []string {
	if p := str(args, "file_path", "path", "filePath", "absolute_path", "target_file", "notebook_path", "filename", "file"); p != "" {
		if len(p) > maxPath || strings.ContainsAny(p, "\n\x00") {
			return nil
		}
		return []string{p}
	}
	list, _ := args["paths"].([]any)
	var out []string
	for _, v := range list {
		if p, ok := v.(string); ok && p != "" && len(p) <= maxPath && len(out) < maxPaths && !strings.ContainsAny(p, "\n\x00*") {
			out = append(out, p)
		}
	}
	return out
}

// commandOf returns the shell command of a call.
func commandOf(args map[string]any) string {
	if s := str(args, "command", "cmd", "script"); s != "" {
		return s
	}
	list, ok := args["command"].([]any)
	if !ok {
		if action, ok := args["action"].(map[string]any); ok {
			return commandOf(action)
		}
		return ""
	}
	words := make([]string, 0, min(len(list), 64))
	for _, v := range list {
		if s, ok := v.(string); ok && len(words) < 64 {
			words = append(words, s)
		}
	}
	if len(words) >= 3 && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c") {
		return words[2]
	}
	return strings.Join(words, " ")
}
