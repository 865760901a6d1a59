package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/plugins"
)

// write prints the report.
func (r *Report) write(out io.Writer, format string) error {
	if format == "json" {
		return writeJSON(out, r)
	}
	t := newTable(out)
	r.tables(t)
	return t.end()
}

// table collects lines and remembers the first failure.
type table struct {
	tw  *tabwriter.Writer
	err error
}

// newTable writes to out, in lines that fit a terminal if it is one.
func newTable(out io.Writer) *table {
	return &table{tw: tabwriter.NewWriter(fitting(out), 0, 8, 2, ' ', 0)}
}

// end writes the table.
func (t *table) end() error {
	if t.err != nil {
		return t.err
	}
	return t.tw.Flush()
}

func (t *table) row(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.tw, format+"\n", args...)
	}
}

func (t *table) head(title string, columns ...string) {
	t.row("\n%s", title)
	if len(columns) > 0 {
		t.row("  %s", strings.Join(columns, "\t"))
	}
}

func (r *Report) tables(t *table) {
	r.verdictTable(t)
	s := r.Session
	t.row("session %s: %s, %s, %s", s.Path, s.Format, counted(s.Conversations, "conversation"), counted(s.Messages, "message"))
	for _, kind := range slices.Sorted(maps.Keys(s.Skipped)) {
		t.row("  left out: %d %s", s.Skipped[kind], kind)
	}
	lines := slices.Concat(s.Broken, s.Notes)
	for i, line := range lines {
		if i == maxLines {
			t.row("  and %d lines more (--output json has them)", len(lines)-maxLines)
			break
		}
		t.row("  %s", line)
	}
	r.moduleTable(t)
	if len(r.Guests) > 0 {
		r.guestTable(t)
	}
	r.toolTable(t)
	if r.Runs.Count > 0 {
		r.runTable(t)
		r.hookTable(t)
		r.changeTable(t)
	}
	r.compactionTables(t)
	r.threadTable(t)
}

func (r *Report) moduleTable(t *table) {
	t.head("modules", "name", "version", "state", "sha256", "granted", "what")
	for _, m := range r.Modules {
		what := m.Summary
		if m.State != plugins.StateLoaded {
			what = m.Reason
		}
		t.row("  %s\t%s\t%s\t%s\t%s\t%s", m.Name, dash(m.Version), m.State, dash(clip(m.Module.SHA256, 13)),
			dash(clip(strings.Join(m.Granted, ", "), 60)), whole(what))
	}
	for _, m := range r.Modules {
		for _, note := range m.Notes {
			t.row("  note: %s %s", m.Name, whole(note))
		}
	}
	if n := r.ReloadRequests; n > 0 {
		t.row("  %s for a reload", counted(n, "request"))
	}
	for _, l := range r.Reloads {
		what := "swapped for " + clip(l.To, 13)
		if l.Error != "" {
			what = whole(l.Error)
		}
		if l.RolledBackTo != "" {
			what = "rolled back to " + clip(l.RolledBackTo, 13) + strings.TrimPrefix(what, "rolled back")
		}
		t.row("  reload of %s (%s): %s", l.Module, clip(l.From, 13), what)
	}
}

func (r *Report) guestTable(t *table) {
	rows := make([][]string, len(r.Guests))
	for i, g := range r.Guests {
		fuel := "-"
		if g.Fuel > 0 {
			fuel = thousands(g.Fuel)
		}
		rows[i] = []string{g.Name, g.Engine, fmt.Sprint(g.Calls), fuel}
		for _, n := range []int64{g.Failed, g.Traps, g.Replaced, g.HTTP, g.KV, g.Files, g.Denied} {
			rows[i] = append(rows[i], fmt.Sprint(n))
		}
	}
	t.columns("guests", 4, []string{"module", "engine", "calls", "fuel", "failed", "traps", "replaced", "http", "kv", "files", "denied"}, rows)
	for _, g := range r.Guests {
		for _, note := range g.notes() {
			t.row("  note: %s %s", g.Name, note)
		}
	}
}

// columns prints a table without those columns behind the first ones in which every cell is 0, - or empty.
func (t *table) columns(title string, first int, names []string, rows [][]string) {
	var used []int
	for c := range names {
		if c < first || slices.ContainsFunc(rows, func(r []string) bool { return r[c] != "0" && r[c] != "-" && r[c] != "" }) {
			used = append(used, c)
		}
	}
	pick := func(cells []string) string {
		out := make([]string, len(used))
		for i, c := range used {
			out[i] = cells[c]
		}
		return strings.Join(out, "\t")
	}
	t.head(title, pick(names))
	for _, r := range rows {
		t.row("  %s", pick(r))
	}
}

func (r *Report) toolTable(t *table) {
	if len(r.Tools) > 0 {
		t.head("tools of plugins", "plugin", "tool", "calls", "failed")
	}
	for _, tool := range r.Tools {
		t.row("  %s\t%s\t%d\t%d", tool.Plugin, tool.Tool, tool.Calls, tool.Failed)
	}
}

