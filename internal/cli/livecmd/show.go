package livecmd

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/cli/wording"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/mailbox"
)

// Bounds of what a line shows of a call, in characters.
const (
	shownArguments = 160
	shownResult    = 120
)

// show shows an event of a run.
func (v *live) show(e mailbox.Event) {
	if e.Type == mortise.EventCompaction {
		var c compaction.Event
		if json.Unmarshal(e.Data, &c) == nil {
			v.note("%s", wording.CompactionLine(c))
		}
		return
	}
	var event agent.Event
	if json.Unmarshal(e.Data, &event) != nil {
		return // text, or one whose fields have other types: none of those below
	}
	switch agent.EventType(e.Type) {
	case agent.EventStepStart:
		v.out.step()
	case agent.EventTextDelta:
		v.out.text(event.Delta)
	case agent.EventReasoningDelta:
		v.out.reasoning(event.Delta)
	case agent.EventToolCallReady:
		v.note("tool %s", callLine(event.Call))
	case agent.EventToolCallDone, agent.EventToolCallResumed:
		if why, denied := v.denied[event.TargetID]; denied && agent.EventType(e.Type) == agent.EventToolCallResumed {
			v.note("  not executed: %s", term.Plain(why, shownResult))
			return
		}
		v.note("%s", resultLine(event.Call, event.Result))
	case agent.EventToolCallCancel:
		v.note("  not executed: %s", term.Plain(event.Reason, shownResult))
	case agent.EventStreamReset:
		v.out.step()
		v.note("the answer begins again: %s", term.Plain(event.Reason, shownResult))
	case agent.EventRunFinish:
		v.outcome = event.Outcome
	default: // the others do not show
	}
}

// note prints a line about the run, unless the events themselves are printed.
func (v *live) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" && !v.out.json {
		v.out.say("%s", text)
	}
}

// callLine is a call in one line.
func callLine(c *abi.ToolCall) string {
	if c == nil {
		return ""
	}
	return term.Plain(c.Name, 100) + " " + term.Plain(term.AsJSON(c.Arguments), shownArguments)
}

func resultLine(c *abi.ToolCall, r *abi.ToolResult) string {
	if c == nil || r == nil {
		return ""
	}
	if r.Status == abi.ToolPending {
		return "  " + term.Plain(c.Name, 100) + " waits for a decision"
	}
	text := r.Message
	for _, b := range r.Content {
		if text == "" && b.Type == abi.BlockText {
			text = b.Text
		}
	}
	if text == "" && r.Data != nil {
		text = term.AsJSON(r.Data)
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if rest != "" {
		first += fmt.Sprintf(" ... (%s characters)", term.Thousands(int64(len(text))))
	}
	return fmt.Sprintf("  %s: %s", r.Status, term.Plain(first, shownResult))
}
