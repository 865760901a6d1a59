package transcript

import (
	"bytes"
	"errors"
	"fmt"
)

// lineCounter turns growing offsets into line numbers.
type lineCounter struct {
	data   []byte
	offset int
	line   int
}

func (c *lineCounter) at(offset int) int {
	offset = min(offset, len(c.data))
	if offset > c.offset {
		c.line += bytes.Count(c.data[c.offset:offset], []byte("\n"))
		c.offset = offset
	}
	return c.line
}

func (r *reader) wholeDocument(s *source) error {
	start := s.line + 1
	data, err := s.rest()
	if err != nil {
		return err
	}
	return r.document(data, start, checkJSON(data))
}

// document reads a file that is one JSON value and begins at a line; invalid is
// what [checkJSON] said of it.
func (r *reader) document(data []byte, line int, invalid error) error {
	lines := &lineCounter{data: data, line: line}
	if invalid != nil {
		if se, ok := errors.AsType[*syntaxError](invalid); ok {
			line = lines.at(se.offset - 1)
		}
		return &LineError{Line: line, Err: invalid}
	}
	if first(data) == '{' {
		return r.record(line, data)
	}
	for offset, part := range elements(data) {
		n := lines.at(offset)
		err := r.record(n, part)
		if err != nil {
			if err := r.broken(err); err != nil {
				return err
			}
		}
	}
	if r.format == nil && r.undecided == 0 && len(r.file.Broken) == 0 {
		return fmt.Errorf("an empty list: %w", ErrNoMessages)
	}
	return nil
}
