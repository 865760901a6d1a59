package install

import (
	"encoding/json"
	"slices"
	"strings"
)

// Document is a JSON object whose values are edited one by one: all other bytes stay, and what is made parses.
type Document struct {
	data     []byte
	comments bool
	root     *node
}

// OpenDocument reads a file; an empty one is an empty object. Comments means that its agent takes them, and trailing commas.
func OpenDocument(data []byte, comments bool) (*Document, error) {
	if strings.TrimSpace(strings.TrimPrefix(string(data), string(bom))) == "" {
		data = slices.Concat(data, []byte("{}\n"))
	}
	d := &Document{comments: comments}
	err := d.become(data)
	return d, err
}

func (d *Document) become(data []byte) error {
	root, err := parse(data, d.comments)
	if err == nil && root.kind != '{' {
		err = &SyntaxError{Line: lineOf(data, root.start), Reason: "the file is no JSON object"}
	}
	if err == nil {
		d.data, d.root = data, root
	}
	return err
}

// Bytes is the text.
func (d *Document) Bytes() []byte { return d.data }

func (d *Document) find(path []string) *node {
	n := d.root
	for _, key := range path {
		if n = n.get(key); n == nil {
			return nil
		}
	}
	return n
}

// Raw is the source of a value, empty if there is none.
func (d *Document) Raw(path ...string) string {
	if n := d.find(path); n != nil {
		return string(d.data[n.start:n.end])
	}
	return ""
}

// Keys are those of an object.
func (d *Document) Keys(path ...string) (out []string) {
	if n := d.find(path); n != nil {
		for _, m := range n.members {
			out = append(out, m.key)
		}
	}
	return out
}

// Set sets a value from its source, and makes the objects on the way to it.
func (d *Document) Set(raw string, path ...string) error {
	n := d.root
	for i, key := range path {
		if n.kind != '{' {
			return &SyntaxError{Line: lineOf(d.data, n.start), Reason: strings.Join(path[:i], ".") + " is no object"}
		}
		next := n.get(key)
		if next == nil {
			v := any(json.RawMessage(raw))
			for _, name := range slices.Backward(path[i+1:]) {
				v = map[string]any{name: v}
			}
			return d.become(insert(d.data, n, key, v))
		}
		n = next
	}
	return d.become(splice(d.data, n.start, n.end, raw))
}

// Remove takes a value out, and the objects around it that are empty then, but for those to keep.
func (d *Document) Remove(keep func(path []string) bool, path ...string) error {
	for ; len(path) > 0; path = path[:len(path)-1] {
		in := d.find(path[:len(path)-1])
		if in == nil {
			return nil
		}
		i := slices.IndexFunc(in.members, func(m member) bool { return m.key == path[len(path)-1] })
		if i < 0 {
			return nil
		}
		if err := d.become(remove(d.data, in, i)); err != nil {
			return err
		}
		up := path[:len(path)-1]
		if in = d.find(up); len(up) == 0 || keep(up) || strings.TrimSpace(string(d.data[in.start+1:in.end-1])) != "" {
			return nil
		}
	}
	return nil
}
