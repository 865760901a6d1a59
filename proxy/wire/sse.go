package wire

import (
	"bytes"
	"slices"
)

// Event is one event of a stream. Raw has all of its bytes, the empty line included.
type Event struct {
	Raw []byte
	// Name is that of the event line, Data the joined data lines. ID and Retry are for who resumes the stream.
	Name, ID, Retry string
	Data            []byte
}

// maxEvent is how long an event may be; what is longer is passed in pieces, as events without data.
const maxEvent = 16 << 20

// Splitter splits a stream of server-sent events, however its bytes arrive.
type Splitter struct {
	buf     []byte
	scanned int
}

// Write adds bytes of the stream.
func (s *Splitter) Write(p []byte) (int, error) {
	s.buf = append(s.buf, p...)
	return len(p), nil
}

// Next returns the next event, or false until more bytes arrive. Its slices stay valid.
func (s *Splitter) Next() (Event, bool) {
	end := s.end()
	if end == 0 && len(s.buf) > maxEvent {
		end = len(s.buf)
	}
	if end == 0 {
		return Event{}, false
	}
	raw := bytes.Clone(s.buf[:end])
	s.buf = s.buf[:copy(s.buf, s.buf[end:])]
	s.scanned = 0
	return parseEvent(raw), true
}

// end finds the end of the first event: an empty line, with LF, CRLF or CR.
func (s *Splitter) end() int {
	for i := max(0, s.scanned-3); i < len(s.buf); i++ {
		if s.buf[i] != '\n' && s.buf[i] != '\r' {
			continue
		}
		s.scanned = i
		next, open := lineEnd(s.buf, i)
		if open || next == len(s.buf) {
			return 0
		}
		if s.buf[next] != '\n' && s.buf[next] != '\r' {
			continue
		}
		// A second carriage return may be half of a line end, unless lines end with one alone.
		if end, open := lineEnd(s.buf, next); !open || s.buf[i] == '\r' && next == i+1 {
			return end
		}
		return 0
	}
	s.scanned = len(s.buf)
	return 0
}

// lineEnd returns the index behind the end of a line at i; open means that a line feed may still follow.
func lineEnd(b []byte, i int) (next int, open bool) {
	if b[i] == '\n' {
		return i + 1, false
	}
	if i+1 == len(b) {
		return i + 1, true
	}
	if b[i+1] == '\n' {
		return i + 2, false
	}
	return i + 1, false
}

func parseEvent(raw []byte) Event {
	e := Event{Raw: raw}
	lines := 0
	for line := range bytes.FieldsFuncSeq(raw, func(r rune) bool { return r == '\n' || r == '\r' }) {
		field, val, _ := bytes.Cut(line, []byte(":"))
		val = bytes.TrimPrefix(val, []byte(" "))
		switch string(field) {
		case "event":
			e.Name = string(val)
		case "id":
			e.ID = string(val)
		case "retry":
			e.Retry = string(val)
		case "data":
			lines++
			if lines == 1 {
				e.Data = slices.Clip(val) // so that more lines do not overwrite Raw
			} else {
				e.Data = append(append(e.Data, '\n'), val...)
			}
		}
	}
	return e
}

// NewEvent makes an event.
func NewEvent(name string, data []byte) Event {
	e := Event{Name: name, Data: data}
	if name != "" {
		e.Raw = append(append(e.Raw, "event: "...), name...)
		e.Raw = append(e.Raw, '\n')
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		e.Raw = append(append(append(e.Raw, "data: "...), line...), '\n')
	}
	e.Raw = append(e.Raw, '\n')
	return e
}

// WithData returns the event with other data. Its comments go: the data that it had may be in them.
func (e Event) WithData(data []byte) Event { return NewEvent(e.Name, data) }
