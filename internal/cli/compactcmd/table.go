package compactcmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/compaction/eval"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/summarizers"
)

// EvalReport is what mortise compact eval prints.
type EvalReport struct {
	eval.Report
	Sets []EvalSet `json:"sets"`
	Measured
}

// Measured is what every report of a measurement holds.
type Measured struct {
	Modules []EvalModule `json:"modules"`
	// LeftOut lists what was not measured, with the reason.
	LeftOut []string `json:"left_out,omitempty"`
	WallMS  int64    `json:"wall_ms"`
}

// EvalSet is what a set was measured on.
type EvalSet struct {
	Name          string `json:"name"`
	Conversations int    `json:"conversations"`
	Probes        int    `json:"probes"`
	// Derived probes were made from the sessions.
	Derived bool `json:"derived,omitempty"`
}

// EvalModule is a module that was measured.
type EvalModule struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

func (r *EvalReport) set(s *eval.Set, derived bool) {
	r.Sets = append(r.Sets, EvalSet{Name: s.Name, Conversations: len(s.Conversations), Probes: len(s.Probes), Derived: derived})
}

func (r *Measured) module(p *summarizers.Policy) {
	m := EvalModule{Name: p.Description().Name, Version: p.Description().Version, SHA256: p.Info().SHA256}
	if !slices.Contains(r.Modules, m) {
		r.Modules = append(r.Modules, m)
	}
}

func (r *Measured) leftOut(p *evalProgress, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.LeftOut = append(r.LeftOut, text)
	p.Say("left out: %s", text)
}

// write prints the report.
func (r *EvalReport) write(out io.Writer, format string) error {
	if format == "json" {
		return term.WriteJSON(out, r)
	}
	t := term.NewTable(out)
	for _, m := range r.Modules {
		t.Row("module %s %s, sha256 %s", m.Name, m.Version, term.Clip(m.SHA256, 13))
	}
	for _, s := range r.Sets {
		r.setTables(t, s)
	}
	t.Row("\nscores are literal/grounded: the string survives / near a content word of its question or sentence")
	t.Row("k: compactions in a chain, each with the budget of the whole session (said: of what was said so far)")
	t.Row("kept: what the last compaction of the chain has of what the first one kept of the same facts; - of nothing")
	t.Row("saved tokens, prose (words in runs of five as said), modified files named: after one compaction; %.1f s", float64(r.WallMS)/1000)
	return t.End()
}

// setTables writes a table for each budget of a set.
func (r *EvalReport) setTables(t *term.Table, s EvalSet) {
	var budgets []eval.Budget
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Set == s.Name && !slices.Contains(budgets, c.Budget) {
			budgets = append(budgets, c.Budget)
		}
	}
	for _, b := range budgets {
		rows := r.rows(s.Name, b)
		title := fmt.Sprintf("%s at %s: %s in %s", s.Name, b, term.Counted(rows[0].cells[0].Probes, "probe"), term.Counted(s.Conversations, "conversation"))
		if s.Derived {
			title += ", made from them"
		}
		if n := rows[0].cells[0].Unstated; n > 0 {
			title += fmt.Sprintf(" (%d more are about words that were never said)", n)
		}
		t.Head(title, rows[0].columns()...)
		for _, row := range rows {
			t.Row("  %s", row.line())
		}
		for _, row := range rows {
			row.notes(t)
		}
	}
}

// evalRow is a contender on a set at a budget.
type evalRow struct {
	name  string
	cells []*eval.Cell
}

func (r *EvalReport) rows(set string, b eval.Budget) []*evalRow {
	var out []*evalRow
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Set != set || c.Budget != b {
			continue
		}
		if len(out) == 0 || out[len(out)-1].name != c.Contender {
			out = append(out, &evalRow{name: c.Contender})
		}
		last := out[len(out)-1]
		last.cells = append(last.cells, c)
	}
	return out
}

// label names the chain of a cell.
func label(c *eval.Cell) string {
	if c.Growth == eval.OfSaid {
		return fmt.Sprintf("k=%d said", c.Chain)
	}
	return fmt.Sprintf("k=%d", c.Chain)
}

// longest are the cells of the longest chain, one for each growth.
func (w *evalRow) longest() []*eval.Cell {
	var out []*eval.Cell
	for _, c := range w.cells {
		switch {
		case c.Chain == 1:
			continue
		case len(out) > 0 && c.Chain > out[0].Chain:
			out = out[:0]
		case len(out) > 0 && c.Chain < out[0].Chain:
			continue
		}
		out = append(out, c)
	}
	return out
}

func (w *evalRow) columns() []string {
	out := []string{"", "kind"}
	for _, c := range w.cells {
		out = append(out, label(c))
	}
	for _, c := range w.longest() {
		out = append(out, "kept "+label(c))
	}
	return append(out, "saved", "prose", "files", "mean", "max")
}

func (w *evalRow) line() string {
	first := w.cells[0]
	out := []string{first.Contender, string(first.Kind)}
	for _, c := range w.cells {
		out = append(out, scores(c.Score))
	}
	for _, c := range w.longest() {
		if c.Known == nil {
			out = append(out, "-")
			continue
		}
		out = append(out, part(c.Known.First.Literal > 0, c.Known.Kept.Literal)+"/"+part(c.Known.First.Grounded > 0, c.Known.Kept.Grounded))
	}
	longest := first.Max
	for _, c := range w.cells {
		longest = max(longest, c.Max)
	}
	return strings.Join(append(out, fmt.Sprintf("%.0f%%", 100*first.Savings), fmt.Sprintf("%.2f", first.Structure.Prose),
		part(first.Structure.Modifying > 0, first.Structure.Artifacts), fmt.Sprintf("%.1f ms", first.Mean), fmt.Sprintf("%.0f ms", longest)), "\t")
}

// part is a part of a whole, a dash of nothing.
func part(some bool, of float64) string {
	if !some {
		return "-"
	}
	return fmt.Sprintf("%.2f", of)
}

func scores(s eval.Score) string { return fmt.Sprintf("%.2f/%.2f", s.Literal, s.Grounded) }

// notes list the faults in the texts of a row.
func (w *evalRow) notes(t *term.Table) {
	for _, c := range w.cells {
		if c.Failures > 0 {
			t.Row("  note: %s at %s failed %d of %d times: %s", c.Contender, label(c), c.Failures, c.Compactions, term.Clip(c.Error, 160))
		}
		for _, check := range slices.Sorted(maps.Keys(c.Structure.Failed)) {
			t.Row("  note: %s at %s: check %q does not hold for %d of %d texts", c.Contender, label(c), check, c.Structure.Failed[check], c.Compactions)
		}
	}
}
