package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
)

// Splice replaces a place of a body. An insertion has a place without bytes.
type Splice struct {
	At  Span
	New []byte
}

// Apply returns the body with splices, which must not overlap. Insertions at one place stay in their order. The body
// itself is not changed, and is returned when there is no splice.
func Apply(body []byte, splices []Splice) []byte {
	if len(splices) == 0 {
		return body
	}
	slices.SortStableFunc(splices, func(a, b Splice) int { return cmp.Compare(a.At.From, b.At.From) })
	n := len(body)
	for _, s := range splices {
		n += len(s.New) - (s.At.To - s.At.From)
	}
	out := make([]byte, 0, max(n, 0))
	from := 0
	for _, s := range splices {
		if s.At.From < from {
			continue // it lies within what another one replaced
		}
		out = append(append(out, body[from:s.At.From]...), s.New...)
		from = s.At.To
	}
	return append(out, body[from:]...)
}

// Cut returns the splice that removes an element of a list or a field of an object, with the comma that belongs to it.
func Cut(body []byte, at Span) Splice {
	after := space(body, at.To)
	if after < len(body) && body[after] == ',' {
		return Splice{At: Span{at.From, space(body, after+1)}}
	}
	before := at.From
	for before > 0 && bytes.IndexByte([]byte(" \n\t\r"), body[before-1]) >= 0 {
		before--
	}
	if before > 0 && body[before-1] == ',' {
		return Splice{At: Span{before - 1, at.To}}
	}
	return Splice{At: at}
}

// Append returns the splice that adds elements at the end of a list.
func Append(body []byte, list Span, elements ...[]byte) Splice {
	end := list.To - 1
	for end > list.From+1 && bytes.IndexByte([]byte(" \n\t\r"), body[end-1]) >= 0 {
		end--
	}
	add := bytes.Join(elements, []byte(","))
	if len(add) > 0 && body[end-1] != '[' {
		add = append([]byte(","), add...)
	}
	return Splice{At: Span{end, end}, New: add}
}

// Set returns the splice that gives a top-level field of a body a value.
func Set(body []byte, name string, val []byte) Splice {
	if at := Field(body, Whole(body), name); at.Exists() {
		return Splice{At: at, New: val}
	}
	return AddField(body, Whole(body), name, val)
}

// AddField returns the splice that puts a field first in an object that does not have it.
func AddField(body []byte, object Span, name string, val []byte) Splice {
	at := space(body, object.From) + 1
	add := slices.Concat(Quote(name), []byte(":"), val)
	if next := space(body, at); next < len(body) && body[next] != '}' {
		add = append(add, ',')
	}
	return Splice{At: Span{at, at}, New: add}
}

// Quote returns a string as JSON, with nothing escaped that need not be.
func Quote(s string) []byte { return Marshal(s) }

// Marshal returns a value as JSON, with nothing escaped that need not be. A value that JSON does not have becomes null.
func Marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
