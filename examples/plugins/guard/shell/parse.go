package shell

import "strings"

// Limits of what is read.
const (
	MaxBytes    = 128 << 10
	MaxCommands = 2000
	maxDepth    = 12
)

// Redirect is a redirection of a command.
type Redirect struct {
	Op, Target string
}

// Command is one simple command, its words without quotes.
type Command struct {
	Words     []string
	Redirects []Redirect
	// Assigns are the assignments before the first word.
	Assigns []string
	// Pipe is the number of the pipeline; commands of one pipeline share it.
	Pipe int
	// Stage is the place in the pipeline, from 0.
	Stage int
	// Depth counts the substitutions and subshells around the command.
	Depth int
	// Heredocs are the bodies of its here documents.
	Heredocs []string
	// Procs are the numbers of the pipelines in its substitutions <(..), $(..) and
	// `..`, the first of them inclusive, the last exclusive.
	Procs [][2]int
}

// Script is what a text runs.
type Script struct {
	Commands  []Command
	Truncated bool
}

// Parse reads a text.
func Parse(text string) *Script {
	s := &Script{}
	if len(text) > MaxBytes {
		text, s.Truncated = text[:MaxBytes], true
	}
	p := &parser{out: s, pipes: new(int)}
	p.list(text, 0)
	return s
}

type parser struct {
	out   *Script
	pipes *int // the next pipeline's number
	used  int  // bytes that nested texts have taken
}

// frame is the state of one list of commands.
type frame struct {
	text    string
	i       int
	depth   int
	cur     Command
	word    []byte
	started bool // a word has begun, perhaps an empty quoted one
	quoted  bool
	redir   string
	docs    []string // here documents that wait for the end of the line
}

// list reads the commands of a text at a depth.
func (p *parser) list(text string, depth int) {
	if depth > maxDepth {
		p.out.Truncated = true
		return
	}
	if depth > 0 {
		if p.used += len(text); p.used > 4*MaxBytes {
			p.out.Truncated = true
			return
		}
	}
	f := &frame{text: text, depth: depth}
	p.open(f, 0)
	for f.i < len(f.text) {
		p.step(f)
	}
	p.endCommand(f)
}

// open starts a command; stage 0 starts a pipeline.
func (p *parser) open(f *frame, stage int) {
	pipe := f.cur.Pipe
	if stage == 0 {
		pipe = *p.pipes
		*p.pipes++
	}
	f.cur = Command{Pipe: pipe, Stage: stage, Depth: f.depth}
	f.redir = ""
}

func (p *parser) step(f *frame) {
	c := f.text[f.i]
	switch c {
	case '\\':
		if f.i+1 < len(f.text) && f.text[f.i+1] != '\n' {
			f.add(f.text[f.i+1])
			f.quoted = true
		}
		f.i += 2
	case '\'':
		p.single(f)
	case '"':
		p.double(f)
	case '`':
		p.backtick(f)
	case '$':
		p.dollar(f)
	case ' ', '\t', '\r':
		p.endWord(f)
		f.i++
	case '#':
		if !f.started {
			f.i = lineEnd(f.text, f.i)
			return
		}
		f.add(c)
		f.i++
	case '\n', ';', '&', '|', '(', ')':
		p.operator(f, c)
	case '<', '>':
		p.redirect(f, c)
	default:
		f.add(c)
		f.i++
	}
}

func (f *frame) add(c byte) {
	f.word = append(f.word, c)
	f.started = true
}

func lineEnd(s string, i int) int {
	if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(s)
}

func (p *parser) single(f *frame) {
	f.started, f.quoted = true, true
	f.i++
	n := strings.IndexByte(f.text[f.i:], '\'')
	if n < 0 {
		n = len(f.text) - f.i
	}
	f.word = append(f.word, f.text[f.i:f.i+n]...)
	f.i += n + 1
}

func (p *parser) double(f *frame) {
	f.started, f.quoted = true, true
	f.i++
	for f.i < len(f.text) {
		switch c := f.text[f.i]; c {
		case '"':
			f.i++
			return
		case '\\':
			if f.i+1 < len(f.text) {
				if strings.IndexByte("\"\\$`\n", f.text[f.i+1]) < 0 {
					f.add('\\')
				}
				f.add(f.text[f.i+1])
			}
			f.i += 2
		case '`':
			p.backtick(f)
		case '$':
			p.dollar(f)
		default:
			f.add(c)
			f.i++
		}
	}
}

func (p *parser) backtick(f *frame) {
	f.started = true
	n := strings.IndexByte(f.text[f.i+1:], '`')
	if n < 0 {
		n = len(f.text) - f.i - 1
	}
	p.nested(f, f.text[f.i+1:f.i+1+n])
	f.word = append(f.word, "$(..)"...)
	f.i += n + 2
}

