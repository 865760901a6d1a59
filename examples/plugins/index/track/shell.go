package track

import "strings"

const maxWords = 4000

// words splits a command line: quotes, escapes, and operators as words of their
// own, marked by op.
type word struct {
	text string
	op   bool
}

func words(s string) []word {
	var out []word
	var cur []byte
	open := false
	flush := func() {
		if open {
			out = append(out, word{text: string(cur)})
		}
		cur, open = cur[:0], false
	}
	for i := 0; i < len(s) && len(out) < maxWords; i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\r':
			flush()
		case '\n', ';', '|', '&', '(', ')', '<', '>':
			flush()
			n := 1
			for i+n < len(s) && s[i+n] == c && n < 3 && c != '\n' {
				n++
			}
			out = append(out, word{text: s[i : i+n], op: true})
			i += n - 1
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				cur, open = append(cur, s[i]), true
			}
		case '\'', '"':
			end := strings.IndexByte(s[i+1:], c)
			if end < 0 {
				end = len(s) - i - 1
			}
			cur, open = append(cur, s[i+1:i+1+end]...), true
			i += end + 1
		default:
			cur, open = append(cur, c), true
		}
	}
	flush()
	return out
}

// Command reads a shell command: its programs, normalised to the first words
// ("git status", "go test"), and the files that it reads and modifies.
func Command(s string) (programs, read, modified []string) {
	var cur []word
	end := func() {
		p, r, m := simple(cur)
		if p != "" {
			programs = append(programs, p)
		}
		read, modified = append(read, r...), append(modified, m...)
		cur = cur[:0]
	}
	for _, w := range words(s) {
		if w.op && w.text[0] != '<' && w.text[0] != '>' {
			end()
			continue
		}
		cur = append(cur, w)
	}
	end()
	return programs, read, modified
}

// simple reads one command without operators other than redirections.
func simple(list []word) (program string, read, modified []string) {
	i := 0
	for i < len(list) && !list[i].op && (prefix(list[i].text) || strings.IndexByte(list[i].text, '=') > 0) {
		i++
	}
	if i >= len(list) || list[i].op {
		return "", nil, nil
	}
	name := list[i].text[strings.LastIndexByte(list[i].text, '/')+1:]
	program = name
	writes := writer(name)
	for k, w := range list[i+1:] {
		if w.op {
			continue
		}
		before := list[i+k]
		switch {
		case before.op && before.text[0] == '>':
			if Path(w.text) {
				modified = append(modified, w.text)
			}
		case w.text == "-i" || strings.HasPrefix(w.text, "-i."):
			writes = writes || name == "sed" || name == "perl"
		case strings.HasPrefix(w.text, "-"):
		case k == 0 && subcommands(name) && !Path(w.text):
			program = name + " " + w.text
		case Path(w.text) && writes:
			modified = append(modified, w.text)
		case Path(w.text):
			read = append(read, w.text)
		}
	}
	return program, read, modified
}

func prefix(w string) bool {
	switch w {
	case "sudo", "env", "time", "nohup", "command", "then", "do", "if", "!", "{", "exec":
		return true
	}
	return false
}

func writer(name string) bool {
	switch name {
	case "mv", "cp", "rm", "touch", "tee", "gofmt", "patch", "truncate":
		return true
	}
	return false
}

func subcommands(name string) bool {
	switch name {
	case "git", "go", "npm", "npx", "cargo", "docker", "kubectl", "make", "pip", "yarn", "pnpm", "apt", "apt-get", "gh", "uv", "poetry", "python", "python3":
		return true
	}
	return false
}

// Path reports words that name a file: a name with a short extension, or a known
// name without one.
func Path(w string) bool {
	if len(w) < 3 || len(w) > 300 || strings.ContainsAny(w, "*?$={}<>|\\:()[],;\"'!^ \t\n`%") || w[0] == '-' {
		return false
	}
	base := w[strings.LastIndexByte(w, '/')+1:]
	switch base {
	case "Makefile", "Dockerfile", "LICENSE", "README", "go.mod", "go.sum", ".gitignore", ".env":
		return true
	}
	dot := strings.LastIndexByte(base, '.')
	if dot <= 0 || dot == len(base)-1 || len(base)-dot > 7 {
		return false
	}
	letter := false
	for i := dot + 1; i < len(base); i++ {
		c := base[i]
		if c < '0' || c > '9' && c < 'A' || c > 'z' {
			return false
		}
		letter = letter || c >= 'A'
	}
	return letter
}
