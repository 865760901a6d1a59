package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// tomlDocument is a TOML text whose values are edited one by one. Its grammar is read, not what its values mean.
type tomlDocument struct {
	data    []byte
	entries []tomlEntry
}

// tomlEntry is a header of a table, or a value.
type tomlEntry struct {
	path            []string
	header          bool
	start, from, to int // of the key, and the value; of the header
}

func openTOML(data []byte) (*tomlDocument, error) {
	d := &tomlDocument{}
	err := d.become(data)
	return d, err
}

func (d *tomlDocument) become(data []byte) error {
	r := tomlReader{data: data}
	if err := r.read(); err != nil {
		return fmt.Errorf("line %d: %w", bytes.Count(data[:min(r.at, len(data))], []byte("\n"))+1, err)
	}
	d.data, d.entries = data, r.entries
	return nil
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
	if len(bytes.TrimSpace(d.data[from:d.entries[i].start])) > 0 {
		return fmt.Errorf("%s is in an inline table; take it out by hand", strings.Join(path, "."))
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

var (
	tomlBare  = regexp.MustCompile(`^[A-Za-z0-9_-]+`)
	tomlPlain = regexp.MustCompile(`^(?:true|false|[+-]?(?:inf|nan)|[+-]?[0-9][0-9A-Za-z_.:+-]*(?: [0-9]{2}:[0-9:.Z+-]+)?)`)
	// tomlStrings are in the order in which they are tried.
	tomlStrings = regexp.MustCompile(`^(?s:"""(?:[^"\\]|\\.|"{1,2}(?:[^"\\]|\\.))*"{3,5}|'''(?:[^']|'{1,2}[^'])*'{3,5}|"(?:[^"\\\n]|\\[^\n])*"|'[^'\n]*')`)
)

// tomlReader reads a text into entries.
type tomlReader struct {
	data    []byte
	at      int
	table   []string
	lists   []tomlList
	entries []tomlEntry
}

// tomlList is the newest table of a list of them.
type tomlList struct{ name, path []string }

func (r *tomlReader) read() error {
	r.at = len(r.data) - len(bytes.TrimPrefix(r.data, bom))
	for r.space(true); r.at < len(r.data); r.space(true) {
		var err error
		if r.data[r.at] == '[' {
			err = r.header()
		} else {
			err = r.pair(r.table)
		}
		if err != nil {
			return err
		}
		r.space(false)
		if r.at < len(r.data) && r.data[r.at] != '\n' {
			return fmt.Errorf("there is %.20q after the value", r.data[r.at:])
		}
	}
	return nil
}

// space skips white space and comments, and the ends of lines as well.
func (r *tomlReader) space(lines bool) {
	for r.at < len(r.data) {
		switch c := r.data[r.at]; {
		case c == ' ' || c == '\t' || c == '\r' || lines && c == '\n':
			r.at++
		case c == '#':
			for r.at < len(r.data) && r.data[r.at] != '\n' {
				r.at++
			}
		default:
			return
		}
	}
}

// take skips a text if it is next.
func (r *tomlReader) take(text string) bool {
	if !bytes.HasPrefix(r.data[r.at:], []byte(text)) {
		return false
	}
	r.at += len(text)
	return true
}

func (r *tomlReader) match(p *regexp.Regexp) string {
	m := p.Find(r.data[r.at:])
	r.at += len(m)
	return string(m)
}

func (r *tomlReader) add(e tomlEntry) error {
	if slices.ContainsFunc(r.entries, func(o tomlEntry) bool { return slices.Equal(o.path, e.path) && o.header == e.header }) {
		return fmt.Errorf("%s is there twice", strings.Join(e.path, "."))
	}
	r.entries = append(r.entries, e)
	return nil
}

func (r *tomlReader) header() error {
	from, end := r.at, "]"
	r.at++
	if r.take("[") {
		end = "]]"
	}
	path, err := r.key()
	if err != nil {
		return err
	}
	if !r.take(end) {
		return fmt.Errorf("expected %q", end)
	}
	name := path
	for _, l := range slices.Backward(r.lists) {
		if n := len(l.name); len(name) > n && slices.Equal(name[:n], l.name) {
			path = slices.Concat(l.path, name[n:])
			break
		}
	}
	if end == "]]" {
		path = append(slices.Clip(path), fmt.Sprint("[", len(r.lists), "]")) // each is another table
		r.lists = append(r.lists, tomlList{name, path})
	}
	r.table = path
	return r.add(tomlEntry{path: path, header: true, start: from, from: from, to: r.at})
}

// key reads words with dots between them.
func (r *tomlReader) key() (path []string, err error) {
	for {
		r.space(false)
		word := r.match(tomlBare)
		if word == "" {
			if word = tomlText(r.match(tomlStrings)); word == "" {
				return nil, fmt.Errorf("expected a key, not %.20q", r.data[r.at:])
			}
		}
		path = append(path, word)
		r.space(false)
		if !r.take(".") {
			return path, nil
		}
	}
}

func (r *tomlReader) pair(table []string) error {
	start := r.at
	key, err := r.key()
	if err != nil {
		return err
	}
	if !r.take("=") {
		return fmt.Errorf("expected = after %s", strings.Join(key, "."))
	}
	r.space(false)
	path, from := slices.Concat(table, key), r.at
	if err := r.value(path); err != nil {
		return err
	}
	return r.add(tomlEntry{path: path, start: start, from: from, to: r.at})
}

func (r *tomlReader) value(path []string) error {
	switch {
	case r.take("["):
		n := 0
		return r.list("]", func() error {
			n++
			return r.value(append(slices.Clip(path), fmt.Sprint("[", n, "]")))
		})
	case r.take("{"):
		return r.list("}", func() error { return r.pair(path) })
	}
	if r.match(tomlStrings) == "" && r.match(tomlPlain) == "" {
		return fmt.Errorf("%s has no value that is whole: %.20q", strings.Join(path, "."), r.data[r.at:])
	}
	return nil
}

// list reads what is between brackets.
func (r *tomlReader) list(end string, one func() error) error {
	for {
		r.space(true)
		if r.take(end) {
			return nil
		}
		if err := one(); err != nil {
			return err
		}
		r.space(true)
		if !r.take(",") && !bytes.HasPrefix(r.data[r.at:], []byte(end)) {
			return fmt.Errorf("expected a comma or %q", end)
		}
	}
}

// tomlText is what the source of a string means; other values are their source.
func tomlText(raw string) (s string) {
	switch {
	case len(raw) >= 6 && (strings.HasPrefix(raw, `"""`) || strings.HasPrefix(raw, "'''")):
		return strings.TrimPrefix(raw[3:len(raw)-3], "\n")
	case strings.HasPrefix(raw, "'"):
		return strings.Trim(raw, "'")
	case json.Unmarshal([]byte(raw), &s) == nil:
		return s
	}
	return raw
}
