package extract

import (
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
	fileRead     = 1
	fileModified = 2
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
		c.file(v, fileVerb(t))
	case "command", "cmd", "script":
		c.command(v, t.Name)
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

func fileVerb(t *mortise.ToolCall) uint8 {
	if t.Kind == mortise.ToolEdit {
		return fileModified
	}
	l := lower(t.Name)
	if hasAny(l, "edit", "write", "create", "patch", "replace", "insert", "delete", "move") {
		return fileModified
	}
	return fileRead
}

// value keeps "key: value" of an argument, when the value tells things apart.
func (c *collector) value(key, v string) {
	if v == "" || key == "" || len(v) < 2 || windowKey(lower(key)) {
		return
	}
	c.unit(byAssistant, secIdents, label(key)+": "+tidy(v, false), 1.1*c.recency(), weightArgument)
}

func (c *collector) file(path string, verb uint8) {
	if path == "" || len(path) > 300 || strings.ContainsAny(path, "\n\x00") {
		return
	}
	c.files[path] |= verb
	sec := secRead
	if verb == fileModified {
		sec = secModified
	}
	c.unit(byAssistant, sec, path, 1.2*c.recency(), weightArgument)
}

// command keeps the first line of a shell command and finds the files in it.
func (c *collector) command(cmd, tool string) {
	line, rest, _ := strings.Cut(strings.TrimSpace(cmd), "\n")
	if line == "" {
		return
	}
	if tool != "" || looksRun(line) {
		c.unit(byAssistant, secCommands, tidy(line[:runeCut(line, commandMax)], false), 0.9*c.recency(), weightArgument)
	}
	c.shellFiles(line)
	for range 40 {
		if rest == "" {
			return
		}
		line, rest, _ = strings.Cut(rest, "\n")
		if strings.Contains(line, "EOF") {
			return
		}
		c.shellFiles(line)
	}
}

// looksRun reports lines of a fenced block that are shell commands.
func looksRun(line string) bool {
	switch firstWord(line) {
	case "cd", "ls", "cat", "sed", "grep", "find", "git", "go", "npm", "npx", "make", "python", "python3", "pytest", "pip", "head", "tail",
		"cargo", "docker", "kubectl", "curl", "wget", "rm", "mv", "cp", "mkdir", "echo", "rg", "node", "bash", "sh", "nl", "awk", "apt-get":
		return true
	}
	return false
}

// shellFiles notes the words of a command that look like files. A redirection
// and an editing command modify them.
func (c *collector) shellFiles(line string) {
	if len(line) > 2000 {
		line = line[:2000]
	}
	verb := uint8(fileRead)
	redirect := false
	for i, w := range strings.Fields(line) {
		switch {
		case w == ">" || w == ">>":
			redirect = true
			continue
		case w == "&&" || w == "|" || w == ";" || w == "||":
			verb = fileRead
		case i > 0 && (w == "-i" || strings.HasPrefix(w, "-i.")), w == "mv", w == "cp", w == "rm", w == "touch", w == "tee":
			verb = fileModified
		}
		w = strings.Trim(strings.TrimLeft(w, ">"), "\"'`();,")
		if pathLike(w) {
			if redirect {
				c.file(w, fileModified)
			} else {
				c.file(w, verb)
			}
		}
		redirect = false
	}
}

// pathLike reports words that name a file: a short extension, no globs.
func pathLike(w string) bool {
	if len(w) < 4 || len(w) > 200 || strings.ContainsAny(w, "*$={}<>|\\:()[],\"'!^&") || w[0] == '-' {
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

// windowKey reports arguments that say how much to look at, or hold text.
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