// dollar reads $(..), ${..}, $'..' or a plain dollar sign.
func (p *parser) dollar(f *frame) {
	f.started = true
	rest := f.text[f.i+1:]
	switch {
	case strings.HasPrefix(rest, "("):
		n := closing(rest)
		p.nested(f, rest[1:n])
		f.word = append(f.word, "$(..)"...)
		f.i += min(n+2, len(f.text)-f.i)
	case strings.HasPrefix(rest, "'") && !f.quoted:
		f.i++
		p.single(f)
	case strings.HasPrefix(rest, "{"):
		n := strings.IndexByte(rest, '}')
		if n < 0 {
			n = len(rest) - 1
		}
		f.word = append(f.word, '$')
		f.word = append(f.word, rest[:n+1]...)
		f.i += n + 2
	default:
		f.add('$')
		f.i++
	}
}

// nested reads the commands of a substitution and notes their pipelines.
func (p *parser) nested(f *frame, text string) {
	from := *p.pipes
	q := &parser{out: p.out, pipes: p.pipes, used: p.used}
	q.list(text, f.depth+1)
	p.used = q.used
	f.cur.Procs = append(f.cur.Procs, [2]int{from, *p.pipes})
}

// closing is the index of the parenthesis that closes s[0], or len(s).
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '\'':
			n := strings.IndexByte(s[i+1:], '\'')
			if n < 0 {
				return len(s)
			}
			i += n + 1
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(s)
}

func (p *parser) endWord(f *frame) {
	if !f.started {
		return
	}
	w := string(f.word)
	f.word, f.started = f.word[:0], false
	quoted := f.quoted
	f.quoted = false
	switch {
	case f.redir == "<<" || f.redir == "<<-":
		f.docs = append(f.docs, w)
		f.redir = ""
	case f.redir != "":
		f.cur.Redirects = append(f.cur.Redirects, Redirect{Op: f.redir, Target: w})
		f.redir = ""
	case len(f.cur.Words) == 0 && !quoted && assignment(w):
		f.cur.Assigns = append(f.cur.Assigns, w)
	case len(f.cur.Words) == 0 && !quoted && keyword(w):
	default:
		f.cur.Words = append(f.cur.Words, w)
	}
}

func assignment(w string) bool {
	n := strings.IndexByte(w, '=')
	if n <= 0 {
		return false
	}
	for i := range n {
		c := w[i]
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && (c >= '0' && c <= '9' || c == '+')) {
			return false
		}
	}
	return true
}

// keyword reports words before which a command may stand.
func keyword(w string) bool {
	switch w {
	case "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "{", "}", "!", "time", "esac":
		return true
	}
	return false
}

func (p *parser) endCommand(f *frame) {
	p.endWord(f)
	c := f.cur
	if len(c.Words)+len(c.Redirects)+len(c.Assigns) == 0 {
		return
	}
	if len(p.out.Commands) >= MaxCommands {
		p.out.Truncated = true
		return
	}
	p.out.Commands = append(p.out.Commands, c)
}

func (p *parser) operator(f *frame, c byte) {
	two := f.i+1 < len(f.text) && f.text[f.i+1] == c
	if c == '&' && f.i+1 < len(f.text) && f.text[f.i+1] == '>' {
		p.endWord(f)
		f.i++
		p.redirect(f, '>')
		return
	}
	f.i++
	if c == '(' && f.started && f.i < len(f.text) && f.text[f.i] == ')' {
		// name() { .. }: a function; its body is read as commands.
		f.i++
		f.word = append(f.word, "()"...)
		p.endCommand(f)
		p.open(f, 0)
		return
	}
	p.endCommand(f)
	if c == '|' && !two {
		if f.i < len(f.text) && f.text[f.i] == '&' {
			f.i++
		}
		p.open(f, f.cur.Stage+1)
		return
	}
	if two && (c == '&' || c == '|' || c == ';') {
		f.i++
	}
	last := len(p.out.Commands) - 1
	p.open(f, 0)
	if c == '\n' && len(f.docs) > 0 {
		p.heredocs(f, last)
	}
}

// heredocs reads the bodies that follow a line.
func (p *parser) heredocs(f *frame, owner int) {
	for _, mark := range f.docs {
		start, end := f.i, len(f.text)
		for f.i < len(f.text) {
			e := lineEnd(f.text, f.i)
			line := strings.TrimLeft(f.text[f.i:e], "\t")
			at := f.i
			f.i = min(e+1, len(f.text))
			if line == mark {
				end = at
				break
			}
		}
		if owner >= 0 {
			c := &p.out.Commands[owner]
			c.Heredocs = append(c.Heredocs, f.text[start:end])
		}
	}
	f.docs = nil
}

// redirect reads an operator such as >, >>, 2>&1, <<EOF, <(..).
func (p *parser) redirect(f *frame, c byte) {
	if f.started && digits(f.word) {
		f.word, f.started = f.word[:0], false
	}
	rest := f.text[f.i:]
	if strings.HasPrefix(rest[1:], "(") {
		n := closing(rest[1:]) + 1
		p.nested(f, rest[2:min(n, len(rest))])
		f.word = append(f.word, "<(..)"...)
		f.started = true
		f.i += min(n+1, len(rest))
		return
	}
	p.endWord(f)
	op := string(c)
	for _, long := range []string{"<<<", "<<-", "<<", ">>", ">|", ">&", "<&", "<>"} {
		if strings.HasPrefix(rest, long) {
			op = long
			break
		}
	}
	f.i += len(op)
	f.redir = op
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}
