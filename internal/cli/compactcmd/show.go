package compactcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/cli/wording"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/thread"
)

// showSchema names the format of what mortise compact show prints as JSON.
const showSchema = "mortise.compact.show.v1"

// CompactionsReport is what mortise compact show prints.
type CompactionsReport struct {
	Schema  string                    `json:"schema"`
	Threads []ThreadCompactionsReport `json:"threads"`
}

// ThreadCompactionsReport is one thread that is kept. Tokens are estimates
// that no bill has corrected.
type ThreadCompactionsReport struct {
	ID           string `json:"id"`
	Messages     int    `json:"messages"`
	Tokens       int64  `json:"tokens"`
	ViewMessages int    `json:"view_messages"`
	ViewTokens   int64  `json:"view_tokens"`
	// State has the markers that can be undone, and what is under way.
	State compaction.State `json:"state"`
	// Evidence sums the decisions up; Events are everything that was recorded.
	Evidence compaction.AdmissionEvidence `json:"evidence"`
	Events   []compaction.Event           `json:"events"`

	view []abi.Message
	// numbers of messages by id, calls in words by their ids, and the calls that messages answer.
	numbers, calls, answers map[string]string
}

// read remembers what masks name.
func (r *ThreadCompactionsReport) read(log []abi.Message) {
	r.numbers, r.calls, r.answers = map[string]string{}, map[string]string{}, map[string]string{}
	for i := range log {
		m := &log[i]
		r.numbers[m.ID], r.answers[m.ID] = fmt.Sprintf("m%d", i+1), m.ToolCallID
		for n := range m.ToolCalls {
			c := &m.ToolCalls[n]
			r.calls[c.ID] = strings.TrimSpace(c.Name + " " + callAbout(c.Arguments))
		}
	}
}

// callAbout is what a call is about: its path, command or query.
func callAbout(arguments any) string {
	args, _ := arguments.(map[string]any)
	for _, key := range []string{"path", "file_path", "command", "cmd", "pattern", "query", "url"} {
		if s, ok := args[key].(string); ok {
			return strings.Join(strings.Fields(s), " ")
		}
	}
	return ""
}

const showLong = `Show what became of the compactions of the threads in a store, those that mortise run
--store kept and those of mortise serve and proxy: each with its range, the size of the view before and after, scores,
policy and time; what is under way; and why others did not start.

--view prints what the model sees instead, one message a line as JSON.`

func newCompactShow(s command.Streams) *cobra.Command {
	var id, output string
	var view bool
	cmd := &cobra.Command{
		Use:   "show FILE|URL",
		Short: "Show the compactions of a store's threads",
		Long:  showLong,
		Example: `  mortise run --store mortise.db session.jsonl
  mortise compact show mortise.db
  mortise compact show mortise.db --thread main`,
		Args: command.TakesOne("FILE|URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := readCompactions(cmd.Context(), s.Links, args[0], id)
			if err != nil {
				return exit.With(exit.Session, err)
			}
			if view {
				return r.writeView(s.Out)
			}
			return r.write(s.Out, output)
		},
	}
	f := cmd.Flags()
	f.StringVar(&id, "thread", "", "only the thread with this id")
	command.OutputFlag(f, &output, "table or json")
	f.BoolVar(&view, "view", false, "print what the model sees, one message a line as JSON")
	return cmd
}

