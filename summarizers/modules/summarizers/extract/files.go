package extract

import (
	"path"
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// What was done to a file.
const (
	fileRead     = 1
	fileModified = 2
)

// maxRoots bounds the working directories that are remembered.
const maxRoots = 64

// file notes that a file was read or modified.
func (c *collector) file(name string, verb uint8) {
	if name == "" || len(name) > 300 || strings.ContainsAny(name, "\n\x00") {
		return
	}
	if !strings.Contains(name, "://") {
		name = path.Clean(name)
	}
	c.files[name] |= verb
	sec := secRead
	if verb == fileModified {
		sec = secModified
	}
	c.unit(byAssistant, sec, name, 1.2*c.recency(), weightArgument)
}

// fileVerb is what a call does to the file that its arguments name.
func fileVerb(t *mortise.ToolCall) uint8 {
	switch t.Kind {
	case mortise.ToolEdit:
		return fileModified
	case mortise.ToolRead, mortise.ToolSearch:
		return fileRead
	case mortise.ToolExecute, mortise.ToolOther:
	}
	for i, w := range nameWords(t.Name) {
		switch w {
		case "get", "read", "list", "search", "find", "view", "show", "check", "fetch", "grep":
			if i == 0 {
				return fileRead
			}
		case "edit", "editor", "write", "create", "patch", "replace", "insert", "append", "delete", "remove", "move", "rename",
			"multiedit", "writefile", "editfile", "createfile":
			if viewing(t) {
				return fileRead
			}
			return fileModified
		}
	}
	return fileRead
}

// viewing reports the call of an editor that only shows the file.
func viewing(t *mortise.ToolCall) bool {
	args, _ := t.Arguments.(map[string]any)
	command, _ := args["command"].(string)
	return command == "view" || command == "read"
}

// nameWords splits the name of a tool: "str_replace", "NotebookEdit".
func nameWords(s string) []string {
	var spaced []byte
	for i := range len(s) {
		c := s[i]
		upper := c >= 'A' && c <= 'Z'
		if upper && i > 0 && s[i-1] >= 'a' && s[i-1] <= 'z' || c == '_' || c == '-' || c == '.' || c == '/' || c == ':' {
			spaced = append(spaced, ' ')
		}
		if upper || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			spaced = append(spaced, c)
		}
	}
	return strings.Fields(lower(string(spaced)))
}

// notRun is how the result of a call begins that did not run.
func notRun() []string {
	return []string{"<tool_use_error>", "the user doesn't want to proceed", "[no result was recorded]"}
}

// refusals is how an editor answers when it has changed nothing.
func refusals() []string {
	return []string{"error:", "error ", "could not find", "file not found", "no such file", "permission denied", "failed", "string to replace not found"}
}

// outcomes notes the calls that did nothing, by what their results say.
func (c *collector) outcomes(list []mortise.Message) {
	for i := range list {
		m := &list[i]
		if m.Role != mortise.RoleTool || m.ToolCallID == "" {
			continue
		}
		text := m.Text()
		text = lower(strings.TrimSpace(text[:runeCut(text, 80)]))
		switch {
		case startsWith(text, notRun()):
			c.failures[m.ToolCallID] = callNotRun
		case startsWith(text, refusals()):
			c.failures[m.ToolCallID] = callRefused
		}
	}
}

// How a call failed.
const (
	callNotRun  = 1
	callRefused = 2
)

func startsWith(s string, list []string) bool {
	for _, p := range list {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// settleFiles leaves each file in one place: among those modified, or else among
// those read. A relative and an absolute name can be of one file.
func (c *collector) settleFiles() {
	same := c.sameFiles()
	name := func(f string) string {
		if rel, ok := same[f]; ok {
			return rel
		}
		return f
	}
	modified := map[string]bool{}
	for f, verb := range c.files {
		if verb&fileModified == 0 {
			continue
		}
		modified[name(f)] = true
		for rel := range c.relatives(f) { // a name that may be of this file is not listed as only read
			modified[rel] = true
		}
	}
	listed := map[section]map[string]bool{secRead: {}, secModified: {}}
	for i := range c.units {
		u := &c.units[i]
		if u.sec != secRead && u.sec != secModified {
			continue
		}
		n := name(u.text)
		if u.sec == secRead && modified[n] || listed[u.sec][n] {
			u.concepts, u.derived = nil, true
		}
		listed[u.sec][n] = true
	}
}

// sameFiles maps absolute names to the relative names of the same files. They
// are the same when the rest of the absolute name is a working directory, or
// when no other absolute name ends in the relative one.
func (c *collector) sameFiles() map[string]string {
	ends := map[string]int{}
	for f := range c.files {
		for rel := range c.relatives(f) {
			ends[rel]++
		}
	}
	same := map[string]string{}
	for f := range c.files {
		for rel := range c.relatives(f) {
			root := strings.TrimSuffix(f[:len(f)-len(rel)], "/")
			if c.roots[root] || ends[rel] == 1 && (len(c.roots) == 0 || strings.Contains(rel, "/")) {
				same[f] = rel
				break
			}
		}
	}
	return same
}

// relatives yields the ends of an absolute name that are names of files too, the
// longest first.
func (c *collector) relatives(f string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if f == "" || f[0] != '/' {
			return
		}
		for rest := f[1:]; ; {
			_, after, ok := strings.Cut(rest, "/")
			if !ok {
				return
			}
			if _, known := c.files[after]; known && !yield(after) {
				return
			}
			rest = after
		}
	}
}
