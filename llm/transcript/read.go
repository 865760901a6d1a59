package transcript

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

const (
	defaultMaxBytes = 256 << 20
	defaultMaxLine  = 64 << 20
	maxBroken       = 1000
	maxKinds        = 64
)

// emptyConversation counts conversations without a message.
const emptyConversation = "empty conversation"

// Options bound and loosen the reading of a file. Zero fields mean defaults.
type Options struct {
	// Lenient leaves out lines that cannot be read and lists them in
	// [File.Broken]. By default the first one is an error. A file that is one
	// JSON document cannot be read in part.
	Lenient bool
	// MaxBytes bounds the file, 256 MiB by default.
	MaxBytes int64
	// MaxLine bounds a line of a file of JSON lines, 64 MiB by default.
	MaxLine int64
}

// Open reads the file at path. See [Read].
func Open(path string, o Options) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("transcript: %w", err)
	}
	defer f.Close()
	file, err := read(f, o)
	if err != nil {
		return nil, fmt.Errorf("transcript: %s: %w", filepath.Base(path), err)
	}
	return file, nil
}

// Read reads a recording to its end. JSON lines are read one at a time; a
// document that is a single JSON value is held in memory. Besides the errors of
// r it returns those listed in the package comment.
func Read(r io.Reader, o Options) (*File, error) {
	file, err := read(r, o)
	if err != nil {
		return nil, fmt.Errorf("transcript: %w", err)
	}
	return file, nil
}

// format reads records of one kind.
type format interface {
	// record takes a record that is valid JSON. Its error is about that record
	// only.
	record(line int, data []byte) error
	// finish returns what was read. It is called once.
	finish() (Format, []draft)
}

// reader is the reading of one file.
type reader struct {
	options Options
	file    File
	format  format
	// size counts messages and tool calls.
	size int
	// fields names those of the first message of a list.
	fields []string
	// undecided counts records before the one that tells the format.
	undecided int
}

func read(src io.Reader, o Options) (*File, error) {
	if o.MaxBytes < 0 || o.MaxLine < 0 {
		return nil, errors.New("options: MaxBytes and MaxLine must not be negative")
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	o.MaxLine = cmp.Or(o.MaxLine, defaultMaxLine)
	r := &reader{options: o, file: File{Skipped: map[string]int{}}}
	s := newSource(src, o)
	c, err := s.start()
	if err != nil {
		return nil, err
	}
	switch c {
	case '{':
		err = r.lines(s)
	case '[':
		err = r.wholeDocument(s)
	default:
		err = &LineError{Line: s.line + 1, Err: fmt.Errorf("no JSON: %w", ErrUnknownFormat)}
	}
	if err != nil {
		return nil, err
	}
	return r.finish()
}

// lines reads JSON lines. When the first line is only the beginning of a value
// the file may be a document that is spread over lines.
func (r *reader) lines(s *source) error {
	start := s.line
	line, err := s.next()
	if err == nil && truncated(checkJSON(line), line) {
		head := append(slices.Clone(line), '\n')
		tail, readErr := s.rest()
		if readErr != nil {
			return readErr
		}
		data := slices.Concat(head, tail)
		invalid := checkJSON(data)
		if second := secondLine(tail); invalid == nil || checkJSON(second) != nil || first(second) != '{' {
			return r.document(data, start+1, invalid)
		}
		s = newSource(bytes.NewReader(data), r.options)
		s.line = start
		line, err = s.next()
	}
	for ; !errors.Is(err, io.EOF); line, err = s.next() {
		if err == nil {
			err = r.line(s.line, line)
		}
		if err == nil {
			continue
		}
		if err := r.broken(err); err != nil {
			return err
		}
	}
	return nil
}

func secondLine(tail []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimLeft(tail, " \t\r\n"), []byte("\n"))
	return line
}

// broken decides whether reading continues after an error.
func (r *reader) broken(err error) error {
	le, ok := errors.AsType[*LineError](err)
	if !ok || !r.options.Lenient {
		return err
	}
	if len(r.file.Broken) == maxBroken {
		return fmt.Errorf("%w: more than %d broken lines, the last is %w", ErrTooLarge, maxBroken, err)
	}
	r.file.Broken = append(r.file.Broken, *le)
	return nil
}

func (r *reader) line(n int, data []byte) error {
	if err := checkJSON(data); err != nil {
		if truncated(err, data) {
			err = fmt.Errorf("%w (the line is cut off)", err)
		}
		return &LineError{Line: n, Err: err}
	}
	return r.record(n, data)
}

