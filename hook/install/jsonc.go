package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// SyntaxError is what is wrong with a file, and where.
type SyntaxError struct {
	Line   int
	Reason string
}

// Error implements error.
func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// node is a value of a JSON text, with its place in it.
type node struct {
	kind       byte // { [ " or 0 for others
	start, end int
	members    []member
	items      []*node
}

type member struct {
	key      string
	keyStart int
	value    *node
}

// get returns a member of an object, or nil.
func (n *node) get(key string) *node {
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// maxNesting is how deep a settings file may nest.
const maxNesting = 200

// parser reads JSON, and comments and trailing commas where the agent takes them.
type parser struct {
	data     []byte
	at       int
	comments bool
	depth    int
}

var bom = []byte("\ufeff") //nolint:gochecknoglobals // a constant

// parse reads a whole text.
func parse(data []byte, comments bool) (*node, error) {
	p := &parser{data: data, comments: comments}
	if bytes.HasPrefix(data, bom) {
		p.at = len(bom)
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	n, err := p.value()
	if err != nil {
		return nil, err
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.at < len(data) {
		return nil, p.fail("there is something after the end")
	}
	return n, nil
}

func lineOf(data []byte, at int) int { return bytes.Count(data[:min(at, len(data))], []byte("\n")) + 1 }

func (p *parser) fail(reason string) error {
	return &SyntaxError{Line: lineOf(p.data, p.at), Reason: reason}
}

func (p *parser) peek() byte {
	if p.at < len(p.data) {
		return p.data[p.at]
	}
	return 0
}

// space skips white space and comments.
func (p *parser) space() error {
	for p.at < len(p.data) {
		rest := p.data[p.at:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			p.at++
		case bytes.HasPrefix(rest, []byte("//")) || bytes.HasPrefix(rest, []byte("/*")):
			if !p.comments {
				return p.fail("this agent takes no comments in its settings")
			}
			end, skip := []byte("\n"), 0
			if rest[1] == '*' {
				end, skip = []byte("*/"), 2
			}
			i := bytes.Index(rest[2:], end)
			if i < 0 && skip > 0 {
				return p.fail("the comment does not end")
			}
			if i < 0 {
				p.at = len(p.data)
				return nil
			}
			p.at += 2 + i + skip
		default:
			return nil
		}
	}
	return nil
}

func (p *parser) value() (*node, error) {
	p.depth++
	if p.depth > maxNesting {
		return nil, p.fail("it nests too deep")
	}
	defer func() { p.depth-- }()
	n := &node{kind: p.peek(), start: p.at}
	var err error
	switch n.kind {
	case '{':
		err = p.list('}', func() error { return p.member(n) })
	case '[':
		err = p.list(']', func() error {
			item, err := p.value()
			n.items = append(n.items, item)
			return err
		})
	case '"':
		_, err = p.text()
	default:
		n.kind = 0
		for p.at < len(p.data) && strings.IndexByte(",]} \t\r\n/", p.data[p.at]) < 0 {
			p.at++
		}
		if !json.Valid(p.data[n.start:p.at]) {
			p.at = n.start
			err = p.fail("this is no JSON value")
		}
	}
	n.end = p.at
	return n, err
}

// list reads what is between brackets.
func (p *parser) list(end byte, one func() error) error {
	p.at++
	for first := true; ; first = false {
		if err := p.space(); err != nil {
			return err
		}
		if p.peek() == end && (first || p.comments) {
			p.at++
			return nil
		}
		if err := one(); err != nil {
			return err
		}
		if err := p.space(); err != nil {
			return err
		}
		switch p.peek() {
		case ',':
			p.at++
		case end:
			p.at++
			return nil
		default:
			return p.fail(fmt.Sprintf("expected a comma or %q", string(end)))
		}
	}
}

func (p *parser) member(n *node) error {
	m := member{keyStart: p.at}
	if p.peek() != '"' {
		return p.fail("expected a key in quotes")
	}
	var err error
	if m.key, err = p.text(); err != nil {
		return err
	}
	if n.get(m.key) != nil {
		p.at = m.keyStart
		return p.fail(fmt.Sprintf("the key %q is there twice", m.key))
	}
	if err := p.space(); err != nil {
		return err
	}
	if p.peek() != ':' {
		return p.fail("expected a colon")
	}
	p.at++
	if err := p.space(); err != nil {
		return err
	}
	if m.value, err = p.value(); err != nil {
		return err
	}
	n.members = append(n.members, m)
	return nil
}

// text reads a string.
func (p *parser) text() (string, error) {
	start := p.at
	for p.at++; p.at < len(p.data); p.at++ {
		switch p.data[p.at] {
		case '\\':
			p.at++
		case '\n':
			return "", p.fail("the string does not end on its line")
		case '"':
			p.at++
			var s string
			if err := json.Unmarshal(p.data[start:p.at], &s); err != nil {
				p.at = start
				return "", p.fail("the string is not valid")
			}
			return s, nil
		}
	}
	return "", p.fail("the string does not end")
}

// style is how a file is written.
type style struct{ newline, indent string }

func styleOf(data []byte) style {
	s := style{"\n", "  "}
	if bytes.Contains(data, []byte("\r\n")) {
		s.newline = "\r\n"
	}
	for l := range bytes.Lines(data) {
		trimmed := bytes.TrimLeft(l, " \t")
		if n := len(l) - len(trimmed); n > 0 && len(bytes.TrimSpace(l)) > 0 {
			s.indent = string(l[:n])
			break
		}
	}
	return s
}

// lineIndent is the white space at the begin of the line of a place.
func lineIndent(data []byte, at int) string {
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	if start == 0 {
		start = len(data) - len(bytes.TrimPrefix(data, bom))
	}
	end := start
	for end < at && (data[end] == ' ' || data[end] == '\t') {
		end++
	}
	return string(data[start:end])
}

// pretty writes a value in the style of a file.
func (s style) pretty(v any, indent string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent(indent, s.indent)
	if err := enc.Encode(v); err != nil {
		return "null" // values are ours
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", s.newline)
}

func splice(data []byte, from, to int, text string) []byte {
	out := make([]byte, 0, len(data)+len(text))
	return append(append(append(out, data[:from]...), text...), data[to:]...)
}

// insert adds a value at the end of a list or an object; key is for an object.
func insert(data []byte, in *node, key string, v any) []byte {
	s := styleOf(data)
	outer := lineIndent(data, in.start)
	inner := outer + s.indent
	last := -1
	for _, item := range in.items {
		last = item.end
		inner = lineIndent(data, item.start)
	}
	for _, m := range in.members {
		last = m.value.end
		inner = lineIndent(data, m.keyStart)
	}
	text := s.pretty(v, inner)
	if in.kind == '{' {
		text = s.pretty(key, "") + ": " + text
	}
	if last < 0 {
		inside := strings.TrimRight(string(data[in.start+1:in.end-1]), " \t\r\n") // comments
		return splice(data, in.start+1+len(inside), in.end-1, s.newline+inner+text+s.newline+outer)
	}
	return splice(data, last, last, ","+s.newline+inner+text)
}

// remove takes an item or a member out, with the comma after or before it. Comments stay.
func remove(data []byte, in *node, index int) []byte {
	starts, ends := in.places()
	from, to, before := starts[index], ends[index], in.start
	if index > 0 {
		before = comma(data, ends[index-1])
	}
	after := comma(data, to)
	if strings.TrimSpace(string(data[before+1:from])) == "" {
		from = before + 1
	}
	switch {
	case after >= 0:
		data = splice(splice(data, after, after+1, ""), from, to, "")
	case index > 0:
		data = splice(splice(data, from, to, ""), before, before+1, "")
	default:
		data = splice(data, from, to, "")
	}
	if len(starts) > 1 {
		return data
	}
	end := in.end - (to - from)
	if after >= 0 {
		end--
	}
	if strings.TrimSpace(string(data[in.start+1:end-1])) == "" {
		data = splice(data, in.start+1, end-1, "")
	}
	return data
}

// comma is the place of the comma that follows a value, or -1.
func comma(data []byte, end int) int {
	p := &parser{data: data, at: end, comments: true}
	if p.space() != nil || p.peek() != ',' {
		return -1
	}
	return p.at
}

func (n *node) places() (starts, ends []int) {
	for _, item := range n.items {
		starts, ends = append(starts, item.start), append(ends, item.end)
	}
	for _, m := range n.members {
		starts, ends = append(starts, m.keyStart), append(ends, m.value.end)
	}
	return starts, ends
}
