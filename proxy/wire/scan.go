package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrShape is a body that is not what its protocol has.
var ErrShape = errors.New("not the shape of the protocol")

// maxDepth is how deep values may be nested.
const maxDepth = 512

// Span is a place in a body: the bytes from From to To, To excluded. The zero Span is a value that is not there.
type Span struct{ From, To int }

// Of returns the bytes of the place.
func (s Span) Of(body []byte) []byte { return body[s.From:s.To:s.To] }

// Exists reports whether the value is there.
func (s Span) Exists() bool { return s.To > s.From }

func shape(at int, what string) error { return fmt.Errorf("%w: byte %d: %s", ErrShape, at, what) }

// space returns the index of the first byte from i that is no white space.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// text returns the end of the string that begins at i.
func text(b []byte, i int) (int, error) {
	for at := i + 1; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return 0, shape(i, "a string has no end")
		}
		at += n
		slashes := 0
		for b[at-1-slashes] == '\\' {
			slashes++
		}
		at++
		if slashes%2 == 0 {
			return at, nil
		}
	}
}

// value returns the end of the value that begins at i. It checks how values are nested, and not what numbers and
// words are made of.
func value(b []byte, i int) (int, error) {
	if is(b, i, '"') {
		return text(b, i)
	}
	n := nesting{}
	for {
		if i = space(b, i); i >= len(b) {
			return 0, shape(i, "a value has no end")
		}
		end, err := n.token(b, i)
		if err != nil {
			return 0, err
		}
		separator := b[i] == ',' || b[i] == ':'
		if i = end; n.depth == 0 && !separator {
			return i, nil
		}
	}
}

// itemDepth is how deep the blocks of an item are nested in a body.
const itemDepth = 4

// single is value for what plugins see: no object in it names a field twice, of which a plugin may see one and the provider read the other.
func single(b []byte, i, depth int) (int, error) {
	switch {
	case depth == maxDepth:
		return 0, shape(i, "nested too deep")
	case is(b, i, '{'):
		var seen names
		return members(b, i, func(key []byte, name Span, i int) (int, error) {
			if err := seen.add(key, name); err != nil {
				return 0, err
			}
			return single(b, i, depth+1)
		})
	case is(b, i, '['):
		return elements(b, i, '[', func(i int) (int, error) { return single(b, i, depth+1) })
	}
	return value(b, i)
}

// Repeats reports whether an object of a value, at any depth, names a field twice, or the value is malformed. No value has none.
func Repeats(data []byte) bool {
	i := space(data, 0)
	if i == len(data) {
		return false
	}
	_, err := single(data, i, 0)
	return err != nil
}

// names are those of the fields of an object: the first few, and then all.
type names struct {
	few [12][]byte
	n   int
	all map[string]bool
}

// add takes another name, which must be a new one.
func (s *names) add(key []byte, at Span) error {
	known := s.all[string(key)]
	for i := 0; i < s.n && s.all == nil; i++ {
		known = known || bytes.Equal(s.few[i], key)
	}
	switch {
	case known:
		return shape(at.From, "a field is there twice")
	case s.n < len(s.few):
		s.few[s.n] = key
		s.n++
		return nil
	case s.all == nil:
		s.all = map[string]bool{}
		for _, k := range s.few {
			s.all[string(k)] = true
		}
	}
	s.all[string(key)] = true
	return nil
}

// nesting are the lists and objects that are open.
type nesting struct {
	open  [maxDepth]byte
	depth int
}

// token returns the end of a token.
func (n *nesting) token(b []byte, i int) (int, error) {
	switch c := b[i]; c {
	case '"':
		return text(b, i)
	case '{', '[':
		if n.depth == maxDepth {
			return 0, shape(i, "nested too deep")
		}
		n.open[n.depth] = c + 2 // the closing one: in ASCII two further
		n.depth++
	case '}', ']':
		if n.depth == 0 || n.open[n.depth-1] != c {
			return 0, shape(i, "unexpected end of a list or object")
		}
		n.depth--
	case ',', ':':
		if n.depth == 0 {
			return 0, shape(i, "unexpected separator")
		}
	default:
		end := i
		for end < len(b) && plain(b[end]) {
			end++
		}
		if end == i {
			return 0, shape(i, "unexpected byte")
		}
		return end, nil
	}
	return i + 1, nil
}