// readCompactions reads the threads of a store, or the one that is named.
func readCompactions(ctx context.Context, links program.Links, path, id string) (*CompactionsReport, error) {
	k, err := links.OpenThreads(ctx, path)
	if err != nil {
		return nil, err
	}
	defer k.Home.Close(ctx)
	threads, err := k.Pick(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &CompactionsReport{Schema: showSchema}
	for _, one := range threads {
		t, err := readThread(ctx, k.Threads, one)
		if err != nil {
			return nil, err
		}
		r.Threads = append(r.Threads, *t)
	}
	r.Threads = term.List(r.Threads)
	return r, nil
}

func readThread(ctx context.Context, s *thread.Threads, id string) (*ThreadCompactionsReport, error) {
	log, err := s.Messages(ctx, id)
	if err != nil {
		return nil, err
	}
	state, _, err := s.State(ctx, id)
	if err != nil {
		return nil, err
	}
	events, err := s.Events(ctx, id)
	if err != nil {
		return nil, err
	}
	var newest *compaction.Marker
	if n := len(state.Markers); n > 0 {
		newest = &state.Markers[n-1]
	}
	var decisions []compaction.AdmissionDecision
	for _, e := range events {
		for range wording.DecisionsOf(e) {
			decisions = append(decisions, *e.Decision)
		}
	}
	sums := compaction.Evidence(decisions, 0, 0)
	sums.ForegroundImpact.Source = wording.SourceNone
	view := compaction.View(log, newest)
	r := &ThreadCompactionsReport{
		ID: id, Messages: len(log), Tokens: compaction.Estimate(log), ViewMessages: len(view), ViewTokens: compaction.Estimate(view),
		State: state, Events: term.List(events), Evidence: sums, view: view,
	}
	r.read(log)
	return r, nil
}

// maxMasks is how many masks a table lists.
const maxMasks = 40

// masks lists what the newest compaction masks, and why.
func (r *ThreadCompactionsReport) masks(t *term.Table) {
	if len(r.State.Markers) == 0 {
		return
	}
	list := r.State.Markers[len(r.State.Markers)-1].Masks
	if len(list) == 0 {
		return
	}
	t.Head("masked", "number", "what", "why", "by")
	for _, k := range list[:min(len(list), maxMasks)] {
		t.Row("  %s\t%s\t%s\t%s", r.numbers[k.MessageID], r.masked(k), k.Reason, r.numbers[k.By])
	}
	if n := len(list) - maxMasks; n > 0 {
		t.Row("  and %d more; --output json has all", n)
	}
}

// masked names what a mask hides.
func (r *ThreadCompactionsReport) masked(k abi.Mask) string {
	call := r.calls[k.CallID]
	what := "input of "
	if k.CallID == "" {
		call, what = r.calls[r.answers[k.MessageID]], ""
	}
	return term.Clip(what+call, 60)
}

func (r *CompactionsReport) writeView(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i := range r.Threads {
		for _, m := range r.Threads[i].view {
			if err := enc.Encode(m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *CompactionsReport) write(out io.Writer, format string) error {
	if format == "json" {
		return term.WriteJSON(out, r)
	}
	t := term.NewTable(out)
	for i := range r.Threads {
		r.Threads[i].tables(t)
	}
	return t.End()
}

// savedOf is the share of the view that a compaction saved, in percent. Quality.Savings is that of the range.
func savedOf(m *compaction.Marker) float64 {
	if m.PreTokens == 0 {
		return 0
	}
	return 100 * float64(m.PreTokens-m.PostTokens) / float64(m.PreTokens)
}

func (r *ThreadCompactionsReport) tables(t *term.Table) {
	t.Row("thread %s: log %d messages, %s tokens; the model sees %d messages, %s tokens", term.Clip(r.ID, 60),
		r.Messages, term.Thousands(r.Tokens), r.ViewMessages, term.Thousands(r.ViewTokens))
	s := &r.State
	if f := s.InFlight; f != nil {
		t.Row("  under way: attempt %d of %s since %s, %s to %s, by %s", f.Attempt, f.Owner,
			time.UnixMilli(f.StartedMS).UTC().Format(time.RFC3339), term.Clip(f.Range.FromID, 24), term.Clip(f.Range.ToID, 24), f.Policy)
	}
	if s.Failures > 0 {
		t.Row("  %s since the last success", term.Counted(s.Failures, "failure"))
	}
	if len(s.Markers) > 0 {
		t.Head("compactions, the newest last", "when", "policy", "from", "to", "before", "after", "saved", "of the range", "survival", "id")
	}
	for _, m := range s.Markers {
		t.Row("  %s\t%s\t%s\t%s\t%s\t%s\t%.0f%%\t%.0f%%\t%.0f%%\t%s", m.At.UTC().Format(time.RFC3339), m.Policy, term.Clip(m.FromID, 24), term.Clip(m.ToID, 24),
			term.Thousands(m.PreTokens), term.Thousands(m.PostTokens), savedOf(&m), 100*m.Quality.Savings, 100*m.Quality.Overall, m.ID)
	}
	r.masks(t)
	wording.ScoreTable(t, s.Markers, func(m *compaction.Marker) (string, *compaction.Quality) { return m.ID, &m.Quality })
	if n := s.Total - len(s.Markers); n > 0 {
		t.Row("  %d more were undone, or are too old to be", n)
	}
	if e := r.Evidence; e.DecisionCount > 0 {
		t.Row("  %s, %d admitted%s", term.Counted(e.DecisionCount, "decision"), e.AdmittedCount, wording.Reasons(e.RejectedByReason))
	}
	last := ""
	for _, e := range r.Events {
		if e.Reason != "" && e.Kind != compaction.EventAdmission {
			last = fmt.Sprintf("  the last trouble: %s %s: %s", e.At.UTC().Format(time.RFC3339), e.Kind, term.Whole(e.Reason))
		}
	}
	if last != "" {
		t.Row("%s", last)
	}
	t.Row("")
}
