package ledger

import "strings"

// word is a word of a command.
type word struct {
	text   string
	quoted bool
}

// part is a command between separators.
type part struct {
	words []word
	// writes are targets of redirections.
	writes []word
	// after is the separator behind it.
	after string
}

const (
	maxParts = 64
	maxWords = 128
)

// parse reads a shell command as far as the ledger needs: words, redirections and separators.
// Bodies of here-documents are left out.
func parse(cmd string) []part {
	cmd, _ = withoutHeredocs(cmd)
	p := shellParser{s: cmd}
	for p.i < len(p.s) && len(p.parts) < maxParts {
		p.step()
	}
	p.end("")
	return p.parts
}

type shellParser struct {
	s     string
	i     int
	cur   part
	parts []part
	redir bool // the next word is a target,
	skip  bool // or the end mark of a here-document
}

func (p *shellParser) end(sep string) {
	p.redir = false
	if len(p.cur.words) > 0 || len(p.cur.writes) > 0 {
		p.cur.after = sep
		p.parts = append(p.parts, p.cur)
	}
	p.cur = part{}
}

func (p *shellParser) step() {
	switch c := p.s[p.i]; c {
	case ' ', '\t', '\r':
		p.i++
	case '\\':
		if p.i+1 < len(p.s) && p.s[p.i+1] == '\n' {
			p.i += 2
			return
		}
		p.word()
	case '\n', ';', '(', ')', '{', '}':
		p.i++
		if c != '{' && c != '}' || len(p.cur.words) == 0 {
			p.end(separator(c))
		}
	case '#':
		p.comment()
	case '&', '|':
		p.operator(c)
	case '>', '<':
		p.redirection(c)
	default:
		p.word()
	}
}

func separator(c byte) string {
	if c == '\n' {
		return ";"
	}
	return string(c)
}

func (p *shellParser) comment() {
	if n := strings.IndexByte(p.s[p.i:], '\n'); n >= 0 {
		p.i += n
		return
	}
	p.i = len(p.s)
}

func (p *shellParser) operator(c byte) {
	rest := p.s[p.i:]
	switch {
	case strings.HasPrefix(rest, "&>"):
		p.i++
	case len(rest) > 1 && rest[1] == c:
		p.i += 2
		p.end(rest[:2])
	default:
		p.i++
		p.end(rest[:1])
	}
}

// redirection notes that the next word is a target, if it is written to.
func (p *shellParser) redirection(c byte) {
	p.i++
	if c == '<' {
		if strings.HasPrefix(p.s[p.i:], "<") { // a here-document, whose word is no argument
			p.i = min(len(p.s), p.i+1)
			p.skip, p.redir = true, true
			if strings.HasPrefix(p.s[p.i:], "-") {
				p.i++
			}
		}
		return
	}
	p.skip = false
	for p.i < len(p.s) && (p.s[p.i] == '>' || p.s[p.i] == '|') {
		p.i++
	}
	if p.i < len(p.s) && p.s[p.i] == '&' {
		p.i++
		for p.i < len(p.s) && (p.s[p.i] >= '0' && p.s[p.i] <= '9' || p.s[p.i] == '-') {
			p.i++
		}
		return
	}
	p.redir = true
}

// word reads a word; a number right before a redirection belongs to that.
func (p *shellParser) word() {
	var b []byte
	quoted := false
	start := p.i
	for p.i < len(p.s) && strings.IndexByte(" \t\r\n;|&<>()", p.s[p.i]) < 0 {
		switch c := p.s[p.i]; c {
		case '\'', '"':
			quoted = true
			n := closing(p.s[p.i+1:], c)
			b = append(b, p.s[p.i+1:p.i+1+n]...)
			p.i = min(len(p.s), p.i+n+2)
		case '\\':
			if p.i+1 < len(p.s) {
				b = append(b, p.s[p.i+1])
			}
			p.i = min(len(p.s), p.i+2)
		default:
			b = append(b, c)
			p.i++
		}
	}
	if p.i == start { // a byte that nothing above reads
		p.i++
		return
	}
	w := word{text: string(b), quoted: quoted}
	if !quoted && p.i < len(p.s) && p.s[p.i] == '>' && (w.text == "1" || w.text == "2") {
		if w.text == "2" { // what goes wrong, not what is made
			p.skipErrors()
		}
		return
	}
	switch {
	case p.redir && p.skip:
		p.redir, p.skip = false, false
	case p.redir:
		p.redir = false
		p.cur.writes = append(p.cur.writes, w)
	case len(p.cur.words) < maxWords:
		p.cur.words = append(p.cur.words, w)
	}
}

// skipErrors skips 2>file and 2>&1.
func (p *shellParser) skipErrors() {
	p.redirection('>')
	if !p.redir {
		return
	}
	p.redir = false
	for p.i < len(p.s) && p.s[p.i] == ' ' {
		p.i++
	}
	for p.i < len(p.s) && strings.IndexByte(" \t\n;|&<>()", p.s[p.i]) < 0 {
		p.i++
	}
}
