package compactcmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/mortise-dev/mortise/compaction/eval/future"
	"github.com/mortise-dev/mortise/internal/term"
)

// FutureReport is what mortise compact eval --future prints.
type FutureReport struct {
	future.Report
	// Compactions are those of the sessions that were measured; the first of each is
	// a window.
	Compactions int `json:"compactions"`
	Measured
}

// write prints the report.
func (r *FutureReport) write(out io.Writer, format string) error {
	if format == "json" {
		return term.WriteJSON(out, r)
	}
	t := term.NewTable(out)
	for _, m := range r.Modules {
		t.Row("module %s %s, sha256 %s", m.Name, m.Version, term.Clip(m.SHA256, 13))
	}
	facts, bytes := 0, 0
	for i := range r.Windows {
		facts += len(r.Windows[i].Needed)
		bytes += r.Windows[i].Bytes
	}
	t.Row("%s, %s needed later, %d KB compacted", term.Counted(len(r.Windows), "compaction"), term.Counted(facts, "fact"), bytes/1000)
	for i := range r.Rows {
		if w := &r.Rows[i]; w.Chain == 1 && (i == 0 || r.Rows[i-1].Size != w.Size) && r.first(i) {
			r.size(t, w.Size)
		}
	}
	for _, text := range futureLegend() {
		t.Row("%s", text)
	}
	t.Row("%.1f s", float64(r.WallMS)/1000)
	return t.End()
}

func futureLegend() []string {
	return []string{
		"\nneeded: facts that the agent writes into a call later, before anything shows them again: strict (lenient) [95 % interval of strict, of eight compactions and more]",
		"grounded: with a word of prose of the same sentence, item or line; chain: strict (lenient) after so many compactions, of which only the text survives",
		"changed: files listed as changed that are right, changed files that are listed / that are named at all; read, created: right and found",
		"what texts state is held against the logs that begin at their beginning",
		"first, latest: texts that hold the user's request word for word, up to 300 characters; stopped, tasks: open work that is named",
		"false: of the statements that could be checked: files listed as changed, outcomes of commands, words of the user",
		"cost: of the calls behind it, as a share of no compaction, under the rules of a prompt cache (read 0.1, write 1.25); a vendor's includes its own call",
	}
}

// first reports that the size of a row was not seen before it.
func (r *FutureReport) first(at int) bool {
	for i := range r.Rows[:at] {
		if r.Rows[i].Size == r.Rows[at].Size {
			return false
		}
	}
	return true
}

// size prints the rows of a size: a table of what is kept, and one of what is
// stated.
func (r *FutureReport) size(t *term.Table, size future.Size) {
	rows := r.rows(size, 1)
	chains := r.chains(size)
	columns := []string{"", "kind", "needed", "grounded"}
	for _, k := range chains {
		columns = append(columns, fmt.Sprintf("chain of %d", k))
	}
	name := size.String()
	if size.Share == 0 {
		name = "the vendor's own size"
	}
	t.Head("at "+name, append(columns, "size", "cost")...)
	for _, w := range rows {
		cells := []string{w.Contender, string(w.Kind), needed(w) + interval(w.Strict), two(w.Grounded.Value)}
		for _, k := range chains {
			cell := "-"
			if c, ok := r.Find(w.Contender, size, k); ok {
				cell = needed(c)
			}
			cells = append(cells, cell)
		}
		t.Row("  %s\t%.1f%%\t%s", strings.Join(cells, "\t"), 100*w.Bytes, two(w.Cost.Value))
	}
	t.Head("", "", "changed", "created", "read", "first", "latest", "stopped", "tasks", "false files", "outcomes", "words")
	for _, w := range rows {
		t.Row("  %s\t%d/%d %d/%d/%d\t%d/%d %d/%d\t%d/%d %d/%d\t%d/%d\t%d/%d\t%d/%d\t%d/%d\t%s\t%s\t%s", w.Contender,
			w.Modified.Right, w.Modified.Listed, w.Modified.Found, w.Modified.Named, w.Modified.Touched,
			w.Created.Right, w.Created.Listed, w.Created.Found, w.Created.Touched,
			w.Read.Right, w.Read.Listed, w.Read.Found, w.Read.Touched,
			w.FirstRequest, w.Whole, w.LatestRequest, w.Whole, w.Stopped.Kept, w.Stopped.Total, w.Tasks.Kept, w.Tasks.Total,
			wrong(w.FalseFiles), wrong(w.FalseOutcomes), wrong(w.FalseWords))
	}
	for _, w := range rows {
		if w.Failures > 0 {
			t.Row("  note: %s failed %d times: %s", w.Contender, w.Failures, term.Clip(w.Error, 160))
		}
		if w.Overruns > 0 {
			t.Row("  note: %s was too long %d times and was cut", w.Contender, w.Overruns)
		}
	}
}

func (r *FutureReport) rows(size future.Size, chain int) []*future.Row {
	var out []*future.Row
	for i := range r.Rows {
		if w := &r.Rows[i]; w.Size == size && w.Chain == chain {
			out = append(out, w)
		}
	}
	return out
}

// chains are the lengths of chains other than 1.
func (r *FutureReport) chains(size future.Size) []int {
	var out []int
	seen := map[int]bool{1: true}
	for i := range r.Rows {
		if w := &r.Rows[i]; w.Size == size && !seen[w.Chain] {
			seen[w.Chain] = true
			out = append(out, w.Chain)
		}
	}
	return out
}

func needed(w *future.Row) string { return two(w.Strict.Value) + " (" + two(w.Lenient.Value) + ")" }

func interval(s future.Share) string {
	if s.Interval == nil {
		return ""
	}
	return " [" + two(s.Interval.Low) + ", " + two(s.Interval.High) + "]"
}

func two(v float64) string { return fmt.Sprintf("%.2f", v) }

func wrong(c future.Checked) string {
	if c.Checked == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", c.Wrong, c.Checked)
}
