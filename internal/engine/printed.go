package engine

import (
	"bytes"
	"io"
	"log/slog"
)

// maxPrinted is how much of a printed line is kept, in bytes.
const maxPrinted = 4 << 10

// Printer takes what a guest writes to a standard stream. With the log grant each line is a log
// message, and else it is counted. It never fails.
type Printer struct {
	Log    *GuestLog
	Stream string
	// Also gets the same bytes.
	Also io.Writer

	line []byte
	// open reports that the line in progress has begun.
	open bool
}

// Write implements io.Writer.
func (p *Printer) Write(b []byte) (int, error) {
	n := len(b)
	if p.Also != nil {
		_, _ = p.Also.Write(b)
	}
	for len(b) > 0 {
		part, rest, ended := bytes.Cut(b, []byte{'\n'})
		b, p.open = rest, true
		if p.Log.Granted {
			p.line = append(p.line, part[:min(len(part), maxPrinted-len(p.line))]...)
		}
		if ended {
			p.Flush()
		}
	}
	return n, nil
}

// Flush ends the line in progress, if there is one.
func (p *Printer) Flush() {
	if !p.open {
		return
	}
	p.open = false
	p.Log.print(p.Stream, string(p.line))
	p.line = p.line[:0]
}

// print logs a line, or counts it when there is no grant.
func (g *GuestLog) print(stream, line string) {
	if !g.Granted {
		g.Printed++
		return
	}
	g.stream = stream
	g.Text(slog.LevelInfo, line)
	g.stream = ""
}
