package wording

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/term"
)

// ScoreTable prints what survives of each kind.
func ScoreTable[T any](t *term.Table, list []T, of func(*T) (string, *compaction.Quality)) {
	first := true
	for i := range list {
		name, q := of(&list[i])
		if q == nil {
			continue
		}
		if first {
			t.Head("what survives", "id", "paths", "urls", "identifiers", "numbers", "errors", "files", "pins", "structure", "saved")
			first = false
		}
		t.Row("  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f%%", term.Clip(name, 36), kept(q.Paths), kept(q.URLs), kept(q.Identifiers),
			kept(q.Numbers), kept(q.Errors), kept(q.Files), kept(q.Pins), kept(q.Structure), 100*q.Savings)
	}
}

// kept is a score as the part of a whole.
func kept(s compaction.Survival) string {
	if s.Total == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", s.Kept, s.Total)
}

// Reasons lists why decisions were refusals.
func Reasons(counts map[string]int) string {
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[reason], reason))
	}
	if len(out) == 0 {
		return ""
	}
	return ", refused: " + strings.Join(out, ", ")
}

// MaxDecisions bounds how often one event counts.
const MaxDecisions = 10_000

// DecisionsOf is for how many decisions an event stands.
func DecisionsOf(e compaction.Event) int {
	if e.Decision == nil {
		return 0
	}
	return min(max(e.Count, 1), MaxDecisions)
}

// CompactionLine summarizes what happened in one line, or is empty.
func CompactionLine(e compaction.Event) string {
	switch e.Kind {
	case compaction.EventStarted:
		return fmt.Sprintf("compaction admitted and started in the background: %s summarizes %d messages, %s tokens",
			e.Policy, e.Messages, term.Thousands(e.PreTokens))
	case compaction.EventSwapped:
		if e.Masked > 0 {
			return fmt.Sprintf("%d outputs masked by %s after %d steps of the run: %s -> %s tokens", e.Masked, e.Policy, e.StepsMeanwhile, term.Thousands(e.PreTokens), term.Thousands(e.PostTokens))
		}
		line := fmt.Sprintf("summary arrived through the inbox after %s and %d steps of the run, swapped in: %s -> %s tokens, %.0f%% of paths, errors and identifiers survive",
			e.Duration.Round(time.Millisecond), e.StepsMeanwhile, term.Thousands(e.PreTokens), term.Thousands(e.PostTokens), 100*e.Quality.Overall)
		if e.Reason != "" {
			line += "; " + e.Policy + " wrote it, " + e.Reason
		}
		return line
	case compaction.EventRefused, compaction.EventFailed, compaction.EventRecovered, compaction.EventBreaker:
		return fmt.Sprintf("compaction %s: %s", e.Kind, e.Reason)
	case compaction.EventFallback:
		return "the window is exceeded: oldest rounds are cut until a compaction lands"
	default: // admissions and stale results are in the report
		return ""
	}
}

// Where the latencies of evidence come from.
const (
	SourceSteps = "measured_steps"
	SourceNone  = "not_measured"
)

// CompactionWords describes what was decided about a compaction.
func CompactionWords(e *compaction.Event) string {
	switch {
	case e.Decision != nil:
		return term.Plain(fmt.Sprintf("%s %s", e.Decision.Reason, e.Reason), MaxReason)
	case e.Kind == compaction.EventStarted:
		return fmt.Sprintf("%d messages are summarized in the background", e.Messages)
	case e.Kind == compaction.EventSwapped:
		return fmt.Sprintf("%s -> %s tokens, survival %s", term.Thousands(e.PreTokens), term.Thousands(e.PostTokens), Survival(*e))
	default:
		return term.Plain(e.Reason, MaxReason)
	}
}

// Survival counts what of the source is in the summary or the kept part.
func Survival(e compaction.Event) string {
	if e.Quality == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*e.Quality.Overall)
}

// MaxReason is how much of a reason the table shows, in characters.
const MaxReason = 160
