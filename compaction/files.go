package compaction

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// maxFiles bounds the lists of files; what is beyond it was touched first.
const maxFiles = 500

type fileSet map[string]bool

func (s fileSet) add(names ...string) {
	for _, n := range names {
		if len(s) < maxFiles {
			s[n] = true
		}
	}
}

func (s fileSet) sorted() []string {
	if len(s) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(s))
}

// fileOperations collects the files that tool calls name, by what the tool
// does, the newest first. A tool is known by its exact name, or by the kind that
// it declares. A call whose result is an error touched no file.
func fileOperations(messages []abi.Message, read, modified fileSet) {
	failed := make(map[string]bool)
	for i := range slices.Backward(messages) {
		if m := &messages[i]; m.Role == abi.RoleTool && refused(m.Text()) {
			failed[m.ToolCallID] = true
		}
		for _, c := range slices.Backward(messages[i].ToolCalls) {
			path := pathArgument(c.Arguments)
			if path == "" || failed[c.ID] {
				continue
			}
			switch operation(c) {
			case abi.ToolEdit:
				modified.add(path)
			case abi.ToolRead:
				read.add(path)
			default: // names a path for another reason
			}
		}
	}
}

// refused reports the result of a file operation that did nothing. The status of a
// result is not in its message, so that its words have to do.
func refused(text string) bool {
	const head = 80
	text = strings.ToLower(strings.TrimSpace(text[:min(len(text), head)]))
	for _, start := range []string{
		"<tool_use_error>", "the user doesn't want to proceed", "[no result was recorded]", "error:", "error ", "could not find", "file not found",
		"no such file", "permission denied", "failed", "string to replace not found",
	} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

func operation(c abi.ToolCall) abi.ToolKind {
	if c.Kind != "" && c.Kind != abi.ToolOther {
		return c.Kind
	}
	switch c.Name {
	case "read", "Read", "read_file", "view", "cat", "open_file":
		return abi.ToolRead
	case "write", "Write", "edit", "Edit", "MultiEdit", "NotebookEdit", "write_file", "edit_file", "create_file", "apply_patch", "str_replace":
		return abi.ToolEdit
	}
	return abi.ToolOther
}

// pathArgument returns the path that a call names, if it names one.
func pathArgument(arguments any) string {
	if s, ok := arguments.(string); ok {
		var decoded map[string]any
		if json.Unmarshal([]byte(s), &decoded) != nil {
			return ""
		}
		arguments = decoded
	}
	m, ok := arguments.(map[string]any)
	if !ok {
		return ""
	}
	for _, key := range []string{"path", "file_path", "filePath", "filename", "notebook_path"} {
		if s, ok := m[key].(string); ok && s != "" && len(s) < 1024 {
			return s
		}
	}
	return ""
}
