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
