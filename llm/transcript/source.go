package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// source reads a file line by line within the limits.
type source struct {
	r       *bufio.Reader
	maxLine int64
	line    int // number of the line that was read last
	buf     []byte
}

func newSource(r io.Reader, o Options) *source {
	return &source{
		r:       bufio.NewReaderSize(&capped{r: r, left: o.MaxBytes, limit: o.MaxBytes}, 64<<10),
		maxLine: o.MaxLine,
	}
}

// start checks that the file is text, steps over white space and returns the
// first byte of the content.
func (s *source) start() (byte, error) {
	head, err := s.r.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if bytes.HasPrefix(head, []byte("\xEF\xBB\xBF")) {
		_, _ = s.r.Discard(3)
		head = head[3:]
	}
	if err := checkText(head); err != nil {
		return 0, err
	}
	for {
		c, err := s.r.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, ErrEmpty
		}
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			s.line++
		case ' ', '\t', '\r':
		default:
			return c, s.r.UnreadByte()
		}
	}
}

func checkText(head []byte) error {
	switch {
	case bytes.HasPrefix(head, []byte("\xFF\xFE")), bytes.HasPrefix(head, []byte("\xFE\xFF")),
		len(head) >= 4 && (head[0] == 0) != (head[1] == 0) && (head[2] == 0) != (head[3] == 0):
		return fmt.Errorf("%w: the file is UTF-16 text, convert it to UTF-8", ErrUnknownFormat)
	case bytes.HasPrefix(head, []byte("\x1F\x8B")):
		return fmt.Errorf("%w: the file is gzip data, unpack it first", ErrUnknownFormat)
	case bytes.HasPrefix(head, []byte("\x28\xB5\x2F\xFD")):
		return fmt.Errorf("%w: the file is Zstandard data, unpack it first", ErrUnknownFormat)
	case bytes.IndexByte(head, 0) >= 0:
		return fmt.Errorf("%w: the file is binary", ErrUnknownFormat)
	}
	return nil
}

// next returns the next line that is not blank, trimmed. It is valid until the
// following call. A line beyond the limit is read over and a *LineError is
// returned; the line after it can be read. The end is io.EOF, and any other
// error is final.
func (s *source) next() ([]byte, error) {
	for {
		s.line++
		long, err := s.fill()
		end := errors.Is(err, io.EOF)
		line := bytes.TrimSpace(s.buf)
		switch {
		case err != nil && !end:
			return nil, fmt.Errorf("line %d: %w", s.line, err)
		case long:
			return nil, &LineError{Line: s.line, Err: fmt.Errorf("%w: more than %d bytes in one line (MaxLine)", ErrTooLarge, s.maxLine)}
		case len(line) > 0:
			return line, nil
		case end:
			return nil, io.EOF
		}
	}
}

// fill reads a line into the buffer, or over it when it is too long.
func (s *source) fill() (long bool, err error) {
	s.buf = s.buf[:0]
	for {
		part, err := s.r.ReadSlice('\n')
		if int64(len(s.buf)+len(part)) > s.maxLine+1 { // one more for the newline
			long = true
		}
		if !long {
			s.buf = append(s.buf, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return long, err
		}
	}
}

// rest returns everything that was not read yet.
func (s *source) rest() ([]byte, error) { return io.ReadAll(s.r) }

// capped fails with ErrTooLarge where io.LimitReader would feign an end.
type capped struct {
	r           io.Reader
	left, limit int64
}

func (c *capped) Read(p []byte) (int, error) {
	if c.left < 0 {
		return 0, fmt.Errorf("%w: more than %d bytes (MaxBytes)", ErrTooLarge, c.limit)
	}
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return n, nil // the next read reports it
	}
	return n, err
}
