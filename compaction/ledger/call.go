package ledger

import (
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// call reads a call of the agent. What it did is known when its result comes.
func (l *Ledger) call(n int, c *abi.ToolCall) {
	args := arguments(c.Arguments)
	k := l.kindOf(c, args)
	out := abi.LedgerCall{Message: n, ID: clip(c.ID, maxKey), Tool: clip(c.Name, 80)}
	home := l.describe(&out, k, args, c.Arguments)
	l.s.Bytes += l.readArguments(c.Arguments, n, home, 0)
	if k == kindTodo && len(out.Tasks) > 0 {
		l.s.Talk.Tasks = out.Tasks
		out.Tasks = nil
	}
	if k == kindPlan && out.Text != "" {
		l.s.Talk.Plan = &abi.LedgerText{Message: n, Text: clip(out.Text, maxText), Size: sizeOf(out.Text, maxText)}
	}
	l.s.Calls = appendBounded(l.s.Calls, out, maxCalls)
	if !isFinish(c.Name) {
		l.step(abi.LedgerStep{Message: n, By: abi.RoleTool, Text: stepText(&out)})
	}
}

// describe fills in what a call is about, and returns the file that its text belongs to.
func (l *Ledger) describe(out *abi.LedgerCall, k kind, args map[string]any, raw any) (home string) {
	switch k {
	case kindRead, kindEdit, kindWrite:
		out.Paths = clipAll(pathsOf(args))
		if k != kindRead {
			for _, key := range []string{"new_string", "newText", "new_str", "content", "file_text", "new_source", "old_string", "oldText", "old_str"} {
				out.Names = definedNames(str(args, key), out.Names)
			}
		}
		home = out.Paths[0]
	case kindPatch:
		text, _ := raw.(string)
		if text == "" {
			text = str(args, "input", "patch", "patchText", "diff", "command")
		}
		out.Text, out.Names = patchHeads(text), definedNames(text, nil)
	case kindShell:
		cmd := commandOf(args)
		if out.Text = shellText(cmd); strings.HasPrefix(out.Text, patchHead) {
			k = kindPatch
			out.Names = definedNames(cmd, nil)
		}
		if dir := str(args, "workdir", "cwd", "directory"); l.s.Folder == "" && strings.HasPrefix(dir, "/") && len(dir) < maxPath {
			l.s.Folder = strings.Clone(dir)
		}
	case kindTodo:
		out.Tasks = todoList(args, out.Message)
	case kindNewTask:
		out.Text = clip(str(args, "subject", "title", "description"), maxSentence)
	case kindTask:
		out.Text = clip(str(args, "taskId", "task_id", "id")+"\n"+status(str(args, "status")), maxKey)
	case kindPlan:
		out.Text = clip(str(args, "plan"), maxText*2)
	case kindSearch:
		out.Text = clip(str(args, "pattern", "query", "path"), maxLine)
	case kindLookup:
		out.Text = clip(firstLine(str(args, "query", "url", "description", "prompt", "id", "title", "name")), maxLine)
	default:
		out.Text = clip(firstLine(str(args, "skill", "name", "query", "question", "prompt", "path", "id")), maxLine)
	}
	out.Kind = string(k)
	if k == kindOther && len(args) > 0 {
		out.Owner = strings.Clone(ownerOf(args))
		out.Text = fields(args, maxStep)
	}
	return home
}

// arguments are the fields of a call. A text may hold them as JSON.
func arguments(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return v
	case string:
		if len(v) < 1<<20 && strings.HasPrefix(strings.TrimSpace(v), "{") {
			parsed, _ := parseJSON(v)
			out, _ := parsed.(map[string]any)
			return out
		}
	}
	return nil
}

const maxDepth = 16