func (r *Report) runTable(t *table) {
	t.head("runs")
	var ends []string
	for _, kind := range slices.Sorted(maps.Keys(r.Runs.Terminations)) {
		ends = append(ends, fmt.Sprintf("%d %s", r.Runs.Terminations[kind], kind))
	}
	t.row("  %s (%s), %s, %s", counted(r.Runs.Count, "run"), strings.Join(ends, ", "), counted(r.Runs.Steps, "inference"), counted(r.Runs.ToolCalls, "tool call"))
	if n := r.Runs.Rewritten; n > 0 {
		t.row("  plugins rewrote %d tool calls; results from the recording are those of the recorded arguments", n)
	}
	if r.Runs.BilledPrompt > 0 {
		t.row("  billed when recorded: %s prompt tokens, %s completion tokens", thousands(r.Runs.BilledPrompt), thousands(r.Runs.BilledCompletion))
	}
	for _, f := range r.Runs.Failures {
		t.row("  failed: %s", whole(f))
	}
	if n := len(r.Runs.List); r.RecordStore != "" && n > 0 {
		t.row("  who decided what, and why: mortise explain RUN; records are in %s", r.RecordStore)
		for _, run := range r.Runs.List[max(0, n-maxLines):] {
			t.row("  run %s of %s: %s, %d steps", run.ID, clip(run.Thread, 36), run.Termination, run.Steps)
		}
	}
}

func (r *Report) hookTable(t *table) {
	if len(r.Hooks) == 0 {
		return
	}
	rows := make([][]string, len(r.Hooks))
	for i, h := range r.Hooks {
		mean := h.TotalMS / float64(max(1, h.Calls))
		rows[i] = []string{
			h.Plugin, h.Phase, fmt.Sprint(h.Calls), fmt.Sprintf("%.0f ms", h.TotalMS), fmt.Sprintf("%.2f ms", mean), fmt.Sprintf("%.1f ms", h.MaxMS),
			fmt.Sprintf("%d ms", h.LimitMS), fmt.Sprint(h.Failures), fmt.Sprint(h.Refused), whole(h.LastError),
		}
	}
	t.columns("plugins by phase", 3, []string{"plugin", "phase", "calls", "total", "mean", "max", "limit", "failed", "refused", "last failure"}, rows)
}

// maxLines bounds what is said about the reading of a session.
const maxLines = 6

// maxRows bounds the lists of a table; the JSON report has them all.
const maxRows = 25

func (r *Report) changeTable(t *table) {
	if len(r.Changes) > 0 {
		t.head("what plugins changed", "plugin", "what", "times", "note")
	}
	for i, c := range r.Changes {
		if i == maxRows {
			t.row("  and %d kinds more (--output json has them)", len(r.Changes)-maxRows)
			break
		}
		t.row("  %s\t%s\t%d\t%s", c.Plugin, c.What, c.Count, whole(c.Note))
	}
	if len(r.Gates) > 0 {
		t.head("tool calls that a gate decided", "plugin", "action", "tool", "reason")
	}
	for _, g := range r.Gates {
		t.row("  %s\t%s\t%s\t%s", g.Plugin, g.Action, g.Tool, whole(g.Reason))
	}
}

func (r *Report) compactionTables(t *table) {
	if len(r.Admissions) > 0 {
		t.head("admission of compactions", "thread", "decision", "times", "tokens", "detail")
	}
	for i, a := range r.Admissions {
		if i == maxRows {
			t.row("  and %d more (--output json has them)", len(r.Admissions)-maxRows)
			break
		}
		tokens := "-"
		if a.Decision.TokensBefore != nil {
			tokens = thousands(int64(*a.Decision.TokensBefore))
		}
		t.row("  %s\t%s\t%d\t%s\t%s", clip(a.Thread, 24), a.Decision.Reason, a.Count, tokens, whole(a.Detail))
	}
	if e := r.Evidence; e != nil {
		t.row("  %d decisions, %d admitted%s; 95%% of steps took at most %d ms, 99%% %d ms",
			e.DecisionCount, e.AdmittedCount, reasons(e.RejectedByReason), e.ForegroundImpact.P95MS, e.ForegroundImpact.P99MS)
	}
	r.compactionTable(t)
	scoreTable(t, r.Compactions, func(e *compaction.Event) (string, *compaction.Quality) { return e.AttemptID, e.Quality })
}

func (r *Report) compactionTable(t *table) {
	var rows [][]string
	for _, e := range r.Compactions {
		if e.Kind == compaction.EventStarted {
			continue // its end has a row
		}
		took := ""
		if e.Duration > 0 {
			took = e.Duration.Round(time.Millisecond).String()
		}
		rows = append(rows, []string{
			dash(e.AttemptID), clip(e.Thread, 24), string(e.Kind), dash(e.Policy), thousands(e.PreTokens), thousands(e.PostTokens),
			survival(e), took, fmt.Sprint(e.StepsMeanwhile), whole(e.Reason),
		})
	}
	if len(rows) > 0 {
		t.columns("compactions", 4, []string{"id", "thread", "what", "policy", "before", "after", "survival", "took", "steps meanwhile", "detail"}, rows)
	}
}

// survival counts what of the source is in the summary or the kept part.
func survival(e compaction.Event) string {
	if e.Quality == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*e.Quality.Overall)
}

func (r *Report) threadTable(t *table) {
	if len(r.Threads) == 0 {
		return
	}
	t.head("threads", "thread", "log", "tokens", "model sees", "tokens", "compactions", "")
	for i, v := range r.Threads {
		if i == maxRows {
			t.row("  and %d more (--output json has them)", len(r.Threads)-maxRows)
			break
		}
		end := "complete"
		if !v.Complete {
			end = "not played to its end"
			if v.Ended != "" {
				end += ": " + whole(v.Ended)
			}
		}
		t.row("  %s\t%d messages\t%s\t%d messages\t%s\t%d\t%s", clip(v.ID, 36), v.Messages, thousands(v.Tokens),
			v.ViewMessages, thousands(v.ViewTokens), v.Compactions, end)
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
