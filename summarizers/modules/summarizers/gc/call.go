package gc

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// does is what a call does to what can be read.
type does string

const (
	doesRead  does = "read"
	doesEdit  does = "edit"
	doesShell does = "shell"
	doesOther does = "other"
)

// Tools of agents, in lower case.
const (
	fileTools   = " read read_file view view_file cat open_file notebookread "
	readTools   = " grep glob find ls list list_directory list_dir search_file_content grep_search codebase_search file_search search_files list_files webfetch web_fetch fetch websearch web_search google_web_search "
	editTools   = " edit edit_file multiedit multi_edit notebookedit notebook_edit str_replace replace replace_in_file search_replace update_file write write_file write_to_file create_file apply_patch patch apply_diff "
	editorTools = " str_replace_editor str_replace_based_edit_tool text_editor developer__text_editor file_editor "
	shellTools  = " bash shell shell_command exec_command local_shell container.exec run_shell_command execute_bash developer__shell execute_command run_terminal_cmd run_command terminal exec run "
)

func in(names, name string) bool { return strings.Contains(names, " "+strings.ToLower(name)+" ") }

// doing finds out what a call does, by the name of its tool, else by the kind that the tool declares.
func doing(c *mortise.ToolCall, args map[string]any) does {
	switch {
	case in(editorTools, c.Name):
		if first(args, "command") == "view" {
			return doesRead
		}
		return doesEdit
	case in(fileTools, c.Name), in(readTools, c.Name):
		return doesRead
	case in(editTools, c.Name):
		return doesEdit
	case in(shellTools, c.Name):
		return doesShell
	}
	switch c.Kind {
	case mortise.ToolRead, mortise.ToolSearch:
		return doesRead
	case mortise.ToolEdit:
		return doesEdit
	case mortise.ToolExecute:
		return doesShell
	default:
		return doesOther
	}
}

// isFileTool reports a tool that reads one file.
func isFileTool(c *mortise.ToolCall, args map[string]any) bool {
	return in(fileTools, c.Name) || in(editorTools, c.Name) && first(args, "command") == "view" || !in(readTools, c.Name) && c.Kind == mortise.ToolRead
}

// edited lists the files that a call changes.
func edited(c *mortise.ToolCall, args map[string]any) []string {
	if f := first(args, "file_path", "path", "filePath", "absolute_path", "target_file", "notebook_path", "filename", "file"); f != "" {
		return []string{f}
	}
	text, _ := c.Arguments.(string)
	if text == "" {
		text = first(args, "input", "patch", "patchText", "diff")
	}
	return patched(text)
}

const patchStart = "*** Begin Patch"

// patched lists the files of a patch.
func patched(text string) []string {
	var out []string
	for l := range strings.SplitSeq(text, "\n") {
		for _, head := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ b/"} {
			if f, ok := strings.CutPrefix(l, head); ok && strings.TrimSpace(f) != "" {
				out = append(out, strings.TrimSpace(f))
			}
		}
	}
	return out
}

// argumentsOf are the fields of a call.
func argumentsOf(v any) map[string]any {
	args, _ := v.(map[string]any)
	return args
}

// first is the first of these arguments that is a text.
func first(args map[string]any, keys ...string) string {
	for _, k := range keys {
		if s, ok := args[k].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// fields are the arguments but for some, in one order.
func fields(args map[string]any, but ...string) string {
	var out strings.Builder
	for _, k := range slices.Sorted(maps.Keys(args)) {
		if v := field(args[k]); v != "" && !slices.Contains(but, k) {
			out.WriteString(k + "=" + v + " ")
		}
	}
	return out.String()
}

// field is a value as a text, empty for one that is as good as left out.
func field(v any) string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return strconv.Quote(v)
		}
	case bool:
		if v {
			return "true"
		}
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case map[string]any:
		return "{" + fields(v) + "}"
	case []any:
		list := make([]string, len(v))
		for i, e := range v {
			list[i] = field(e)
		}
		return "[" + strings.Join(list, " ") + "]"
	}
	return ""
}

// commandOf is the shell command of a call.
func commandOf(args map[string]any) string {
	if s := first(args, "command", "cmd", "script"); s != "" {
		return strings.TrimSpace(s)
	}
	list, _ := args["command"].([]any)
	var words []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			words = append(words, s)
		}
	}
	if len(words) == 3 && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c") {
		return strings.TrimSpace(words[2])
	}
	return strings.Join(words, " ")
}

// Programs that only read, and what makes one of them write.
const (
	readers    = " cat head tail less nl wc ls tree find grep egrep fgrep rg ag fd stat file du jq sed sort uniq cut diff pwd echo true which cd "
	gitReaders = " status diff log show blame ls-files grep rev-parse branch "
)

// readsOnly reports a command of which each part only reads. What is not known writes.
func readsOnly(cmd string) bool {
	if cmd == "" || strings.ContainsAny(cmd, "`") || strings.Contains(cmd, "$(") || strings.Contains(cmd, "<<") {
		return false
	}
	cmd = strings.NewReplacer("2>/dev/null", "", "2>&1", "", ">/dev/null", "").Replace(cmd)
	if strings.Contains(cmd, ">") {
		return false
	}
	for _, part := range strings.FieldsFunc(cmd, func(r rune) bool { return r == '|' || r == ';' || r == '&' || r == '\n' }) {
		w := strings.Fields(part)
		switch {
		case len(w) == 0:
		case w[0] == "git":
			if len(w) < 2 || !in(gitReaders, w[1]) || w[1] == "branch" && len(w) > 2 {
				return false
			}
		case !in(readers, w[0]):
			return false
		case w[0] == "sed" && !slices.Contains(w, "-n"), w[0] == "sed" && strings.Contains(part, "-i"),
			w[0] == "find" && (strings.Contains(part, "-delete") || strings.Contains(part, "-exec")), w[0] == "sort" && slices.Contains(w, "-o"):
			return false
		}
	}
	return true
}

// changesFolder reports a command after which other commands may run in another folder.
func changesFolder(cmd string) bool {
	for _, w := range strings.FieldsFunc(cmd, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()", r) }) {
		if w == "cd" || w == "pushd" || w == "popd" {
			return true
		}
	}
	return false
}
