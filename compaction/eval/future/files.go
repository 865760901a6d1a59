package future

import (
	"path"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// touched are the files that the calls of a conversation touched. A call whose
// result is an error touched none.
type touched struct {
	read, modified, created paths
	// shell are those that commands wrote; they are no error where a text names
	// them, and not missed where it does not.
	shell paths
	// named are all that any call names.
	named string
}

// paths is a set of files.
type paths map[string]bool

// has finds a file by its name: the whole one, or the end of it.
func (p paths) has(file string) bool {
	file = path.Clean(file)
	if p[file] {
		return true
	}
	for known := range p {
		if strings.HasSuffix(known, "/"+file) || strings.HasSuffix(file, "/"+known) {
			return true
		}
	}
	return false
}

func touchedBy(messages []abi.Message) *touched {
	t := &touched{read: paths{}, modified: paths{}, created: paths{}, shell: paths{}}
	results := make(map[string]*abi.Message)
	for i := range messages {
		if messages[i].Role == abi.RoleTool {
			results[messages[i].ToolCallID] = &messages[i]
		}
	}
	var named strings.Builder
	for i := range messages {
		for _, c := range messages[i].ToolCalls {
			result := results[c.ID]
			if result == nil || failed(result) || refused(result.Text()) {
				continue
			}
			named.WriteString(values(c.Arguments))
			t.call(c, result.Text())
		}
	}
	t.named = named.String()
	return t
}

// refused reports the result of a file operation that did nothing, where it is
// not marked.
func refused(text string) bool {
	text = strings.ToLower(strings.TrimSpace(headOf(text, 80)))
	for _, start := range []string{"<tool_use_error>", "the user doesn't want to proceed", "[no result was recorded]", "error:", "file not found"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

func (t *touched) call(c abi.ToolCall, result string) {
	if command := shellCommand(c.Name, c.Arguments); command != "" {
		for _, f := range shellWrites(command) {
			t.shell[path.Clean(f)] = true
		}
		t.patch(command)
		return
	}
	name := strings.ToLower(c.Name)
	if name == "apply_patch" {
		t.patch(values(c.Arguments))
		return
	}
	file := argument(c.Arguments, "file_path", "path", "filePath", "filename", "notebook_path", "absolute_path", "target_file")
	if file == "" {
		return
	}
	file = path.Clean(file)
	if strings.HasPrefix(name, "str_replace") && strings.HasSuffix(name, "tool") || name == "str_replace_editor" {
		name = argument(c.Arguments, "command")
	}
	switch name {
	case "read", "read_file", "view", "cat", "open_file", "notebookread":
		t.read[file] = true
	case "write", "write_file", "create_file", "create":
		known := t.read.has(file)
		if low := strings.ToLower(headOf(result, 200)); strings.Contains(low, "created") || !known && !t.modified[file] && !strings.Contains(low, "updated") {
			t.created[file] = true
		}
		t.modified[file] = true
	case "edit", "multiedit", "notebookedit", "edit_file", "replace", "str_replace", "insert", "patch":
		t.modified[file] = true
	}
}

// patch reads the files of a patch in the form that Codex applies.
func (t *touched) patch(text string) {
	if !strings.Contains(text, "*** Begin Patch") {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		for _, prefix := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			file, ok := strings.CutPrefix(line, prefix)
			if !ok {
				continue
			}
			file = path.Clean(strings.TrimSpace(file))
			t.modified[file] = true
			if prefix == "*** Add File: " {
				t.created[file] = true
			}
		}
	}
}

// wrote reports whether a call changed a file, as far as the log shows.
func (t *touched) wrote(file string) bool {
	return t.modified.has(file) || t.shell.has(file)
}

// saw reports whether a call read or named a file.
func (t *touched) saw(file string) bool {
	return t.read.has(file) || t.wrote(file) || strings.Contains(t.named, file)
}
