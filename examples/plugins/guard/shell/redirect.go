package shell

import "strings"

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
