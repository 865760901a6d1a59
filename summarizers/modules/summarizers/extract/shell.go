package extract

import (
	"path"
	"slices"
	"strings"
)

// maxShell bounds how much of a command is read, in bytes.
const maxShell = 16 << 10

// shellCommand is one simple command: its words without quotes, and the files
// that it redirects to.
type shellCommand struct {
	words  []string
	writes []string
}

// shellLexer splits a script into simple commands. It knows quotes, comments,
// redirections and here-documents, and takes everything else as words.
type shellLexer struct {
	s       string
	i       int
	cmd     shellCommand
	word    []byte
	inWord  bool
	next    wordUse
	pending []string // delimiters of here-documents that begin on this line
	emit    func(shellCommand)
}

// wordUse is what the next word is.
type wordUse uint8

const (
	useWord wordUse = iota
	useWrite
	useSkip
	useHereDocument
)

// shellCommands calls f with each simple command of a script.
func shellCommands(script string, f func(shellCommand)) {
	l := &shellLexer{s: script[:runeCut(script, maxShell)], emit: f}
	for l.i < len(l.s) {
		l.step()
	}
	l.endCommand()
}

func (l *shellLexer) step() {
	c := l.s[l.i]
	l.i++
	switch c {
	case ' ', '\t', '\r':
		l.endWord()
	case '\n':
		l.endCommand()
		l.hereDocuments()
	case ';', '|', ')', '`':
		l.endCommand()
	case '(':
		l.endCommand()
		if strings.HasPrefix(l.s[l.i:], "(") { // arithmetic
			l.skipPast("))")
		}
	case '&':
		if !l.at(">") {
			l.endCommand()
		}
	case '>':
		l.redirect()
	case '<':
		l.input()
	case '#':
		if l.inWord {
			l.add(c)
		} else {
			l.skipTo('\n')
		}
	case '\'', '"':
		l.quoted(c)
	case '\\':
		if l.i < len(l.s) && l.s[l.i] != '\n' {
			l.add(l.s[l.i])
		}
		l.i++
	default:
		l.add(c)
	}
}

func (l *shellLexer) at(s string) bool { return strings.HasPrefix(l.s[min(l.i, len(l.s)):], s) }

func (l *shellLexer) add(c byte) {
	l.word = append(l.word, c)
	l.inWord = true
}

func (l *shellLexer) skipTo(c byte) {
	for l.i < len(l.s) && l.s[l.i] != c {
		l.i++
	}
}

func (l *shellLexer) skipPast(s string) {
	n := strings.Index(l.s[l.i:], s)
	if n < 0 {
		l.i = len(l.s)
		return
	}
	l.i += n + len(s)
}

func (l *shellLexer) quoted(q byte) {
	l.inWord = true
	for ; l.i < len(l.s) && l.s[l.i] != q; l.i++ {
		if q == '"' && l.s[l.i] == '\\' && l.i+1 < len(l.s) {
			l.i++
		}
		l.word = append(l.word, l.s[l.i])
	}
	l.i++
}

// redirect reads what follows a greater-than sign. A number before it is that of
// a file descriptor, and so is one after "&".
func (l *shellLexer) redirect() {
	if isNumber(string(l.word)) {
		l.word, l.inWord = l.word[:0], false
	}
	l.endWord()
	for l.at(">") || l.at("|") {
		l.i++
	}
	l.next = useWrite
	switch {
	case l.at("("):
		l.next = useWord
	case l.at("&"):
		l.i++
		if l.i < len(l.s) && (l.s[l.i] == '-' || l.s[l.i] >= '0' && l.s[l.i] <= '9') {
			l.next = useSkip
		}
	}
}

func (l *shellLexer) input() {
	l.endWord()
	switch {
	case l.at("<<"):
		l.i += 2
		l.next = useSkip
	case l.at("<"):
		l.i++
		if l.at("-") {
			l.i++
		}
		l.next = useHereDocument
	}
}

// hereDocuments steps over the text of those that begin on the line before.
func (l *shellLexer) hereDocuments() {
	for _, end := range l.pending {
		for l.i < len(l.s) {
			line, _, _ := strings.Cut(l.s[l.i:], "\n")
			l.i = min(l.i+len(line)+1, len(l.s))
			if strings.Trim(line, "\t\r") == end {
				break
			}
		}
	}
	l.pending = l.pending[:0]
}

func (l *shellLexer) endWord() {
	if !l.inWord {
		return
	}
	w := string(l.word)
	l.word, l.inWord = l.word[:0], false
	switch l.next {
	case useWrite:
		l.cmd.writes = append(l.cmd.writes, w)
	case useHereDocument:
		l.pending = append(l.pending, w)
	case useWord:
		l.cmd.words = append(l.cmd.words, w)
	case useSkip:
	}
	l.next = useWord
}

