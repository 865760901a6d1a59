package hook

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/abi"
)

// Kind is what a tool does, in one vocabulary for all agents.
type Kind string

// Kinds of tools. The arguments of a kind have the same names for every agent: command; path; path, content; path,
// old, new; text, files; pattern, path; url; query; prompt; server, tool, input.
const (
	KindShell  Kind = "shell"
	KindRead   Kind = "read"
	KindWrite  Kind = "write"
	KindEdit   Kind = "edit"
	KindPatch  Kind = "patch"
	KindFind   Kind = "find"
	KindList   Kind = "list"
	KindGrep   Kind = "grep"
	KindFetch  Kind = "fetch"
	KindSearch Kind = "search"
	KindAgent  Kind = "agent"
	KindMCP    Kind = "mcp"
	KindAsk    Kind = "ask"
	KindTodo   Kind = "todo"
	KindOther  Kind = "other"
)

// abiKind is the kind as plugins know it.
func (k Kind) abiKind() abi.ToolKind {
	switch k {
	case KindShell:
		return abi.ToolExecute
	case KindRead:
		return abi.ToolRead
	case KindWrite, KindEdit, KindPatch:
		return abi.ToolEdit
	case KindFind, KindList, KindGrep, KindFetch, KindSearch:
		return abi.ToolSearch
	default:
		return abi.ToolOther
	}
}

// Call is a tool call in the vocabulary.
type Call struct {
	Kind Kind
	// Name is the agent's name of the tool.
	Name string
	// Server and Tool belong to a tool of an MCP server.
	Server, Tool string
	// Args are the arguments under the names of the vocabulary. Arguments without such a name keep their own.
	Args any
	// Files are those that a patch touches.
	Files []string

	native any
	names  map[string]string // vocabulary to native
	cwd    string
	mark   string // see Dialect.PathMark
}

// patchStart begins a patch, whatever the tool is called.
const patchStart = "*** Begin Patch"

// Translate describes a call of a tool in the vocabulary. The kind follows the tool's name, or the shape of what an unknown tool gets.
func (d *Dialect) Translate(tool string, input any, cwd string) Call {
	c := Call{Kind: KindOther, Name: tool, native: input, cwd: cwd, mark: d.PathMark}
	if t, ok := d.Tools[tool]; ok {
		c.Kind, c.names = t.Kind, t.Args
	} else if c.Server, c.Tool, _ = d.mcpName(tool); c.Server != "" {
		return c.of(c.Server, c.Tool)
	}
	args, ok := input.(map[string]any)
	if !ok {
		c.Args = input
		c.shape(input)
		return c
	}
	for _, name := range slices.Sorted(maps.Keys(c.names)) {
		c.shape(args[c.names[name]])
	}
	c.Args = c.view(args)
	return c
}

// of is the call as one of a tool of an MCP server.
func (c Call) of(server, tool string) Call {
	c.Kind, c.Server, c.Tool, c.names = KindMCP, server, tool, nil
	c.Args = map[string]any{"server": server, "tool": tool, "input": c.native}
	return c
}

// shape reads the files of a patch, and takes a call of an unknown tool that is one for a patch.
func (c *Call) shape(v any) {
	text, ok := v.(string)
	if !ok {
		return
	}
	switch {
	case c.Kind == KindShell: // which executes the other lines of what only looks like a patch
		if strings.Contains(text, patchStart) {
			c.Files = patchFiles(text, c.cwd)
		}
	case c.Kind != KindPatch && c.Kind != KindOther: // as a file with such a content
	case strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), patchStart):
		for _, native := range c.names {
			c.names = map[string]string{"text": native}
		}
		c.Kind, c.Files = KindPatch, patchFiles(text, c.cwd)
	}
}

// respelled is an argument that is one of the vocabulary in another case, or nothing. Agents in Go, as Crush, take it for that one, and plugins
// would not.
func (c *Call) respelled() string {
	args, _ := c.native.(map[string]any)
	for _, native := range c.names {
		for key := range args {
			if key != native && strings.EqualFold(key, native) {
				return key
			}
		}
	}
	return ""
}

// view renames the arguments, makes paths absolute and names the files of a patch.
func (c *Call) view(args map[string]any) map[string]any {
	out := make(map[string]any, len(args)+1)
	maps.Copy(out, args)
	for _, native := range c.names {
		delete(out, native)
	}
	for name, native := range c.names {
		if v, ok := args[native]; ok {
			out[name] = c.shown(name, v)
		}
	}
	if c.Files != nil {
		files := make([]any, len(c.Files))
		for i, f := range c.Files {
			files[i] = f
		}
		out["files"] = files
	}
	return out
}

// shown is an argument as plugins see it.
func (c *Call) shown(name string, v any) any {
	if s, ok := v.(string); ok && name == "path" {
		if c.mark != "" {
			s = strings.Map(plainSpace, strings.TrimPrefix(s, c.mark))
		}
		return absolute(s, c.cwd)
	}
	return v
}

// plainSpace is a space for the ones of Unicode.
func plainSpace(r rune) rune {
	if unicode.Is(unicode.Zs, r) {
		return ' '
	}
	return r
}

// absolute is a path without other spellings, from the root where that is known.
func absolute(path, cwd string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		if home, err := os.UserHomeDir(); err == nil {
			path = home + rest
		}
	}
	switch {
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	case path == "" || cwd == "" || strings.HasPrefix(path, "~"):
		return path
	}
	return filepath.Join(cwd, path)
}

// Native returns the agent's own arguments for a call whose arguments a plugin rewrote. Arguments that the vocabulary
// does not name and that the plugin left out stay.
func (c *Call) Native(rewritten any) any {
	args, ok := rewritten.(map[string]any)
	if c.Kind == KindMCP && ok {
		if _, ok := args["input"]; ok {
			return args["input"]
		}
	}
	before, object := c.native.(map[string]any)
	if !ok || !object || c.Kind == KindMCP {
		return rewritten
	}
	out := maps.Clone(before)
	for name, native := range c.names {
		if _, ok := args[name]; !ok {
			delete(out, native)
		}
	}
	for name, v := range args {
		native, known := c.names[name]
		switch {
		case name == "files" && c.Files != nil: // derived from the text
		case !known:
			out[name] = v
		case v == c.shown(name, before[native]) && name == "path": // not rewritten, so it stays relative
		default:
			out[native] = v
		}
	}
	return out
}

// mcpName splits the name of a tool of an MCP server.
func (d *Dialect) mcpName(tool string) (server, name string, ok bool) {
	rest, found := strings.CutPrefix(tool, d.MCP.Prefix)
	if d.MCP.Separator == "" || !found {
		return "", "", false
	}
	server, name, ok = strings.Cut(rest, d.MCP.Separator)
	if !ok || server == "" || name == "" {
		return "", "", false
	}
	return server, name, true
}

// patchFiles are the files that a patch names, in its order.
func patchFiles(patch, cwd string) []string {
	files := []string{}
	for line := range strings.Lines(patch) {
		for _, mark := range []string{"*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"} {
			if name, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), mark); ok {
				files = append(files, absolute(strings.TrimSpace(name), cwd))
			}
		}
	}
	return files
}
