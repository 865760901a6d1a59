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