func (l *shellLexer) endCommand() {
	l.endWord()
	l.next = useWord
	if len(l.cmd.words) > 0 || len(l.cmd.writes) > 0 {
		l.emit(l.cmd)
	}
	l.cmd = shellCommand{}
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// shellFiles notes the files of a script: those that it writes or changes, and
// other words that look like files as read.
func (c *collector) shellFiles(script string, depth int) {
	dir := ""
	shellCommands(script, func(cmd shellCommand) {
		words := program(cmd.words)
		if len(words) > 0 && words[0] == "[[" { // compares, and redirects nothing
			return
		}
		for _, w := range cmd.writes {
			c.shellFile(dir, w, fileModified, writable(w))
		}
		if len(words) == 0 {
			return
		}
		switch name := path.Base(words[0]); name {
		case "cd", "pushd":
			dir = c.changeDir(dir, words[1:])
		case "echo", "printf", "export", "alias":
		case "bash", "sh", "zsh":
			c.nested(words[1:], dir, depth)
		default:
			verb := shellVerb(name, words[1:])
			for i, w := range words[1:] {
				c.shellFile(dir, w, verb(i), pathLike(w))
			}
		}
	})
}

// program returns the words from the name of the program on.
func program(words []string) []string {
	for len(words) > 0 {
		switch w := words[0]; w {
		case "if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "sudo", "env", "nohup", "command", "exec", "xargs":
		default:
			if name, _, ok := strings.Cut(w, "="); !ok || strings.ContainsAny(name, "/-.") {
				return words
			}
		}
		words = words[1:]
	}
	return nil
}

func (c *collector) shellFile(dir, name string, verb uint8, ok bool) {
	if !ok || verb == 0 {
		return
	}
	if dir != "" && name[0] != '/' && name[0] != '~' {
		name = path.Join(dir, name)
	}
	c.file(name, verb)
}

// changeDir returns the directory in which the rest of a script runs. Names in
// an absolute one stay relative to it.
func (c *collector) changeDir(dir string, words []string) string {
	if len(words) == 0 || !plainWord(words[0]) {
		return dir
	}
	to := words[0]
	if to[0] == '/' {
		if len(c.roots) < maxRoots {
			c.roots[path.Clean(to)] = true
		}
		return ""
	}
	return path.Join(dir, to)
}

// nested reads the script of "bash -c SCRIPT".
func (c *collector) nested(words []string, dir string, depth int) {
	for i, w := range words {
		if w[:min(1, len(w))] == "-" && strings.HasSuffix(w, "c") && i+1 < len(words) && depth < 2 {
			c.shellFiles(words[i+1], depth+1)
			return
		}
		c.shellFile(dir, w, fileRead, pathLike(w))
	}
}

// shellVerb returns what a program does to the file that is its n-th argument.
func shellVerb(name string, args []string) func(n int) uint8 {
	all := func(verb uint8) func(int) uint8 { return func(int) uint8 { return verb } }
	switch name {
	case "rm", "mv", "touch", "tee":
		return all(fileModified)
	case "cp", "install":
		return func(n int) uint8 {
			if n == len(args)-1 {
				return fileModified
			}
			return fileRead
		}
	case "git":
		if len(args) > 0 && (args[0] == "rm" || args[0] == "mv") && !slices.Contains(args, "--cached") {
			return all(fileModified)
		}
	case "sed", "gsed", "perl":
		return inPlace(args)
	}
	return all(fileRead)
}

// inPlace is the verb of sed and perl: with -i they change their files. The
// argument of -e and -f is a script.
func inPlace(args []string) func(n int) uint8 {
	verb := uint8(fileRead)
	for _, a := range args {
		flags := strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--")
		if strings.HasPrefix(a, "--in-place") || flags && strings.Contains(strings.TrimLeft(a[:min(len(a), 5)], "-0npEersuzl"), "i") {
			verb = fileModified
		}
	}
	return func(n int) uint8 {
		if n > 0 && (args[n-1] == "-e" || args[n-1] == "-f") {
			return 0
		}
		return verb
	}
}

// plainWord reports a word without anything that the shell expands.
func plainWord(w string) bool {
	return w != "" && len(w) <= 200 && w[0] != '-' && !strings.ContainsAny(w, " \t\n*?$={}<>|\\()[],\"'!^&`;")
}

// writable reports a word that names a file to write: no device, no number.
func writable(w string) bool {
	return plainWord(w) && !strings.HasPrefix(w, "/dev/") && !isNumber(w)
}
