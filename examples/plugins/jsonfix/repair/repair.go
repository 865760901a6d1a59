// Package repair reads JSON as models write it: in a code fence, with trailing commas,
// single quotes, comments, Python's constants, line breaks in strings, and cut off before
// its end. It invents no field and no value: what it cannot read it refuses.
package repair

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds on what is read.
const (
	maxBytes = 1 << 20
	maxDepth = 64
)

// ErrUnreadable is returned for a text that is no JSON object, however kindly it is read.
var ErrUnreadable = errors.New("the text is no JSON object")

// Object reads an object. It reports whether it had to close it because the text ends too
// early: then the last value may be incomplete.
func Object(text string) (object map[string]any, cut bool, err error) {
	if len(text) > maxBytes {
		return nil, false, ErrUnreadable
	}
	r := &reader{text: unfenced(text)}
	r.blanks()
	if r.peek() != '{' {
		return nil, false, ErrUnreadable
	}
	v, ok := r.value(0)
	r.blanks()
	object, isObject := v.(map[string]any)
	if !ok || !isObject || r.at < len(r.text) {
		return nil, false, ErrUnreadable
	}
	return object, r.cut, nil
}

// unfenced returns what is inside of a Markdown code fence, if there is one.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	inside, fenced := strings.CutPrefix(text, "```")
	if !fenced {
		return text
	}
	if _, rest, ok := strings.Cut(inside, "\n"); ok {
		inside = rest
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(inside), "```"))
}

// reader reads values. Its methods report false at what they cannot read.
type reader struct {
	text string
	at   int
	cut  bool
}

// peek returns the next byte, or 0 at the end.
func (r *reader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

// blanks skips white space and comments.
func (r *reader) blanks() {
	for r.at < len(r.text) {
		rest := r.text[r.at:]
		switch {
		case strings.ContainsRune(" \t\r\n", rune(rest[0])):
			r.at++
		case strings.HasPrefix(rest, "//"):
			line, _, _ := strings.Cut(rest, "\n")
			r.at += len(line)
		case strings.HasPrefix(rest, "/*"):
			comment, _, ended := strings.Cut(rest, "*/")
			r.at += len(comment)
			if ended {
				r.at += len("*/")
			}
		default:
			return
		}
	}
}

func (r *reader) value(depth int) (any, bool) {
	if depth > maxDepth {
		return nil, false
	}
	r.blanks()
	switch c := r.peek(); {
	case c == '{':
		return r.object(depth)
	case c == '[':
		return r.list(depth)
	case c == '"' || c == '\'':
		return r.quoted()
	case c == 0:
		return nil, false
	default:
		return r.word()
	}
}

// members reads the inside of an object or a list up to its end, which may be missing.
func (r *reader) members(end byte, member func() bool) bool {
	r.at++
	for {
		r.blanks()
		switch r.peek() {
		case end:
			r.at++
			return true
		case 0:
			r.cut = true
			return true
		}
		if !member() {
			return false
		}
		r.blanks()
		switch r.peek() {
		case ',':
			r.at++
		case end, 0:
		default:
			return false
		}
	}
}

func (r *reader) object(depth int) (any, bool) {
	out := map[string]any{}
	ok := r.members('}', func() bool {
		key, ok := r.key()
		r.blanks()
		switch {
		case !ok:
			return false
		case r.peek() == 0:
			r.cut = true // a name without its value says nothing
			return true
		case r.peek() != ':':
			return false
		}
		r.at++
		r.blanks()
		if r.peek() == 0 {
			r.cut = true
			return true
		}
		value, ok := r.value(depth + 1)
		if _, twice := out[key]; twice {
			return false // Which one is meant?
		}
		out[key] = value
		return ok
	})
	return out, ok
}

func (r *reader) key() (string, bool) {
	if c := r.peek(); c == '"' || c == '\'' {
		return r.quoted()
	}
	name := r.bare()
	return name, name != ""
}

func (r *reader) list(depth int) (any, bool) {
	out := []any{}
	ok := r.members(']', func() bool {
		v, ok := r.value(depth + 1)
		out = append(out, v)
		return ok
	})
	return out, ok
}

// bare reads a name or a constant without quotes.
func (r *reader) bare() string {
	from := r.at
	for r.at < len(r.text) && isWord(r.text[r.at]) {
		r.at++
	}
	return r.text[from:r.at]
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '+' || c == '.' || c == '$'
}

// word reads a constant or a number.
func (r *reader) word() (any, bool) {
	word := r.bare()
	switch word {
	case "true", "True":
		return true, true
	case "false", "False":
		return false, true
	case "null", "None":
		return nil, true
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return n, true
	}
	if strings.ContainsAny(word, "xXpP_nN") { // hexadecimal, NaN, Inf: not of JSON
		return nil, false
	}
	f, err := strconv.ParseFloat(word, 64)
	return f, err == nil
}

// quoted reads a string, whose closing quote may be missing at the end of the text.
func (r *reader) quoted() (string, bool) {
	quote := r.peek()
	r.at++
	var b strings.Builder
	for r.at < len(r.text) {
		c := r.text[r.at]
		r.at++
		switch {
		case c == quote:
			return b.String(), utf8.ValidString(b.String())
		case c != '\\':
			b.WriteByte(c)
		case !r.escape(&b):
			return "", false
		}
	}
	r.cut = true
	return strings.ToValidUTF8(b.String(), ""), true
}

var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', '"': '"', '\'': '\'', '\\': '\\', '/': '/'}

// escape reads what follows a backslash. An escape that JSON does not know keeps its
// backslash, as in a regular expression or a path that was not escaped.
func (r *reader) escape(b *strings.Builder) bool {
	c := r.peek()
	if c == 0 {
		return true // cut off
	}
	r.at++
	if c == 'u' {
		return r.unicode(b)
	}
	if known, ok := escapes[c]; ok {
		b.WriteByte(known)
		return true
	}
	b.WriteByte('\\')
	b.WriteByte(c)
	return true
}

// unicode reads the digits of \u, and a second escape when the first is half of a pair.
func (r *reader) unicode(b *strings.Builder) bool {
	unit, ok := r.hex()
	if !ok {
		return false
	}
	if unit >= 0xd800 && unit < 0xdc00 && strings.HasPrefix(r.text[r.at:], `\u`) {
		r.at += 2
		low, ok := r.hex()
		if !ok || low < 0xdc00 || low > 0xdfff {
			return false
		}
		unit = (unit-0xd800)<<10 + (low - 0xdc00) + 0x10000
	}
	b.WriteRune(unit)
	return utf8.ValidRune(unit)
}

func (r *reader) hex() (rune, bool) {
	const digits = 4
	if len(r.text)-r.at < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(r.text[r.at:r.at+digits], 16, 16)
	r.at += digits
	return rune(n), err == nil
}
