package mcpproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// span is a place in a message.
type span struct{ start, end int }

func (s span) of(data []byte) []byte { return data[s.start:s.end] }

var (
	errTwice   = errors.New("a key is there twice")
	errSpelled = errors.New("a key is spelled in another case")
	errBoth    = errors.New("it is a request and an answer")
)

// spelled returns an error if an object has a key that is one of the names in another case: some readers do not tell them apart.
func spelled(fields map[string]span, names ...string) error {
	for key := range fields {
		if slices.ContainsFunc(names, func(name string) bool { return key != name && strings.EqualFold(key, name) }) {
			return errSpelled
		}
	}
	return nil
}

// members finds the values of the keys of an object.
func members(data []byte) (map[string]span, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("no object")
	}
	out := map[string]span{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		end := int(dec.InputOffset())
		name, _ := key.(string)
		if _, ok := out[name]; ok {
			return nil, errTwice
		}
		out[name] = span{end - len(raw), end}
	}
	return out, nil
}

// message is one JSON-RPC message, of which only the envelope is read.
type message struct {
	data   []byte
	fields map[string]span
	method string
	id     string // raw, empty for none
	key    string // the same for all spellings of an id
}

// odd reports whether a line is not one JSON value, or may be read as several lines. A lenient reader could find in it what
// the proxy does not.
func odd(line []byte) bool {
	t := bytes.TrimLeft(bytes.TrimRight(line, "\r\n"), " \t\r\n")
	return len(t) > 0 && (t[0] != '{' && t[0] != '[' || bytes.IndexByte(t, '\r') >= 0 || !json.Valid(t))
}

// read reads the envelope. What is no message of JSON-RPC has no fields. An error means that the two sides could read it in two ways.
func read(data []byte) (*message, error) {
	m := &message{data: data}
	fields, err := members(data)
	if errors.Is(err, errTwice) {
		return nil, err
	}
	if err != nil {
		return m, nil //nolint:nilerr // it passes as it is
	}
	if err := spelled(fields, "id", "method", "params", "result", "error"); err != nil {
		return nil, err
	}
	m.fields = fields
	if s, ok := fields["method"]; ok {
		_ = json.Unmarshal(s.of(data), &m.method)
	}
	if s, ok := fields["id"]; ok {
		m.id = string(s.of(data))
		m.key = keyOf(s.of(data))
	}
	err = m.clear()
	return m, err
}

// clear returns an error for a message that is a request and an answer, and for the keys of a call or a list of tools.
func (m *message) clear() error {
	_, result := m.fields["result"]
	_, failed := m.fields["error"]
	if m.method != "" && (result || failed) {
		return errBoth
	}
	for key, names := range map[string][]string{"params": seen[m.method], "result": {"tools"}} {
		inner, err := members(m.fields[key].of(m.data))
		if errors.Is(err, errTwice) {
			return err
		}
		if err := spelled(inner, names...); err != nil {
			return err
		}
	}
	return nil
}

// response reports whether the message answers a request.
func (m *message) response() bool { return m.id != "" && m.method == "" }

// keyOf is an id without its spelling: an answer to "a" may have "\u0061", one to 1 may have 1.0.
func keyOf(id []byte) string {
	var text string
	if json.Unmarshal(id, &text) == nil {
		return strconv.Quote(text)
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		return strconv.FormatInt(n, 10)
	}
	if f, err := strconv.ParseFloat(string(id), 64); err == nil {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return string(id)
}

// inner finds a member of an object in the message.
func (m *message) inner(outer, key string) (span, bool) {
	at, ok := m.fields[outer]
	if !ok {
		return span{}, false
	}
	s, ok := memberOf(at.of(m.data), key)
	return span{at.start + s.start, at.start + s.end}, ok
}

// memberOf finds a member of an object.
func memberOf(data []byte, key string) (span, bool) {
	fields, err := members(data)
	s, ok := fields[key]
	return s, ok && err == nil
}

// textOf is a member of an object, if it is a text.
func textOf(data []byte, key string) (s string) {
	if at, ok := memberOf(data, key); ok {
		_ = json.Unmarshal(at.of(data), &s)
	}
	return s
}

// text is a member of an object in the message, if it is a text.
func (m *message) text(outer, key string) string {
	return textOf(m.fields[outer].of(m.data), key)
}

// with returns the message with another value in a place.
func (m *message) with(at span, v any) []byte {
	return slices.Concat(m.data[:at.start], wire.Marshal(v), m.data[at.end:])
}

// batchOf returns the messages of a list, one line each; not ok means that the line is none.
func batchOf(line []byte) (all [][]byte, ok bool) {
	if t := bytes.TrimLeft(line, " \t\r\n"); len(t) == 0 || t[0] != '[' {
		return nil, false
	}
	var raw []json.RawMessage
	if json.Unmarshal(line, &raw) != nil {
		return nil, false
	}
	for _, one := range raw {
		var b bytes.Buffer
		_ = json.Compact(&b, one) // it was just read
		b.WriteByte('\n')
		all = append(all, b.Bytes())
	}
	return all, true
}