// readArguments counts the names of arguments, and returns their size.
func (l *Ledger) readArguments(v any, n int, home string, depth int) int64 {
	var size int64
	switch v := v.(type) {
	case string:
		l.names.read(v, n, byCall, home)
		size = int64(len(v))
	case map[string]any:
		if depth < maxDepth {
			for _, k := range slices.Sorted(maps.Keys(v)) {
				size += l.readArguments(v[k], n, home, depth+1)
			}
		}
	case []any:
		for i := range v {
			if depth < maxDepth {
				size += l.readArguments(v[i], n, home, depth+1)
			}
		}
	}
	return size
}

func clipAll(list []string) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = strings.Clone(list[i])
	}
	return out
}

// patchHead begins the text of a call that applies a patch.
const patchHead = "*** Begin Patch"

// patchHeads are the lines of a patch that name files.
func patchHeads(text string) string {
	var b strings.Builder
	b.WriteString(patchHead + "\n")
	for _, c := range patchFiles(text) {
		switch {
		case c.gone:
			b.WriteString("*** Delete File: ")
		case c.verb == "created":
			b.WriteString("*** Add File: ")
		default:
			b.WriteString("*** Update File: ")
		}
		b.WriteString(c.path + "\n")
	}
	return b.String()
}

const maxShell = 4 << 10

// shellText is a command without the bodies of its here-documents, or the files of the patch that
// it applies.
func shellText(cmd string) string {
	short, body := withoutHeredocs(cmd)
	if strings.Contains(body, patchHead) && strings.Contains(short, "apply_patch") {
		return patchHeads(body)
	}
	if strings.HasPrefix(short, "apply_patch") && strings.Contains(short, patchHead) {
		return patchHeads(cmd)
	}
	return clip(strings.TrimRight(short, "\n"), maxShell)
}

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

// isFinish reports tools with which an agent ends its turn.
func isFinish(name string) bool {
	switch strings.ToLower(name) {
	case "finish", "submit", "attempt_completion", "complete_task", "done", "respond", "final_answer", "stop":
		return true
	}
	return false
}

// stepText is a call in one line.
func stepText(c *abi.LedgerCall) string {
	text := c.Tool
	switch {
	case kind(c.Kind) == kindPatch:
		text += " " + patched(c.Text)
	case kind(c.Kind) == kindTask:
		text += " #" + strings.Replace(c.Text, "\n", " ", 1)
	case len(c.Paths) > 0:
		text += " " + c.Paths[0]
	case c.Text != "":
		text += " " + firstLine(c.Text)
	}
	most := maxLine
	if kind(c.Kind) == kindOther {
		most = maxStep
	}
	return clip(strings.TrimSpace(text), most)
}

// patched lists the files of a patch.
func patched(text string) string {
	var names []string
	for i, f := range patchFiles(text) {
		if i == 6 {
			names = append(names, "…")
			break
		}
		names = append(names, f.path)
	}
	return strings.Join(names, " ")
}

// fieldList writes arguments as "key=value key=value".
type fieldList struct {
	b    strings.Builder
	most int
}

func fields(args map[string]any, n int) string {
	f := fieldList{most: n}
	f.walk("", args, 0)
	return f.b.String()
}

func (f *fieldList) walk(key string, v any, depth int) {
	if depth > maxDepth/2 || f.b.Len() >= f.most {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			f.walk(cut(name, 60), v[name], depth+1)
		}
	case []any:
		if text, ok := plainList(v); ok {
			f.write(key, text)
			return
		}
		for _, e := range v {
			f.walk(key, e, depth+1)
		}
	default:
		f.write(key, scalar(v))
	}
}

func (f *fieldList) write(key, v string) {
	v = strings.Join(strings.Fields(cut(v, maxValue)), " ")
	if v == "" || f.b.Len()+len(key)+len(v)+2 > f.most {
		return
	}
	if f.b.Len() > 0 {
		f.b.WriteByte(' ')
	}
	f.b.WriteString(key + "=" + v)
}

// step appends to the latest events.
func (l *Ledger) step(s abi.LedgerStep) { l.s.Steps = appendBounded(l.s.Steps, s, maxSteps) }
