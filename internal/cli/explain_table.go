package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/thread"
)

// maxReason is how much of a reason the table shows, in characters.
const maxReason = 160

// explainTable prints a record.
func explainTable(t *table, r *thread.Record, all bool) {
	first := r.Starts[0]
	t.row("run %s  thread %s  agent %s", first.Run.RunID, plain(first.Run.ThreadID, 60), dash(plain(first.Run.AgentID, 40)))
	if first.Source != "" {
		t.row("source %s", plain(first.Source, 200))
	}
	for i, s := range r.Starts {
		verb := "started"
		if i > 0 {
			verb = "went on"
		}
		t.row("%s %s%s", verb, s.At.Format(time.DateTime), ending(r, i))
	}
	if r.Unreadable > 0 {
		t.row("%d lines of the record cannot be read and are left out", r.Unreadable)
	}
	t.head("decisions", "step", "phase", "plugin", "saw", "took", "verdict", "what and why")
	silent, shown := 0, 0
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Verdict == thread.NoOpinion && !all {
			silent++
			continue
		}
		shown++
		entryRows(t, e)
	}
	if shown == 0 {
		t.row("  none")
	}
	if silent > 0 {
		t.row("  and %d calls of hooks that had nothing to say (--all shows them)", silent)
	}
}

// ending describes how the time after a start ended.
func ending(r *thread.Record, i int) string {
	if i >= len(r.Ends) {
		return ", and the record does not say how it ended: the process was ended, or goes on"
	}
	e := r.Ends[i]
	why := []string{plain(e.Type, 40)}
	for _, more := range []string{e.Code, e.Detail} {
		if more != "" {
			why = append(why, plain(more, maxReason))
		}
	}
	text := fmt.Sprintf(", ended %s after %d steps: %s", e.At.Format(time.DateTime), e.Steps, strings.Join(why, ": "))
	if e.Dropped > 0 {
		text += fmt.Sprintf(" (%d decisions had no room in the record)", e.Dropped)
	}
	return text
}

// entryRows prints a decision, with a row for each thing that it was about.
func entryRows(t *table, e *thread.Decision) {
	if e.Compaction != nil {
		t.row("  \t%s\t%s\t\t\t%s\t%s", "compaction", dash(plain(e.Compaction.Policy, 30)), plain(string(e.Compaction.Kind), 20), compactionWords(e.Compaction))
		return
	}
	who := plain(e.Plugin, 40)
	if e.Handler != "" {
		who = plain(e.Handler, 60)
	}
	saw := "-"
	if e.Saw != nil {
		saw = fmt.Sprintf("%d of %d, r%d", e.Saw.Messages, e.Saw.Total, e.Saw.Revision)
	}
	words, phase := words(e), string(e.Phase)
	if e.Tool != "" {
		phase += " " + clip(e.Tool, 24)
	}
	t.row("  %d\t%s\t%s\t%s\t%.1f ms\t%s\t%s", e.Step, plain(phase, 48), who, saw, e.DurationMS, plain(string(e.Verdict), 12), words[0])
	for _, w := range words[1:] {
		t.row("  \t\t\t\t\t\t%s", w)
	}
}

// words describes what was decided, a line for each thing.
func words(e *thread.Decision) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, plain(fmt.Sprintf(format, args...), 2*maxReason)) }
	switch by := strings.Join(e.RewrittenBy, ", "); {
	case e.Recheck:
		say("judged again: %s changed the arguments", clip(by, maxReason))
	case by != "":
		say("of a call whose arguments %s changed", clip(by, maxReason))
	}
	if e.Gate != nil {
		text := fmt.Sprintf("%s %s (%s)", e.Gate.Action, e.Tool, e.CallID)
		if e.Gate.Reason != "" {
			text += ": " + clip(e.Gate.Reason, maxReason)
		}
		say("%s%s", text, mark(e.Gate.Overridden))
	}
	for _, c := range e.Applied {
		text := strings.TrimSpace(c.What + " " + clip(c.Target, 80))
		if c.Note != "" {
			text += ": " + clip(c.Note, maxReason)
		}
		say("%s%s", text, mark(c.Overridden))
	}
	for _, c := range e.Refused {
		say("%s: %s", c.What, clip(c.Reason, maxReason))
	}
	if e.DeferredBy != "" {
		say("%s; called again on that", clip(e.DeferredBy, maxReason))
	}
	if e.Error != "" && len(e.Refused) == 0 {
		say("%s", clip(e.Error, maxReason))
	}
	if e.Quarantined && len(e.Refused) == 0 {
		say("in quarantine from now on")
	}
	if len(out) == 0 {
		out = []string{"-"}
	}
	return out
}

func mark(overridden bool) string {
	if overridden {
		return " [overridden: another decision counts]"
	}
	return ""
}

// compactionWords describes what was decided about a compaction.
func compactionWords(e *compaction.Event) string {
	switch {
	case e.Decision != nil:
		return plain(fmt.Sprintf("%s %s", e.Decision.Reason, e.Reason), maxReason)
	case e.Kind == compaction.EventStarted:
		return fmt.Sprintf("%d messages are summarized in the background", e.Messages)
	case e.Kind == compaction.EventSwapped:
		return fmt.Sprintf("%s -> %s tokens, survival %s", thousands(e.PreTokens), thousands(e.PostTokens), survival(*e))
	default:
		return plain(e.Reason, maxReason)
	}
}
