package explaincmd

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/cli/wording"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/thread"
)

// explainTable prints a record.
func explainTable(t *term.Table, r *thread.Record, all bool) {
	first := r.Starts[0]
	t.Row("run %s  thread %s  agent %s", first.Run.RunID, term.Plain(first.Run.ThreadID, 60), term.Dash(term.Plain(first.Run.AgentID, 40)))
	if first.Source != "" {
		t.Row("source %s", term.Plain(first.Source, 200))
	}
	for i, s := range r.Starts {
		verb := "started"
		if i > 0 {
			verb = "went on"
		}
		t.Row("%s %s%s", verb, s.At.Format(time.DateTime), ending(r, i))
	}
	if r.Unreadable > 0 {
		t.Row("%s of the record cannot be read and left out", term.Counted(r.Unreadable, "line"))
	}
	t.Head("decisions", "step", "phase", "plugin", "saw", "took", "verdict", "what and why")
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
		t.Row("  none")
	}
	if silent > 0 {
		t.Row("  and %s of hooks that had nothing to say (--all shows them)", term.Counted(silent, "call"))
	}
}

// ending describes how the time after a start ended.
func ending(r *thread.Record, i int) string {
	if i >= len(r.Ends) {
		return ", and the record does not say how it ended: the process was ended, or it still runs"
	}
	e := r.Ends[i]
	why := []string{term.Plain(e.Type, 40)}
	for _, more := range []string{e.Code, e.Detail} {
		if more != "" {
			why = append(why, term.Plain(more, wording.MaxReason))
		}
	}
	text := fmt.Sprintf(", ended %s after %s: %s", e.At.Format(time.DateTime), term.Counted(e.Steps, "step"), strings.Join(why, ": "))
	if e.Dropped > 0 {
		text += fmt.Sprintf(" (%s no room in the record)", term.Counted(e.Dropped, "decision had", "decisions had"))
	}
	return text
}

// entryRows prints a decision, with a row for each thing that it was about.
func entryRows(t *term.Table, e *thread.Decision) {
	if e.Compaction != nil {
		t.Row("  \t%s\t%s\t\t\t%s\t%s", "compaction", term.Dash(term.Plain(e.Compaction.Policy, 30)), term.Plain(string(e.Compaction.Kind), 20), wording.CompactionWords(e.Compaction))
		return
	}
	if a := e.Answer; a != nil {
		why := fmt.Sprintf("%s (%s), ticket %s, at %s", e.Tool, e.CallID, a.Ticket, e.At.Format(time.DateTime))
		if a.Reason != "" {
			why += ": " + term.Clip(a.Reason, wording.MaxReason)
		}
		t.Row("  %d\t%s\t%s\t\t\t%s\t%s", e.Step, "answer "+term.Plain(e.Tool, 24), term.Plain(cmp.Or(a.By, "someone"), 40), term.Plain(a.Choice, 12), term.Plain(why, 2*wording.MaxReason))
		return
	}
	who := term.Plain(e.Plugin, 40)
	if e.Handler != "" {
		who = term.Plain(e.Handler, 60)
	}
	saw := "-"
	if e.Saw != nil {
		saw = fmt.Sprintf("%d of %d, r%d", e.Saw.Messages, e.Saw.Total, e.Saw.Revision)
	}
	words, phase := words(e), string(e.Phase)
	if e.Tool != "" {
		phase += " " + term.Clip(e.Tool, 24)
	}
	t.Row("  %d\t%s\t%s\t%s\t%.1f ms\t%s\t%s", e.Step, term.Plain(phase, 48), who, saw, e.DurationMS, term.Plain(string(e.Verdict), 12), words[0])
	for _, w := range words[1:] {
		t.Row("  \t\t\t\t\t\t%s", w)
	}
}

// words describes what was decided, a line for each thing.
func words(e *thread.Decision) []string {
	var out []string
	say := func(format string, args ...any) {
		out = append(out, term.Plain(fmt.Sprintf(format, args...), 2*wording.MaxReason))
	}
	switch by := strings.Join(e.RewrittenBy, ", "); {
	case e.Recheck:
		say("judged again: %s changed the arguments", term.Clip(by, wording.MaxReason))
	case by != "":
		say("of a call whose arguments %s changed", term.Clip(by, wording.MaxReason))
	}
	if e.Gate != nil {
		text := fmt.Sprintf("%s %s (%s)", e.Gate.Action, e.Tool, e.CallID)
		if e.Gate.Reason != "" {
			text += ": " + term.Clip(e.Gate.Reason, wording.MaxReason)
		}
		say("%s%s", text, mark(e.Gate.Overridden))
	}
	for _, c := range e.Applied {
		text := strings.TrimSpace(c.What + " " + term.Clip(c.Target, 80))
		if c.Note != "" {
			text += ": " + term.Clip(c.Note, wording.MaxReason)
		}
		say("%s%s", text, mark(c.Overridden))
	}
	for _, c := range e.Refused {
		say("%s: %s", c.What, term.Clip(c.Reason, wording.MaxReason))
	}
	if e.DeferredBy != "" {
		say("%s; called again on that", term.Clip(e.DeferredBy, wording.MaxReason))
	}
	if e.Error != "" && len(e.Refused) == 0 {
		say("%s", term.Clip(e.Error, wording.MaxReason))
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
