package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// ErrTooShort is a list of which nothing is worth a summary: [Policy] keeps the newest messages,
// and MinRangeTokens is the least to summarize.
var ErrTooShort = errors.New("compaction: there is too little to compact")

// Options configure [Compact]. The zero value is valid.
type Options struct {
	// Policy is what to keep and what a summary must be like. Its threshold, masks and breaker
	// are of no account here.
	Policy Policy
	// Summarizer writes the summary; [Ledger], which needs no model, when nil.
	Summarizer Summarizer
	// Timeout bounds each request to the Summarizer, 120 s when 0.
	Timeout time.Duration
	// Focus, ThreadID and LiveTasks are passed to the Summarizer.
	Focus     string
	ThreadID  string
	LiveTasks []string
}

// Compacted is the result of [Compact].
type Compacted struct {
	// Messages is the list with a system message, the summary, in the place of the range. The
	// message has no id.
	Messages []abi.Message
	// From and To are the indices of the first and last message in the list before that the
	// summary replaces. Pinned ones among them, and the latest request of the user, are still
	// in Messages.
	From, To int
	// PreTokens and PostTokens are estimates of the list before and after.
	PreTokens, PostTokens int64
	// Quality scores the summary, and Lost are facts that it does not hold word for word: URLs,
	// error lines, and paths, identifiers and numbers that occurred twice. At most 32.
	Quality Quality
	Lost    []string
	// Policy is the name of the Summarizer, if it has one, and Note its comment.
	Policy, Note string
}

// RefusedError is a summary that the quality gate of [Policy] refuses.
type RefusedError struct {
	// Reason names the bar that the summary misses.
	Reason string
	// Refused is what Compact would have returned.
	Refused Compacted
}

// Error implements error.
func (e *RefusedError) Error() string { return "compaction: the summary is refused: " + e.Reason }

// Compact replaces the older part of a list of messages by a summary, now, whatever its size, and
// waits for the Summarizer. Messages that a summary must not separate stay together, as in [Plan].
// The summary of an earlier Compact among the leading system messages is continued, so the
// result may grow and be compacted again. The list itself is not changed; the result shares
// content with it. Message ids are optional.
//
// It returns [ErrTooShort] without asking the Summarizer, a [*RefusedError] when the summary is not good
// enough, and the error of the Summarizer. It is safe for concurrent use, stores nothing and starts no goroutine.
func Compact(ctx context.Context, messages []abi.Message, o Options) (*Compacted, error) {
	w, err := o.writer()
	if err != nil {
		return nil, err
	}
	log := named(messages)
	x := once(log, 0)
	prev := earlier(log)
	rng, ok := x.plan(log, prev, w.conf().Policy, new(calibration).apply)
	if !ok {
		return nil, ErrTooShort
	}
	before := Estimate(messages)
	budget := w.budget(rng, before)
	if budget == 0 {
		return nil, ErrTooShort
	}
	f := &flight{log: log[:rng.To+1], main: true}
	f.Before = before
	f.Range, f.Continues, f.Policy = *rng, rng.PreviousSummary != nil, w.conf().PolicyName
	ctx, said := withNotes(ctx)
	state := readLedger(StoredLedger{}, f.log).State
	request := &abi.SummarizeRequest{
		ThreadID: o.ThreadID, Messages: f.source(), PreviousSummary: rng.PreviousSummary, BudgetTokens: budget, Focus: o.Focus,
		ReadFiles: rng.ReadFiles, ModifiedFiles: rng.ModifiedFiles, LiveTasks: o.LiveTasks, Ledger: trimmed(state, budget),
	}
	s, err := w.write(ctx, &thread{}, f, request, calibration{})
	if err != nil {
		return nil, fmt.Errorf("compaction: the summarizer: %w", err)
	}
	verified(ctx, f, request, &state, s)
	w.judged(ctx, f, request, &state, s)
	f.Result = &Result{Summary: strings.ToValidUTF8(s.Text, "\ufffd"), FromID: s.FromID, ToID: s.ToID}
	f.Result.Policy, f.Result.Note = said.read()
	f.Result.Quality = w.score(f, f.Result.Summary)
	return w.compacted(messages, x, f, prev)
}

