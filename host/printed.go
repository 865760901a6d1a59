package host

import (
	"bytes"
	"io"
	"log/slog"
)

// maxPrinted is how much of a printed line is kept, in bytes.
const maxPrinted = 4 << 10

// printer takes what a guest writes to a standard stream. With the log grant each line is a log
// message, and else it is counted. It never fails.
type printer struct {
	log    *guestLog
	stream string
	// also gets the same bytes.
	also io.Writer

	line []byte
	// open reports that the line in progress has begun.
	open bool
}

// Write implements io.Writer.
func (p *printer) Write(b []byte) (int, error) {
	n := len(b)
	if p.also != nil {
		_, _ = p.also.Write(b)
	}
	for len(b) > 0 {
		part, rest, ended := bytes.Cut(b, []byte{'\n'})
		b, p.open = rest, true
		if p.log.granted {
			p.line = append(p.line, part[:min(len(part), maxPrinted-len(p.line))]...)
		}
		if ended {
			p.flush()
		}
	}
	return n, nil
}

// flush ends the line in progress, if there is one.
func (p *printer) flush() {
	if !p.open {
		return
	}
	p.open = false
	p.log.print(p.stream, string(p.line))
	p.line = p.line[:0]
}

// print logs a line, or counts it when there is no grant.
func (g *guestLog) print(stream, line string) {
	if !g.granted {
		g.printed++
		return
	}
	g.stream = stream
	g.text(slog.LevelInfo, line)
	g.stream = ""
}