// record gives a record to the format, which the first records decide.
func (r *reader) record(n int, data []byte) error {
	if r.format == nil {
		f, err := r.detect(data)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if f == nil {
			return nil
		}
		r.format = f
	}
	err := r.format.record(n, data)
	if err == nil || r.size > maxEntries {
		return err
	}
	if _, ok := errors.AsType[*LineError](err); ok {
		return err
	}
	return &LineError{Line: n, Err: err}
}

// add appends a message to a draft within the limits of the file.
func (r *reader) add(d *draft, e Entry, c content) error {
	if r.size += c.size(); r.size > maxEntries {
		return fmt.Errorf("line %d: %w: more than %d messages and tool calls", e.Line, ErrTooLarge, maxEntries)
	}
	for _, kind := range c.unknown {
		r.skip("content block " + kind)
	}
	d.add(e, c)
	return nil
}

func (r *reader) skip(kind string) {
	kind = clip(kind, maxTitle)
	if _, ok := r.file.Skipped[kind]; !ok && len(r.file.Skipped) >= maxKinds {
		kind = "other"
	}
	r.file.Skipped[kind]++
}

func (r *reader) finish() (*File, error) {
	if r.format == nil {
		if len(r.file.Broken) > 0 {
			return nil, fmt.Errorf("%w (%w)", ErrUnknownFormat, &r.file.Broken[0])
		}
		return nil, ErrUnknownFormat
	}
	var drafts []draft
	r.file.Format, drafts = r.format.finish()
	ids := uniquer{}
	empty := 0 // messages of conversations that nothing could be read of
	for i := range drafts {
		d := &drafts[i]
		c := Conversation{ID: d.id, Title: d.title, Partial: d.partial}
		c.Entries, c.Notes = repair(d)
		if len(c.Entries) == 0 { // nothing, or results without calls
			r.skip(emptyConversation)
			continue
		}
		if !readable(c.Entries) {
			empty += len(c.Entries)
		}
		c.Compactions = place(d.cuts, c.Entries)
		nameMessages(c.Entries)
		slices.SortStableFunc(c.Notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
		if c.ID == "" || len(c.ID) > maxIDLength {
			c.ID = fmt.Sprintf("c%04d", len(r.file.Conversations)+1)
		}
		c.ID = ids.take(c.ID)
		r.file.Conversations = append(r.file.Conversations, c)
	}
	if len(r.file.Conversations) == 0 {
		if seen := r.seen(); seen != "" {
			return nil, fmt.Errorf("%w in the format %s; found are %s", ErrNoMessages, r.file.Format, seen)
		}
		return nil, ErrNoMessages
	}
	if total := r.file.messages(); empty == total {
		return nil, r.unreadable(total)
	}
	return &r.file, nil
}

// readable reports whether any message has content or calls. A system prompt
// does not count besides other messages.
func readable(entries []Entry) bool {
	system := true
	for i := range entries {
		m := &entries[i].Message
		system = system && m.Role == abi.RoleSystem
		if m.Role != abi.RoleSystem && m.Role != abi.RoleTool && (len(m.ToolCalls) > 0 || slices.ContainsFunc(m.Content, hasContent)) {
			return true
		}
	}
	return system
}

func hasContent(b abi.ContentBlock) bool { return b.Type != abi.BlockText || b.Text != "" }

func (f *File) messages() int {
	n := 0
	for i := range f.Conversations {
		n += len(f.Conversations[i].Entries)
	}
	return n
}

// unreadable is the error of a recording whose messages are all empty, which
// most likely are in a format that is not known.
func (r *reader) unreadable(messages int) error {
	return fmt.Errorf("%w: nothing could be read of %d message(s) in the format %s (%s); %s",
		ErrNoMessages, messages, r.file.Format, r.seen(), understood)
}

// seen names the fields of the first message, and what was left out.
func (r *reader) seen() string {
	var seen []string
	if len(r.fields) > 0 {
		seen = append(seen, "fields "+strings.Join(r.fields, ", "))
	}
	for _, kind := range slices.Sorted(maps.Keys(r.file.Skipped)) {
		if kind == emptyConversation {
			continue
		}
		seen = append(seen, fmt.Sprintf("%d x %s", r.file.Skipped[kind], kind))
	}
	return strings.Join(seen, "; ")
}