// plain reports whether a byte may be part of a number or a word.
func plain(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// Object calls visit for each field of the object at a place, with the key, however it is escaped, the place of the key and that of the value. An
// error of visit ends it.
func Object(b []byte, at Span, visit func(key []byte, name, val Span) error) error {
	if !at.Exists() {
		return shape(at.From, "want an object")
	}
	_, err := members(b, at.From, func(key []byte, name Span, i int) (int, error) {
		end, err := value(b, i)
		if err != nil {
			return 0, err
		}
		return end, visit(key, name, Span{i, end})
	})
	return err
}

// members calls visit at the value of each field of the object that begins at i, for the end of the value. It returns the end of the object.
func members(b []byte, i int, visit func(key []byte, name Span, i int) (int, error)) (int, error) {
	return elements(b, i, '{', func(i int) (int, error) {
		if i >= len(b) || b[i] != '"' {
			return 0, shape(i, "want a key")
		}
		end, err := text(b, i)
		if err != nil {
			return 0, err
		}
		name := Span{i, end}
		if i = space(b, end); i >= len(b) || b[i] != ':' {
			return 0, shape(i, "want a colon")
		}
		key := b[name.From+1 : name.To-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key = []byte(String(b, name))
		}
		return visit(key, name, space(b, i+1))
	})
}

// Array calls visit for each element of the list at a place.
func Array(b []byte, at Span, visit func(i int, val Span) error) error {
	if !at.Exists() {
		return shape(at.From, "want a list")
	}
	n := -1
	_, err := elements(b, at.From, '[', func(i int) (int, error) {
		end, err := value(b, i)
		if err != nil {
			return 0, err
		}
		n++
		return end, visit(n, Span{i, end})
	})
	return err
}

// elements calls next at the beginning of each element between brackets, which returns its end. It returns the end of them all.
func elements(b []byte, i int, bracket byte, next func(i int) (int, error)) (int, error) {
	if i = space(b, i); i >= len(b) || b[i] != bracket {
		return 0, shape(i, "want "+string(bracket))
	}
	if i = space(b, i+1); i < len(b) && b[i] == bracket+2 {
		return i + 1, nil
	}
	for {
		end, err := next(i)
		if err != nil {
			return 0, err
		}
		i = space(b, end)
		if i < len(b) && b[i] == bracket+2 {
			return i + 1, nil
		}
		if i >= len(b) || b[i] != ',' {
			return 0, shape(i, "want a comma")
		}
		i = space(b, i+1)
	}
}

// is reports whether a byte is at i.
func is(b []byte, i int, c byte) bool { return i < len(b) && b[i] == c }

// String returns the string at a place, or nothing where there is none.
func String(b []byte, at Span) string {
	if !at.Exists() || b[at.From] != '"' {
		return ""
	}
	inner := b[at.From+1 : at.To-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if json.Unmarshal(at.Of(b), &s) != nil {
		return ""
	}
	return s
}

// Field returns the place of a field of an object, by the names on the way to it.
func Field(b []byte, at Span, path ...string) Span {
	for _, name := range path {
		next := Span{}
		err := Object(b, at, func(key []byte, _, val Span) error {
			if string(key) == name {
				next = val
			}
			return nil
		})
		if err != nil || !next.Exists() {
			return Span{}
		}
		at = next
	}
	return at
}

// Whole is the place of a body as a whole.
func Whole(b []byte) Span {
	i := space(b, 0)
	return Span{i, len(b)}
}

// Text returns the string of a field of a body.
func Text(b []byte, path ...string) string { return String(b, Field(b, Whole(b), path...)) }
