package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/compaction"
)

// scoreTable prints what survives of each kind.
func scoreTable[T any](t *table, list []T, of func(*T) (string, *compaction.Quality)) {
	first := true
	for i := range list {
		name, q := of(&list[i])
		if q == nil {
			continue
		}
		if first {
			t.head("what survives", "id", "paths", "urls", "identifiers", "numbers", "errors", "files", "pins", "structure", "saved")
			first = false
		}
		t.row("  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f%%", clip(name, 36), kept(q.Paths), kept(q.URLs), kept(q.Identifiers),
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

// reasons lists why decisions were refusals.
func reasons(counts map[string]int) string {
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[reason], reason))
	}
	if len(out) == 0 {
		return ""
	}
	return ", refused: " + strings.Join(out, ", ")
}
