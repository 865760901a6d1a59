package replaycmd

import (
	"fmt"
	"sync"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/cli/wording"
	"github.com/mortise-dev/mortise/internal/term"
)

// plainEvery is how many steps pass between two plain lines.
const plainEvery = 50

// replayProgress shows where a replay is: in the live line of a terminal, in plain lines elsewhere. It is safe for concurrent use.
type replayProgress struct {
	*term.Progress

	mu         sync.Mutex
	thread     string
	done, all  int
	phase      string
	step       int
	tokens     int64
	view       int64
	compacting map[string]bool
}

func newReplayProgress(p *term.Progress) *replayProgress {
	return &replayProgress{Progress: p, compacting: make(map[string]bool)}
}

// position notes the position in the recording and the size of the context.
func (p *replayProgress) position(thread string, done, all int, tokens, view int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.thread, p.done, p.all, p.tokens, p.view = thread, done, all, tokens, view
}

func (p *replayProgress) event(e agent.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Type {
	case agent.EventPhase:
		p.phase = string(e.Phase)
	case agent.EventInferenceComplete:
		p.step++
		if !p.Live && p.step%plainEvery == 0 {
			p.Say("%s", p.line())
		}
	case agent.EventRunFinish:
		if e.Outcome != nil && (e.Outcome.Termination.Type == agent.Blocked || e.Outcome.Termination.Type == agent.Failed) {
			p.Say("run %s: %s", e.Outcome.Termination.Type, e.Outcome.Termination.Detail)
		}
	default: // the others do not show
	}
	p.redraw(false)
}

func (p *replayProgress) compaction(e compaction.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Kind {
	case compaction.EventStarted:
		p.compacting[e.Thread] = true
	case compaction.EventSwapped, compaction.EventRefused, compaction.EventFailed:
		delete(p.compacting, e.Thread)
	default: // the others say nothing about what is under way
	}
	if text := wording.CompactionLine(e); text != "" {
		p.Say("%s", text)
	}
	p.redraw(true)
}

// redraw draws the live line, once a thread is known.
func (p *replayProgress) redraw(now bool) {
	if p.thread != "" {
		p.Draw(now, p.line())
	}
}

// line is the live line.
func (p *replayProgress) line() string {
	text := fmt.Sprintf("%s  %d/%d  step %d  %-19s %s tokens, model sees %s",
		term.Clip(p.thread, 24), p.done, p.all, p.step, p.phase, term.Thousands(p.tokens), term.Thousands(p.view))
	if len(p.compacting) > 0 {
		text += "  compacting"
	}
	return text
}
