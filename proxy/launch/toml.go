package launch

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlDocument is a TOML text whose values are edited one by one.
type tomlDocument struct {
	data    []byte
	entries []tomlEntry
}

// tomlEntry is a header of a table, or a value.
type tomlEntry struct {
	path            []string
	header          bool
	start, from, to int // of the key, and the value; of the words of the header
}

func openTOML(data []byte) (*tomlDocument, error) {
	d := &tomlDocument{}
	err := d.become(data)
	return d, err
}

func (d *tomlDocument) become(data []byte) error {
	text := bytes.TrimPrefix(data, bom)
	if err := toml.Unmarshal(text, &map[string]any{}); err != nil {
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := at.Position()
			return fmt.Errorf("line %d: %w", line, err)
		}
		return err
	}
	r := tomlReader{shift: len(data) - len(text)}
	r.Reset(text)
	for r.NextExpression() {
		r.read(r.Expression())
	}
	d.data, d.entries = data, r.entries
	return r.Error()
}

// tomlReader reads a text into entries.
type tomlReader struct {
	unstable.Parser

	shift   int
	table   []string
	entries []tomlEntry
}

func (r *tomlReader) read(n *unstable.Node) {
	switch n.Kind {
	case unstable.Table, unstable.ArrayTable:
		e := r.key(n)
		r.table, e.header = e.path, true
		r.entries = append(r.entries, e)
	case unstable.KeyValue:
		r.pair(n, r.table)
	default: // a comment
	}
}

// key is an entry with the words and the place of a key.
func (r *tomlReader) key(n *unstable.Node) (e tomlEntry) {
	for it := n.Key(); it.Next(); {
		word := it.Node()
		from := r.shift + int(word.Raw.Offset)
		if e.path == nil {
			e.start, e.from = from, from
		}
		e.path, e.to = append(e.path, string(word.Data)), from+int(word.Raw.Length)
	}
	return e
}

// pair adds a value, and those of an inline table.
func (r *tomlReader) pair(n *unstable.Node, table []string) {
	e := r.key(n)
	e.path = slices.Concat(table, e.path)
	text := r.Data()
	e.from = e.to - r.shift + bytes.IndexByte(text[e.to-r.shift:], '=') + 1
	e.from += len(text[e.from:]) - len(bytes.TrimLeft(text[e.from:], " \t")) + r.shift
	e.to = r.shift + int(n.Raw.Offset) + int(n.Raw.Length)
	r.entries = append(r.entries, e)
	if v := n.Value(); v.Kind == unstable.InlineTable {
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				r.pair(it.Node(), e.path)
			}
		}
	}
}

// Bytes is the text.
func (d *tomlDocument) Bytes() []byte { return d.data }

func (d *tomlDocument) find(header bool, path []string) int {
	return slices.IndexFunc(d.entries, func(e tomlEntry) bool { return e.header == header && slices.Equal(e.path, path) })
}

// Raw is the source of a value, empty if there is none.
func (d *tomlDocument) Raw(path ...string) string {
	if i := d.find(false, path); i >= 0 {
		return string(d.data[d.entries[i].from:d.entries[i].to])
	}
	return ""
}

// Keys are those below a path.
func (d *tomlDocument) Keys(path ...string) (out []string) {
	for _, e := range d.entries {
		if n := len(path); len(e.path) > n && slices.Equal(e.path[:n], path) && !slices.Contains(out, e.path[n]) {
			out = append(out, e.path[n])
		}
	}
	return out
}

// Set sets a value from its source: a new one is at the top, or at the end of its table.
func (d *tomlDocument) Set(raw string, path ...string) error {
	if i := d.find(false, path); i >= 0 {
		return d.become(spliced(d.data, d.entries[i].from, d.entries[i].to, raw))
	}
	newline := "\n"
	if bytes.Contains(d.data, []byte("\r\n")) {
		newline = "\r\n"
	}
	table, key := path[:len(path)-1], path[len(path)-1]
	line := key + " = " + raw + newline
	if len(table) == 0 {
		top := len(d.data) - len(bytes.TrimPrefix(d.data, bom))
		return d.become(spliced(d.data, top, top, line))
	}
	at, before := len(d.data), ""
	if at > 0 && d.data[at-1] != '\n' {
		before = newline
	}
	if i := d.find(true, table); i >= 0 {
		for i+1 < len(d.entries) && !d.entries[i+1].header {
			i++
		}
		if _, at = d.line(i); d.data[at-1] == '\n' {
			before = ""
		}
	} else {
		before += "[" + strings.Join(table, ".") + "]" + newline
	}
	return d.become(spliced(d.data, at, at, before+line))
}

// line is where the lines of an entry begin and end.
func (d *tomlDocument) line(i int) (from, to int) {
	e := d.entries[i]
	from, to = bytes.LastIndexByte(d.data[:e.from], '\n')+1, len(d.data)
	if n := bytes.IndexByte(d.data[e.to:], '\n'); n >= 0 {
		to = e.to + n + 1
	}
	return from, to
}

// Remove takes the line of a value out, and the header of its table if that is empty then, but for those to keep.
func (d *tomlDocument) Remove(keep func(path []string) bool, path ...string) error {
	i := d.find(false, path)
	if i < 0 {
		return nil
	}
	from, to := d.line(i)
	if len(bytes.TrimSpace(bytes.TrimPrefix(d.data[from:d.entries[i].start], bom))) > 0 {
		return fmt.Errorf("%s is in an inline table; take it out by hand", strings.Join(path, "."))
	}
	if bytes.HasPrefix(d.data[from:], bom) {
		from += len(bom)
	}
	if err := d.become(spliced(d.data, from, to, "")); err != nil {
		return err
	}
	table := path[:len(path)-1]
	i = d.find(true, table)
	if i < 0 || len(d.Keys(table...)) > 0 || keep(table) {
		return nil
	}
	from, to = d.line(i)
	return d.become(spliced(d.data, from, to, ""))
}

func spliced(data []byte, from, to int, text string) []byte {
	return slices.Concat(data[:from], []byte(text), data[to:])
}

var bom = []byte("\ufeff") //nolint:gochecknoglobals // a constant

// tomlText is what the source of a string means; other values are their source.
func tomlText(raw string) string {
	var v struct{ V string }
	if toml.Unmarshal([]byte("V = "+raw), &v) != nil {
		return raw
	}
	return v.V
}