// writer is a compactor that only writes and scores.
func (o *Options) writer() (*Compactor, error) {
	policy, err := o.Policy.withDefaults()
	if err != nil {
		return nil, err
	}
	quota, err := Quota{Timeout: o.Timeout}.withDefaults()
	if err != nil {
		return nil, err
	}
	cfg := Config{Policy: policy, Quota: quota, Summarizer: o.Summarizer, Now: time.Now}
	if cfg.Summarizer == nil {
		cfg.Summarizer = Ledger{}
	}
	if n, ok := cfg.Summarizer.(interface{ Name() string }); ok {
		cfg.PolicyName = n.Name()
	}
	c := &Compactor{scorer: NewScorer()}
	c.cfg.Store(&cfg)
	return c, nil
}

// compacted is the result, if it passes the quality gate.
func (c *Compactor) compacted(messages []abi.Message, x *index, f *flight, prev *Marker) (*Compacted, error) {
	m := Marker{
		FromID: f.Range.FromID, ToID: f.Range.ToID, Summary: f.Result.Summary, Quality: f.Result.Quality,
		ReadFiles: f.Range.ReadFiles, ModifiedFiles: f.Range.ModifiedFiles,
	}
	if prev != nil {
		m.FromID = prev.FromID
	}
	cover, _ := x.covered(&m)
	m.Quality.Pins = x.pins(cover)
	message := m.message()
	message.ID = ""
	view := cover.view(messages, message)
	m.PreTokens, m.PostTokens = Estimate(messages), Estimate(view)
	out := Compacted{
		Messages: view, From: cover.from, To: cover.to, PreTokens: m.PreTokens, PostTokens: m.PostTokens, Quality: m.Quality,
		Lost: c.scorer.Lost(f.source(), f.Range.PreviousSummary, m.text()), Policy: cmp.Or(f.Result.Policy, f.Policy), Note: f.Result.Note,
	}
	if reason := c.refuse(f, &m); reason != "" {
		return nil, &RefusedError{Reason: reason, Refused: out}
	}
	return &out, nil
}

// named is a list whose messages all have ids of their own.
func named(messages []abi.Message) []abi.Message {
	out := slices.Clone(messages)
	seen := make(map[string]bool, len(out))
	for i := range out {
		for n := i; out[i].ID == "" || seen[out[i].ID]; n += len(out) {
			out[i].ID = fmt.Sprintf("message-%d", n)
		}
		seen[out[i].ID] = true
	}
	return out
}

// earlier finds the summary of an earlier Compact among the leading system messages, as a marker that
// covers that message.
func earlier(log []abi.Message) (m *Marker) {
	for i := 0; i < len(log) && log[i].Role == abi.RoleSystem; i++ {
		text, opened := strings.CutPrefix(log[i].Text(), summaryOpen)
		text, closed := strings.CutSuffix(text, summaryClose)
		if opened && closed {
			m = &Marker{FromID: log[i].ID, ToID: log[i].ID}
			text, m.ModifiedFiles = cutFiles(text, modifiedTag)
			m.Summary, m.ReadFiles = cutFiles(text, readTag)
		}
	}
	return m
}

// cutFiles cuts a list of files off the end of what a summary shows, see Marker.text.
func cutFiles(text, tag string) (rest string, files []string) {
	inner, ok := strings.CutSuffix(text, "\n</"+tag+">")
	i := strings.LastIndex(inner, "\n\n<"+tag)
	if !ok || i < 0 {
		return text, nil
	}
	_, list, _ := strings.Cut(inner[i+2:], "\n")
	return inner[:i], strings.Split(list, "\n")
}
