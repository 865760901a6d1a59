package future

import (
	"path"
	"slices"
	"strings"
)

// shellCommand returns the command of a call to a shell; "" for another tool.
func shellCommand(tool string, arguments any) string {
	switch strings.ToLower(tool) {
	case "bash", "shell", "exec_command", "execute_bash", "run_shell_command", "run_terminal_cmd", "local_shell", "terminal", "run":
	default:
		return ""
	}
	if s := argument(arguments, "command", "cmd", "script"); s != "" {
		return s
	}
	m, _ := arguments.(map[string]any)
	list, _ := m["command"].([]any)
	var words []string
	for _, w := range list {
		if s, ok := w.(string); ok {
			words = append(words, s)
		}
	}
	if len(words) == 3 && strings.HasSuffix(words[0], "sh") && strings.HasPrefix(words[1], "-") {
		return words[2]
	}
	return strings.Join(words, " ")
}

// word is a word of a command line.
type word struct {
	text string
	// sign reports an operator, such as && or >.
	sign bool
}

// lexer reads a command line.
type lexer struct {
	out  []word
	b    strings.Builder
	open bool
}

// split reads a command line into words. Bodies of here-documents are left out;
// a quoted string is one word.
func split(command string) []word {
	var l lexer
	for i := 0; i < len(command); i++ {
		switch c := command[i]; c {
		case '\'', '"':
			end := quoteEnd(command, i)
			l.add(command[i+1 : min(end, len(command))])
			i = end
		case '\\':
			i++
			if i < len(command) && command[i] != '\n' {
				l.add(command[i : i+1])
			}
		case ' ', '\t':
			l.flush()
		case '\n', ';', '|', '&', '>', '<':
			i = l.sign(command, i) - 1
		default:
			l.add(command[i : i+1])
		}
	}
	l.flush()
	return l.out
}

func (l *lexer) add(s string) {
	l.b.WriteString(s)
	l.open = true
}

func (l *lexer) flush() {
	if l.open {
		l.out = append(l.out, word{text: l.b.String()})
	}
	l.b.Reset()
	l.open = false
}

// sign reads an operator and returns its end.
func (l *lexer) sign(command string, at int) int {
	c := command[at]
	if s := l.b.String(); c == '>' && (s == "1" || s == "2") { // the number of a stream
		l.b.Reset()
		l.open = false
	}
	l.flush()
	end := at + 1
	for end < len(command) && command[end] == c && c != '\n' {
		end++
	}
	text := command[at:end]
	if text == "<<" {
		end = skipDocument(command, end)
	}
	l.out = append(l.out, word{text: text, sign: true})
	return end
}

// quoteEnd is where a quoted string ends that begins at a place.
func quoteEnd(command string, at int) int {
	end := at + 1
	for end < len(command) && command[end] != command[at] {
		if command[at] == '"' && command[end] == '\\' {
			end++
		}
		end++
	}
	return end
}

// skipDocument returns the end of the body of a here-document, the rest of whose
// first line is lost.
func skipDocument(command string, at int) int {
	line, body, ok := strings.Cut(command[at:], "\n")
	mark := strings.Trim(strings.TrimLeft(line, "- "), " '\"")
	mark, _, _ = strings.Cut(mark, " ")
	mark = strings.Trim(mark, "'\"")
	if !ok || mark == "" {
		return len(command)
	}
	from := at + len(line) + 1
	for l := range strings.SplitAfterSeq(body, "\n") {
		from += len(l)
		if strings.TrimSpace(l) == mark {
			return from
		}
	}
	return len(command)
}

// shellWrites returns the files that a command line writes, moves or deletes, as
// far as the command line shows them. What is added to a commit was changed by
// something that the log does not show, such as a formatter.
func shellWrites(command string) []string {
	var out []string
	folder := ""
	words := split(command)
	for from := 0; from < len(words); {
		to := from
		for to < len(words) && (!words[to].sign || words[to].text[0] == '>' || words[to].text[0] == '<') {
			to++
		}
		var simple []string
		for i := from; i < to; i++ {
			switch {
			case !words[i].sign:
				simple = append(simple, words[i].text)
			case words[i].text[0] == '>' && i+1 < to:
				out = append(out, join(folder, words[i+1].text))
				i++
			case i+1 < to && words[i].text == "<":
				i++
			}
		}
		for _, f := range written(simple) {
			out = append(out, join(folder, f))
		}
		if len(simple) == 2 && simple[0] == "cd" {
			folder = join(folder, simple[1])
		}
		from = to + 1
	}
	return slices.DeleteFunc(out, noFile)
}

func join(folder, file string) string {
	if path.IsAbs(file) {
		return file
	}
	return path.Join(folder, file)
}

// noFile reports what is no file of the work: devices, temporary files, patterns.
func noFile(f string) bool {
	return f == "" || strings.HasPrefix(f, "/dev/") || strings.HasPrefix(f, "/tmp/") || strings.ContainsAny(f, "*?$`{}()&") || f[0] == '-'
}

// written returns the files that one simple command writes.
func written(words []string) []string {
	for len(words) > 0 && (words[0] == "sudo" || strings.Contains(words[0], "=")) {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	rest := words[1:]
	files := slices.DeleteFunc(slices.Clone(rest), func(w string) bool { return strings.HasPrefix(w, "-") })
	flag := func(prefix string) bool {
		return slices.ContainsFunc(rest, func(w string) bool { return strings.HasPrefix(w, prefix) })
	}
	switch path.Base(words[0]) {
	case "tee", "touch", "rm", "mv":
		return files
	case "cp":
		return files[max(0, len(files)-1):]
	case "sed", "perl":
		if !flag("-i") && !flag("-pi") {
			return nil
		}
		if len(files) > 0 && (!flag("-e") || files[0] == "") {
			files = files[1:] // the script; on a Mac the suffix is a word before it
		}
		return files
	case "gofmt", "goimports", "gofumpt":
		if flag("-w") {
			return files
		}
	case "git":
		if len(files) > 1 && (slices.Contains([]string{"add", "rm", "mv", "restore"}, files[0]) || files[0] == "checkout" && (flag("--ours") || flag("--theirs") || slices.Contains(rest, "--"))) {
			return files[1:]
		}
	}
	return nil
}
