package gc

import (
	"path"
	"slices"
	"strconv"
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// use is a call with its result.
type use struct {
	call *mortise.ToolCall
	// asked is the message with the call, id the one with the result.
	asked, id   string
	askedAt, at int
	thought     bool
	failed      bool
	refused     bool // by the user
	text        string
	// blocks counts what the result has besides text.
	blocks int
	does   does
	// file is what was read, if it is one file, by its whole name; files are those that were changed.
	file  string
	files []string
	// key is equal for calls that read the same, span for those that read the same part of a file. whole
	// means that no part was named.
	key, span string
	whole     bool
}

// history are the calls of messages in the order of their results.
type history struct {
	uses []use
	// folder counts the changes of the folder in which commands run.
	folder int
}

// read reads messages. Calls without a result are left out.
func read(list []mortise.Message) *history {
	h := &history{}
	type place struct {
		call *mortise.ToolCall
		at   int
	}
	calls := map[string]place{}
	for i := range list {
		m := &list[i]
		for n := range m.ToolCalls {
			calls[m.ToolCalls[n].ID] = place{&m.ToolCalls[n], i}
		}
		p, ok := calls[m.ToolCallID]
		if m.Role != mortise.RoleTool || !ok {
			continue
		}
		delete(calls, m.ToolCallID)
		asks := &list[p.at]
		u := use{call: p.call, asked: asks.ID, askedAt: p.at, id: m.ID, at: i, text: m.Text(), refused: refused(m)}
		u.failed = u.refused || failed(m)
		u.thought = slices.ContainsFunc(asks.Content, func(b mortise.ContentBlock) bool { return b.Type == mortise.BlockThinking && b.Signature != "" })
		for n := range m.Content {
			if m.Content[n].Type != mortise.BlockText {
				u.blocks++
			}
		}
		h.describe(&u)
		h.uses = append(h.uses, u)
	}
	return h
}

// refused reports the result of a call that the user did not allow, or stopped.
func refused(m *mortise.Message) bool {
	text := strings.ToLower(strings.TrimSpace(m.Text()))
	return strings.HasPrefix(text, "the user doesn't want") || strings.HasPrefix(text, "[request interrupted")
}

// failed reports the result of a call that did nothing.
func failed(m *mortise.Message) bool {
	if is, ok := m.Metadata[mortise.MetadataIsError].(bool); ok && is {
		return true
	}
	const head = 100
	text := m.Text()
	text = strings.ToLower(strings.TrimSpace(text[:min(len(text), head)]))
	for _, start := range []string{
		"<tool_use_error>", "error:", "error ", "failed", "could not", "file not found", "no such file", "permission denied",
		"string to replace not found", "[no result was recorded]", "invalid ",
	} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	// Some agents return this in place of a file that they have read before.
	return strings.Contains(text, "unchanged since")
}

// describe finds out what a call did.
func (h *history) describe(u *use) {
	args := argumentsOf(u.call.Arguments)
	u.does = doing(u.call, args)
	base := first(args, "cwd", "workdir", "working_directory", "dir_path")
	switch u.does {
	case doesShell:
		h.command(u, args, base)
	case doesEdit:
		for _, f := range edited(u.call, args) {
			u.files = append(u.files, h.whole(base, f))
		}
	case doesRead:
		name := first(args, "file_path", "path", "filePath", "absolute_path", "target_file", "notebook_path", "filename", "file")
		where := h.whole(base, name)
		u.span = fields(args, "file_path", "path", "filePath", "absolute_path", "target_file", "notebook_path", "filename", "file", "description", "explanation")
		u.whole = u.span == ""
		u.key = strings.ToLower(u.call.Name) + "\n" + where
		if name != "" && isFileTool(u.call, args) {
			u.file, u.key = where, "file\n"+where
		}
	default:
	}
}

// command reads a shell command. One that changes the folder makes relative names mean something else.
func (h *history) command(u *use, args map[string]any, base string) {
	cmd := commandOf(args)
	if strings.Contains(cmd, patchStart) {
		u.does = doesEdit
		for _, f := range patched(cmd) {
			u.files = append(u.files, h.whole(base, f))
		}
		return
	}
	if readsOnly(cmd) {
		u.does, u.whole = doesRead, true
		u.key = "command\n" + h.whole(base, "") + "\n" + cmd
		if strings.HasPrefix(cmd, "cd /") {
			u.key = "command\n" + cmd
		}
	}
	if changesFolder(cmd) {
		h.folder++
	}
}

// whole is a name that means the same file wherever it is used.
func (h *history) whole(base, name string) string {
	if base != "" && !path.IsAbs(name) {
		name = path.Join(base, name)
	}
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return strconv.Itoa(h.folder) + ":" + path.Clean(name)
}

// covers reports whether a later read has all that an earlier one has, or the newer state of it.
func (u *use) covers(earlier *use) bool {
	switch {
	case u.key == "" || u.key != earlier.key:
		return false
	case u.span == earlier.span:
		return true
	}
	return u.whole && hasLines(u.text, earlier.text)
}

// hasLines reports whether a text has each line of another one.
func hasLines(text, of string) bool {
	lines := map[string]bool{}
	for l := range strings.SplitSeq(text, "\n") {
		lines[strings.TrimSpace(l)] = true
	}
	for l := range strings.SplitSeq(of, "\n") {
		if l = strings.TrimSpace(l); l != "" && !lines[l] {
			return false
		}
	}
	return true
}
