package ledger

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonDepth bounds how deep a document may be nested.
const jsonDepth = 64

// number is a number as it is written.
type number string

// parseJSON reads a document into maps, lists, strings, numbers and truth values. It reports false for
// what is no document.
func parseJSON(s string) (any, bool) {
	p := jsonParser{s: s}
	v, ok := p.value(0)
	p.space()
	return v, ok && p.i == len(s)
}

type jsonParser struct {
	s string
	i int
}

func (p *jsonParser) space() {
	for p.i < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.i]) >= 0 {
		p.i++
	}
}

// eat reads a byte if it is next, blanks before it.
func (p *jsonParser) eat(c byte) bool {
	p.space()
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *jsonParser) value(depth int) (any, bool) {
	p.space()
	if p.i >= len(p.s) || depth > jsonDepth {
		return nil, false
	}
	switch c := p.s[p.i]; {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.list(depth)
	case c == '"':
		return p.text()
	case c == '-' || c >= '0' && c <= '9':
		start := p.i
		for p.i < len(p.s) && strings.IndexByte("+-.eE0123456789", p.s[p.i]) >= 0 {
			p.i++
		}
		return number(p.s[start:p.i]), true
	}
	for word, v := range map[string]any{"true": true, "false": false, "null": nil} {
		if strings.HasPrefix(p.s[p.i:], word) {
			p.i += len(word)
			return v, true
		}
	}
	return nil, false
}

func (p *jsonParser) object(depth int) (any, bool) {
	p.i++
	out := map[string]any{}
	if p.eat('}') {
		return out, true
	}
	for {
		p.space()
		if p.i >= len(p.s) || p.s[p.i] != '"' {
			return nil, false
		}
		parsed, ok := p.text()
		key, isText := parsed.(string)
		if !ok || !isText || !p.eat(':') {
			return nil, false
		}
		v, ok := p.value(depth + 1)
		if !ok {
			return nil, false
		}
		out[key] = v
		if p.eat('}') {
			return out, true
		}
		if !p.eat(',') {
			return nil, false
		}
	}
}

func (p *jsonParser) list(depth int) (any, bool) {
	p.i++
	out := []any{}
	if p.eat(']') {
		return out, true
	}
	for {
		v, ok := p.value(depth + 1)
		if !ok {
			return nil, false
		}
		out = append(out, v)
		if p.eat(']') {
			return out, true
		}
		if !p.eat(',') {
			return nil, false
		}
	}
}

// text reads a string.
func (p *jsonParser) text() (any, bool) {
	p.i++
	start := p.i
	for p.i < len(p.s) && p.s[p.i] != '"' && p.s[p.i] != '\\' {
		p.i++
	}
	if p.i < len(p.s) && p.s[p.i] == '"' {
		p.i++
		return p.s[start : p.i-1], true
	}
	b := []byte(p.s[start:p.i])
	for p.i < len(p.s) {
		c := p.s[p.i]
		p.i++
		switch c {
		case '"':
			return string(b), true
		case '\\':
			var ok bool
			if b, ok = p.escape(b); !ok {
				return nil, false
			}
		default:
			b = append(b, c)
		}
	}
	return nil, false
}

// escape reads what is behind a backslash.
func (p *jsonParser) escape(b []byte) ([]byte, bool) {
	if p.i >= len(p.s) {
		return nil, false
	}
	c := p.s[p.i]
	p.i++
	if c == 'u' {
		r, ok := p.hex()
		if utf16.IsSurrogate(r) && strings.HasPrefix(p.s[p.i:], `\u`) {
			p.i += 2
			var low rune
			if low, ok = p.hex(); ok {
				r = utf16.DecodeRune(r, low)
			}
		}
		return utf8.AppendRune(b, r), ok
	}
	i := strings.IndexByte(`"\/bfnrt`, c)
	if i < 0 {
		return nil, false
	}
	return append(b, "\"\\/\b\f\n\r\t"[i]), true
}

func (p *jsonParser) hex() (rune, bool) {
	if len(p.s)-p.i < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(p.s[p.i:p.i+4], 16, 32)
	p.i += 4
	return rune(n), err == nil
}
