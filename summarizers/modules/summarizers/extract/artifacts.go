package extract

import (
	"path"
	"slices"
	"strconv"
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

const (
	maxArguments = 40
	maxDepth     = 4
	commandMax   = 160
	valueMax     = 80
)

// call reads a tool call: its files, its command, its scalar arguments.
func (c *collector) call(t *mortise.ToolCall) {
	if s, ok := t.Arguments.(string); ok {
		c.sentence(byAssistant, s[:runeCut(s, 600)], 9, false)
		return
	}
	n := 0
	c.argument(t, "", t.Arguments, 0, &n)
}

func (c *collector) argument(t *mortise.ToolCall, key string, v any, depth int, n *int) {
	if *n >= maxArguments || depth > maxDepth {
		return
	}
	*n++
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			c.argument(t, k, v[k], depth+1, n)
		}
	case []any:
		for _, e := range v {
			c.argument(t, key, e, depth+1, n)
		}
	case string:
		c.text(t, key, v)
	case int64:
		c.value(key, strconv.FormatInt(v, 10))
	case float64:
		c.value(key, strconv.FormatFloat(v, 'g', -1, 64))
	}
}

func (c *collector) text(t *mortise.ToolCall, key, v string) {
	switch lower(key) {
	case "path", "file_path", "filepath", "filename", "file", "notebook_path", "target_file":
		c.callFile(t, v)
	case "command", "cmd", "script":
		if fileVerb(t) == fileModified || viewing(t) { // the command of an editor
			c.value(key, v)
			return
		}
		c.command(v, c.failures[t.ID] != callNotRun)
	case "cwd", "workdir", "working_directory":
		if strings.HasPrefix(v, "/") && len(v) <= 300 && len(c.roots) < maxRoots {
			c.roots[path.Clean(v)] = true
		}
		c.value(key, v)
	case "query", "pattern", "regex", "url", "prompt", "description", "question", "summary", "reason", "thought", "message":
		c.unit(byAssistant, secPassages, tidy(t.Name+" "+lower(key)+": "+v[:runeCut(v, 240)], false), 0.8*c.recency(), weightArgument)
	default:
		if len(v) <= valueMax && !strings.Contains(v, "\n") {
			c.value(key, v)
			return
		}
		head, _ := capped(v, 1200)
		for line := range strings.SplitSeq(head, "\n") {
			if line = tidy(line, false); len(line) > 8 {
				clauses(line, func(s string) { c.unit(byAssistant, secPassages, s, 0.3*c.recency(), weightTool) })
			}
		}
	}
}

// callFile notes the file that a call names. An edit that failed did not touch it.
func (c *collector) callFile(t *mortise.ToolCall, name string) {
	if verb := fileVerb(t); verb == fileRead || c.failures[t.ID] == 0 {
		c.file(name, verb)
	}
}

// value keeps "key: value" of an argument, when the value tells things apart.
func (c *collector) value(key, v string) {
	if v == "" || key == "" || len(v) < 2 || windowKey(lower(key)) {
		return
	}
	c.unit(byAssistant, secIdents, label(key)+": "+tidy(v, false), 1.1*c.recency(), weightArgument)
}

// command keeps the first line of a shell command, and the files of one that ran.
func (c *collector) command(cmd string, ran bool) {
	cmd = strings.TrimSpace(cmd)
	line, _, _ := strings.Cut(cmd, "\n")
	if line == "" {
		return
	}
	c.unit(byAssistant, secCommands, tidy(line[:runeCut(line, commandMax)], false), 0.9*c.recency(), weightArgument)
	if ran {
		c.shellFiles(cmd, 0)
	}
}

// pathLike reports words that name a file: a short extension, no globs.
func pathLike(w string) bool {
	if len(w) < 4 || len(w) > 200 || strings.ContainsAny(w, " \t\n*?$={}<>|\\:()[],\"'!^&`;") || w[0] == '-' {
		return false
	}
	dot := strings.LastIndexByte(w, '.')
	if strings.IndexByte(w, '/') < 0 && !fileExtension(w[dot+1:]) {
		return false
	}
	if dot <= 0 || dot == len(w)-1 || len(w)-dot > 7 || w[dot-1] == '/' {
		return false
	}
	letters := false
	for i := dot + 1; i < len(w); i++ {
		k := kindOf(w[i])
		if k&(chLetter|chDigit) == 0 {
			return false
		}
		letters = letters || k&chLetter != 0
	}
	return letters
}

// windowKey reports arguments that limit how much to look at, or hold text.
func windowKey(key string) bool {
	switch key {
	case "limit", "offset", "timeout", "line", "lines", "start", "end", "start_line", "end_line", "head_limit", "max_results", "page", "view_range",
		"oldtext", "newtext", "old_string", "new_string", "old_str", "new_str", "content", "text", "output_mode":
		return true
	}
	return false
}

// fileExtension reports endings of file names, for words that have no slash.
func fileExtension(s string) bool {
	switch s {
	case "go", "mod", "sum", "py", "ipynb", "pyi", "js", "mjs", "cjs", "ts", "tsx", "jsx", "json", "jsonl", "md", "mdx", "rst", "txt", "yaml", "yml", "toml", "ini",
		"cfg", "conf", "env", "lock", "log", "rs", "c", "h", "cc", "cpp", "hpp", "java", "kt", "kts", "scala", "rb", "php", "sh", "bash", "zsh", "ps1", "sql", "html",
		"htm", "css", "scss", "less", "xml", "csv", "tsv", "patch", "diff", "proto", "wat", "wasm", "vue", "svelte", "swift", "m", "cs", "fs", "ex", "exs", "erl",
		"hs", "ml", "mli", "r", "jl", "lua", "pl", "pm", "tf", "gradle", "cmake", "mk", "png", "jpg", "jpeg", "gif", "svg", "pdf", "zip", "gz", "tar", "db", "sqlite", "tex", "in", "tmpl":
		return true
	}
	return false
}
