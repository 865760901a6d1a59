package term

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// redraw is the least time between two drawings of the live line.
const redraw = 80 * time.Millisecond

// Progress says lines, and on a terminal has a live line below them. It is safe for concurrent use.
type Progress struct {
	out  io.Writer
	Live bool
	// size returns the width of the terminal, which changes.
	size  func() int
	width int

	mu     sync.Mutex
	drawn  time.Time
	shown  int
	closed bool
}

// NewProgress writes to out; one that is quiet writes nothing.
func NewProgress(out io.Writer, quiet bool) *Progress {
	if quiet {
		return &Progress{out: io.Discard}
	}
	p := &Progress{out: out, Live: IsTerminal(out)}
	if p.Live {
		p.width, p.size = 80, func() int { return terminalWidth(out) }
	}
	return p
}

// Say prints a line of its own.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// Draw draws the live line, on a terminal alone, and not so often that it flickers, unless it has to be now.
func (p *Progress) Draw(now bool, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.Live || p.closed || !now && time.Since(p.drawn) < redraw {
		return
	}
	p.drawn = time.Now()
	p.resize()
	text = Clip(text, p.width-1)
	n := utf8.RuneCountInString(text)
	fmt.Fprintf(p.out, "\r%s%s", text, strings.Repeat(" ", max(0, p.shown-n)))
	p.shown = n
}

// resize follows the width of the terminal. A line that is longer now fills several rows, which
// are cleared.
func (p *Progress) resize() {
	if w := p.size(); w > leastWidth {
		p.width = w
	}
	if rows := max(0, p.shown-1) / p.width; rows > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\r\x1b[J", rows)
		p.shown = 0
	}
}

// wipe clears the live line before something else is printed.
func (p *Progress) wipe() {
	if !p.Live {
		return
	}
	p.resize()
	if p.shown > 0 {
		fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", p.shown))
		p.shown = 0
	}
}

// Close ends the live line.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	p.closed = true
}

// Write is for logs: each write becomes lines of their own.
func (p *Progress) Write(b []byte) (int, error) {
	p.Say("%s", strings.TrimRight(string(b), "\n"))
	return len(b), nil
}
