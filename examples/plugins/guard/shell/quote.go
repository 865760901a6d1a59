package shell

import "strings"

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
