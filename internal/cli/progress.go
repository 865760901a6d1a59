package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
)

// redraw is the least time between two drawings of the live line.
const redraw = 80 * time.Millisecond

// plainEvery is how many steps pass between two plain lines.
const plainEvery = 50

// progress shows where a run is: one live line on a terminal, plain lines
// elsewhere. It is safe for concurrent use.
type progress struct {
	out  io.Writer
	live bool
	// size returns the width of the terminal, which changes.
	size  func() int
	width int

	mu     sync.Mutex
	drawn  time.Time
	state  progressState
	shown  int
	closed bool
}

// progressState is what the line says.
type progressState struct {
	thread     string
	done, all  int
	phase      string
	step       int
	tokens     int64
	view       int64
	compacting map[string]time.Time
}

func newProgress(out io.Writer, quiet bool) *progress {
	p := &progress{out: out, width: 80}
	p.state.compacting = make(map[string]time.Time)
	if quiet {
		p.out = io.Discard
		return p
	}
	if isTerminal(out) {
		p.live, p.size = true, func() int { return terminalWidth(out) }
	}
	return p
}

// say prints a line of its own.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// position renders the position in the recording and the size of the context.
func (p *progress) position(thread string, done, all int, tokens, view int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.state
	s.thread, s.done, s.all, s.tokens, s.view = thread, done, all, tokens, view
}

func (p *progress) event(e agent.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Type {
	case agent.EventPhase:
		p.state.phase = string(e.Phase)
	case agent.EventInferenceComplete:
		p.state.step++
		if !p.live && p.state.step%plainEvery == 0 {
			fmt.Fprintln(p.out, p.line())
		}
	case agent.EventRunFinish:
		if e.Outcome != nil && (e.Outcome.Termination.Type == agent.Blocked || e.Outcome.Termination.Type == agent.Failed) {
			p.wipe()
			fmt.Fprintf(p.out, "run %s: %s\n", e.Outcome.Termination.Type, e.Outcome.Termination.Detail)
		}
	default: // the others do not show
	}
	p.draw(false)
}

func (p *progress) compaction(e compaction.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case compaction.EventStarted:
		p.state.compacting[e.Thread] = e.At
	case compaction.EventSwapped, compaction.EventRefused, compaction.EventFailed:
		delete(p.state.compacting, e.Thread)
	default: // the others say nothing about what is under way
	}
	if text := compactionLine(e); text != "" {
		p.wipe()
		fmt.Fprintln(p.out, text)
	}
	p.draw(true)
}

// line is the live line without its end.
func (p *progress) line() string {
	s := &p.state
	text := fmt.Sprintf("%s  %d/%d  step %d  %-19s %s tokens, model sees %s",
		clip(s.thread, 24), s.done, s.all, s.step, s.phase, thousands(s.tokens), thousands(s.view))
	if len(s.compacting) > 0 {
		text += "  compacting"
	}
	return text
}

func (p *progress) draw(now bool) {
	if !p.live || p.closed || p.state.thread == "" || (!now && time.Since(p.drawn) < redraw) {
		return
	}
	p.drawn = time.Now()
	p.resize()
	p.overwrite(p.line())
}

// overwrite writes the live line over the one before.
func (p *progress) overwrite(text string) {
	text = clip(text, p.width-1)
	n := utf8.RuneCountInString(text)
	fmt.Fprintf(p.out, "\r%s%s", text, strings.Repeat(" ", max(0, p.shown-n)))
	p.shown = n
}

// leastWidth is the least width of a terminal that is believed.
const leastWidth = 20

// resize follows the width of the terminal. A line that is longer now fills several rows, which
// are cleared.
func (p *progress) resize() {
	if w := p.size(); w > leastWidth {
		p.width = w
	}
	if rows := max(0, p.shown-1) / p.width; rows > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\r\x1b[J", rows)
		p.shown = 0
	}
}

// wipe clears the live line before something else is printed.
func (p *progress) wipe() {
	if !p.live {
		return
	}
	p.resize()
	if p.shown > 0 {
		fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", p.shown))
		p.shown = 0
	}
}

// close ends the live line.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	p.closed = true
}

func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:max(0, n-1)]) + "…"
}

// thousands writes 146213 as 146.2k, and millions likewise.
func thousands(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n >= 1_000_000_000:
		return fmt.Sprintf("%.1fG", float64(n)/1e9)
	case n >= 10_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1fk", float64(n)/1000)
}

// writer is for logs: each write becomes lines of their own.
func (p *progress) writer() io.Writer { return progressWriter{p} }

type progressWriter struct{ p *progress }

func (w progressWriter) Write(b []byte) (int, error) {
	w.p.say("%s", strings.TrimRight(string(b), "\n"))
	return len(b), nil
}
