package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
)

const (
	maxDepth  = 512
	maxValues = 4 << 20
)

// syntaxError is invalid JSON at a byte offset, which is turned into a line.
type syntaxError struct {
	offset int
	reason string
}

func (e *syntaxError) Error() string { return "invalid JSON: " + e.reason }

// checkJSON reports whether data is one JSON value of a bearable shape. The
// shape is checked first: it needs no memory, whatever the data holds.
func checkJSON(data []byte) error {
	if err := checkShape(data); err != nil {
		return err
	}
	if json.Valid(data) {
		return nil
	}
	var raw json.RawMessage
	err := json.Unmarshal(data, &raw)
	if se, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &syntaxError{offset: int(se.Offset), reason: se.Error()}
	}
	return &syntaxError{offset: len(data), reason: fmt.Sprint(err)}
}

func checkShape(data []byte) error {
	depth, values, quoted := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			values++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
		if depth > maxDepth {
			return fmt.Errorf("%w: JSON is nested deeper than %d levels", ErrTooLarge, maxDepth)
		}
		if values > maxValues {
			return fmt.Errorf("%w: more than %d JSON values in one record", ErrTooLarge, maxValues)
		}
	}
	return nil
}

// truncated reports whether data is the beginning of a JSON value.
func truncated(err error, data []byte) bool {
	se, ok := errors.AsType[*syntaxError](err)
	return ok && se.offset >= len(data) && se.reason == "unexpected end of JSON input"
}

// elements yields the parts of a valid JSON array or object with their offsets;
// the parts of an object are `"key": value`. Nothing is copied.
func elements(data []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		open := bytes.IndexAny(data, "[{")
		if open < 0 {
			return
		}
		depth, quoted, start := 0, false, open+1
		for i := open; i < len(data); i++ {
			switch c := data[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '{' || c == '[':
				depth++
			case c == ',' && depth == 1:
				if !yieldPart(yield, data, start, i) {
					return
				}
				start = i + 1
			case c == '}' || c == ']':
				depth--
				if depth == 0 {
					yieldPart(yield, data, start, i)
					return
				}
			}
		}
	}
}

func yieldPart(yield func(int, []byte) bool, data []byte, from, to int) bool {
	part := bytes.TrimLeft(data[from:to], " \t\r\n")
	offset := to - len(part)
	part = bytes.TrimRight(part, " \t\r\n")
	if len(part) == 0 {
		return true
	}
	return yield(offset, part)
}

// object is a JSON object whose values are not decoded yet.
type object map[string]value

// value is an undecoded JSON value and its offset in the object.
type value struct {
	offset int
	raw    []byte
}

// parseObject reports false when valid JSON is not an object. Of a key that
// stands twice the last value counts, as everywhere in Go.
func parseObject(data []byte) (object, bool) {
	if first(data) != '{' {
		return nil, false
	}
	o := object{}
	for offset, part := range elements(data) {
		end := 1
		for end < len(part) && part[end] != '"' {
			if part[end] == '\\' {
				end++
			}
			end++
		}
		var key string
		if json.Unmarshal(part[:end+1], &key) != nil {
			continue
		}
		rest := part[end+1:]
		colon := bytes.IndexByte(rest, ':')
		raw := bytes.TrimLeft(rest[colon+1:], " \t\r\n")
		o[key] = value{offset: offset + len(part) - len(raw), raw: raw}
	}
	return o, true
}

func (o object) is(key string, kind byte) bool {
	v, ok := o[key]
	return ok && first(v.raw) == kind
}

// text returns a string field, and "" for anything else.
func (o object) text(key string) string {
	var s looseString
	if json.Unmarshal(o[key].raw, &s) != nil {
		return ""
	}
	return string(s)
}

// first returns the first byte of a JSON value, 0 when there is none.
func first(data []byte) byte {
	data = bytes.TrimLeft(data, " \t\r\n")
	if len(data) == 0 {
		return 0
	}
	return data[0]
}

// looseString reads strings and numbers and takes anything else as empty: a
// field that is only carried along must not make a line unreadable.
type looseString string

// UnmarshalJSON never fails on valid JSON.
func (s *looseString) UnmarshalJSON(data []byte) error {
	*s = ""
	switch c := first(data); {
	case c == '"':
		var v string
		if err := json.Unmarshal(data, &v); err != nil {
			return err
		}
		*s = looseString(v)
	case c == '-' || c >= '0' && c <= '9':
		*s = looseString(data)
	}
	return nil
}

// looseBool is true for true and false for anything else.
type looseBool bool

// UnmarshalJSON never fails.
func (b *looseBool) UnmarshalJSON(data []byte) error {
	*b = string(data) == "true"
	return nil
}

// loose is nil when the JSON is not of the type.
type loose[T any] struct{ value *T }

// UnmarshalJSON never fails.
func (l *loose[T]) UnmarshalJSON(data []byte) error {
	var v T
	if c := first(data); (c == '{' || c == '[') && json.Unmarshal(data, &v) == nil {
		l.value = &v
	}
	return nil
}

// dynamic decodes JSON to the dynamic values of the abi. An empty text is nil,
// and text that is not JSON of a bearable shape is kept as a string.
func dynamic(data []byte) any {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil
	}
	if checkJSON(data) != nil {
		return string(bytes.ToValidUTF8(data, []byte("\uFFFD")))
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(bytes.ToValidUTF8(data, []byte("\uFFFD")))
	}
	return plain(v)
}

func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plain(e)
		}
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(string(v), 64); err == nil {
			return f
		}
		return string(v) // beyond a float64: the digits are all there is
	}
	return v
}
