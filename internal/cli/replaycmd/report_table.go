package replaycmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/cli/wording"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/plugins"
)

// write prints the report.
func (r *Report) write(out io.Writer, format string) error {
	if format == "json" {
		return term.WriteJSON(out, r)
	}
	t := term.NewTable(out)
	r.tables(t)
	return t.End()
}

func (r *Report) tables(t *term.Table) {
	r.verdictTable(t)
	s := r.Session
	t.Row("session %s: %s, %s, %s", s.Path, s.Format, term.Counted(s.Conversations, "conversation"), term.Counted(s.Messages, "message"))
	for _, kind := range slices.Sorted(maps.Keys(s.Skipped)) {
		t.Row("  left out: %d %s", s.Skipped[kind], kind)
	}
	lines := slices.Concat(s.Broken, s.Notes)
	for i, line := range lines {
		if i == maxLines {
			t.Row("  and %d lines more (--output json has them)", len(lines)-maxLines)
			break
		}
		t.Row("  %s", line)
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

func (r *Report) moduleTable(t *term.Table) {
	t.Head("modules", "name", "version", "state", "sha256", "granted", "what")
	for _, m := range r.Modules {
		what := m.Summary
		if m.State != plugins.StateLoaded {
			what = m.Reason
		}
		t.Row("  %s\t%s\t%s\t%s\t%s\t%s", m.Name, term.Dash(m.Version), m.State, term.Dash(term.Clip(m.Module.SHA256, 13)),
			term.Dash(term.Clip(strings.Join(m.Granted, ", "), 60)), term.Whole(what))
	}
	for _, m := range r.Modules {
		for _, note := range m.Notes {
			t.Row("  note: %s %s", m.Name, term.Whole(note))
		}
	}
	if n := r.ReloadRequests; n > 0 {
		t.Row("  %s for a reload", term.Counted(n, "request"))
	}
	for _, l := range r.Reloads {
		what := "swapped for " + term.Clip(l.To, 13)
		if l.Error != "" {
			what = term.Whole(l.Error)
		}
		if l.RolledBackTo != "" {
			what = "rolled back to " + term.Clip(l.RolledBackTo, 13) + strings.TrimPrefix(what, "rolled back")
		}
		t.Row("  reload of %s (%s): %s", l.Module, term.Clip(l.From, 13), what)
	}
}

func (r *Report) guestTable(t *term.Table) {
	rows := make([][]string, len(r.Guests))
	for i, g := range r.Guests {
		fuel := "-"
		if g.Fuel > 0 {
			fuel = term.Thousands(g.Fuel)
		}
		rows[i] = []string{g.Name, g.Engine, fmt.Sprint(g.Calls), fuel}
		for _, n := range []int64{g.Failed, g.Traps, g.Replaced, g.HTTP, g.KV, g.Files, g.Denied} {
			rows[i] = append(rows[i], fmt.Sprint(n))
		}
	}
	t.Columns("guests", 4, []string{"module", "engine", "calls", "fuel", "failed", "traps", "replaced", "http", "kv", "files", "denied"}, rows)
	for _, g := range r.Guests {
		for _, note := range g.notes() {
			t.Row("  note: %s %s", g.Name, note)
		}
	}
}

func (r *Report) toolTable(t *term.Table) {
	if len(r.Tools) > 0 {
		t.Head("tools of plugins", "plugin", "tool", "calls", "failed")
	}
	for _, tool := range r.Tools {
		t.Row("  %s\t%s\t%d\t%d", tool.Plugin, tool.Tool, tool.Calls, tool.Failed)
	}
}

func (r *Report) runTable(t *term.Table) {
	t.Head("runs")
	var ends []string
	for _, kind := range slices.Sorted(maps.Keys(r.Runs.Terminations)) {
		ends = append(ends, fmt.Sprintf("%d %s", r.Runs.Terminations[kind], kind))
	}
	t.Row("  %s (%s), %s, %s", term.Counted(r.Runs.Count, "run"), strings.Join(ends, ", "), term.Counted(r.Runs.Steps, "inference"), term.Counted(r.Runs.ToolCalls, "tool call"))
	if n := r.Runs.Rewritten; n > 0 {
		t.Row("  plugins rewrote %d tool calls; results from the recording are those of the recorded arguments", n)
	}
	if r.Runs.BilledPrompt > 0 {
		t.Row("  billed when recorded: %s prompt tokens, %s completion tokens", term.Thousands(r.Runs.BilledPrompt), term.Thousands(r.Runs.BilledCompletion))
	}
	for _, f := range r.Runs.Failures {
		t.Row("  failed: %s", term.Whole(f))
	}
	if n := len(r.Runs.List); r.RecordStore != "" && n > 0 {
		t.Row("  who decided what, and why: mortise explain RUN; records are in %s", r.RecordStore)
		for _, run := range r.Runs.List[max(0, n-maxLines):] {
			t.Row("  run %s of %s: %s, %s", run.ID, term.Clip(run.Thread, 36), run.Termination, term.Counted(run.Steps, "step"))
		}
	}
}

func (r *Report) hookTable(t *term.Table) {
	if len(r.Hooks) == 0 {
		return
	}
	rows := make([][]string, len(r.Hooks))
	for i, h := range r.Hooks {
		mean := h.TotalMS / float64(max(1, h.Calls))
		rows[i] = []string{
			h.Plugin, h.Phase, fmt.Sprint(h.Calls), fmt.Sprintf("%.0f ms", h.TotalMS), fmt.Sprintf("%.2f ms", mean), fmt.Sprintf("%.1f ms", h.MaxMS),
			fmt.Sprintf("%d ms", h.LimitMS), fmt.Sprint(h.Failures), fmt.Sprint(h.Refused), term.Whole(h.LastError),
		}
	}
	t.Columns("plugins by phase", 3, []string{"plugin", "phase", "calls", "total", "mean", "max", "limit", "failed", "refused", "last failure"}, rows)
}

// maxLines bounds what is said about the reading of a session.
const maxLines = 6

// maxRows bounds the lists of a table; the JSON report has them all.
const maxRows = 25

func (r *Report) changeTable(t *term.Table) {
	if len(r.Changes) > 0 {
		t.Head("what plugins changed", "plugin", "what", "times", "note")
	}
	for i, c := range r.Changes {
		if i == maxRows {
			t.Row("  and %d kinds more (--output json has them)", len(r.Changes)-maxRows)
			break
		}
		t.Row("  %s\t%s\t%d\t%s", c.Plugin, c.What, c.Count, term.Whole(c.Note))
	}
	if len(r.Gates) > 0 {
		t.Head("tool calls that a gate decided", "plugin", "action", "tool", "times", "reason")
	}
	for i, g := range r.Gates {
		if i == maxRows {
			t.Row("  and %d kinds more (--output json has them)", len(r.Gates)-maxRows)
			break
		}
		t.Row("  %s\t%s\t%s\t%d\t%s", g.Plugin, g.Action, g.Tool, g.Count, term.Whole(g.Reason))
	}
}

func (r *Report) compactionTables(t *term.Table) {
	if len(r.Admissions) > 0 {
		t.Head("admission of compactions", "thread", "decision", "times", "tokens", "detail")
	}
	for i, a := range r.Admissions {
		if i == maxRows {
			t.Row("  and %d more (--output json has them)", len(r.Admissions)-maxRows)
			break
		}
		tokens := "-"
		if a.Decision.TokensBefore != nil {
			tokens = term.Thousands(int64(*a.Decision.TokensBefore))
		}
		t.Row("  %s\t%s\t%d\t%s\t%s", term.Clip(a.Thread, 24), a.Decision.Reason, a.Count, tokens, term.Whole(a.Detail))
	}
	if e := r.Evidence; e != nil {
		t.Row("  %d decisions, %d admitted%s; 95%% of steps took at most %d ms, 99%% %d ms",
			e.DecisionCount, e.AdmittedCount, wording.Reasons(e.RejectedByReason), e.ForegroundImpact.P95MS, e.ForegroundImpact.P99MS)
	}
	r.compactionTable(t)
	wording.ScoreTable(t, r.Compactions, func(e *compaction.Event) (string, *compaction.Quality) { return e.AttemptID, e.Quality })
}

func (r *Report) compactionTable(t *term.Table) {
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
			term.Dash(e.AttemptID), term.Clip(e.Thread, 24), string(e.Kind), term.Dash(e.Policy), term.Thousands(e.PreTokens), term.Thousands(e.PostTokens),
			wording.Survival(e), took, fmt.Sprint(e.StepsMeanwhile), term.Whole(e.Reason),
		})
	}
	if len(rows) > 0 {
		t.Columns("compactions", 4, []string{"id", "thread", "what", "policy", "before", "after", "survival", "took", "steps meanwhile", "detail"}, rows)
	}
}

func (r *Report) threadTable(t *term.Table) {
	if len(r.Threads) == 0 {
		return
	}
	t.Head("threads", "thread", "log", "tokens", "model sees", "tokens", "compactions", "")
	for i, v := range r.Threads {
		if i == maxRows {
			t.Row("  and %d more (--output json has them)", len(r.Threads)-maxRows)
			break
		}
		end := "complete"
		if !v.Complete {
			end = "not played to its end"
			if v.Ended != "" {
				end += ": " + term.Whole(v.Ended)
			}
		}
		t.Row("  %s\t%d messages\t%s\t%d messages\t%s\t%d\t%s", term.Clip(v.ID, 36), v.Messages, term.Thousands(v.Tokens),
			v.ViewMessages, term.Thousands(v.ViewTokens), v.Compactions, end)
	}
}
