package compaction

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// maxSummary bounds what a summarizer may return, in bytes.
const maxSummary = 1 << 20

// errGivenUp is the error of a task whose reservation is gone.
var errGivenUp = errors.New("compaction: given up before its turn came")

// summarize is the body of the task. It also scores the summary, so that the
// step that swaps it in does not have to, and stores it, so that it is not paid for
// twice.
func (c *Compactor) summarize(ctx context.Context, t *thread, f *flight, r *abi.SummarizeRequest, bill calibration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if f.release != nil {
		defer f.release()
	}
	t.mu.Lock()
	if t.flight != f {
		t.mu.Unlock()
		return errGivenUp
	}
	f.begun, f.cancel = true, cancel
	t.mu.Unlock()
	state := c.ledgerOf(t.id, f.log)
	r.Ledger = trimmed(state, r.BudgetTokens)
	ctx, said := withNotes(ctx)
	summary, err := c.write(ctx, t, f, r, bill)
	if err == nil && len(summary.Masks) == 0 {
		verified(ctx, f, r, &state, summary)
		c.judged(ctx, f, r, &state, summary)
	}
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		f.failed = err
		return err
	}
	result := Result{Summary: strings.ToValidUTF8(summary.Text, "\ufffd"), Masks: summary.Masks, FromID: clip(summary.FromID), ToID: clip(summary.ToID)}
	result.Policy, result.Note = said.read()
	result.Quality = c.score(f, f.text(&result))
	if !c.ready(t, f, &result) {
		return errGivenUp
	}
	return nil
}

// text is what a result keeps of its range.
func (f *flight) text(r *Result) string {
	return Remains(&abi.SummarizeRequest{Messages: f.source(), PreviousSummary: f.Range.PreviousSummary}, &abi.Summary{Text: r.Summary, Masks: r.Masks})
}

// Remains is the text that an answer leaves of what was to be summarized: the summary, or all that is not masked.
func Remains(r *abi.SummarizeRequest, s *abi.Summary) string {
	if len(s.Masks) == 0 {
		return s.Text
	}
	return sourceText(Masked(r.Messages, s.Masks), r.PreviousSummary)
}

// verified holds a model's text against the log, see [Repair]. The budget bounds what is added.
func verified(ctx context.Context, f *flight, r *abi.SummarizeRequest, state *abi.Ledger, s *abi.Summary) {
	if !s.Unverified {
		return
	}
	text, struck := repair(s.Text, f.log, f.Range.PreviousSummary, state, max(0, r.BudgetTokens-textTokens(s.Text)))
	if len(struck) > 0 {
		Note(ctx, "", fmt.Sprintf("%d lines that the log does not bear out were struck, the first %q", len(struck), clipTo(struck[0], maxStruck)))
	}
	s.Text = text
}

// maxStruck is how much of a line that was struck an event quotes, in bytes.
const maxStruck = 120

// ready keeps a result until it is consumed, in this process or in the next.
func (c *Compactor) ready(t *thread, f *flight, r *Result) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flight != f {
		return false
	}
	f.Result = r
	// It is not thrown away because it is read late; but if its notice gets lost, it
	// is swapped in after this.
	f.deadline = c.conf().Now().Add(c.conf().Quota.Timeout)
	if err := c.commit(t, holds(f.ID), func(s *State) {
		held := f.InFlight
		s.InFlight = &held
	}); err != nil {
		c.conf().Logger.Warn("a summary could not be stored before it is swapped in", "thread_id", t.id, "error", err)
	}
	return true
}

// score measures a summary and what the host adds to it.
func (c *Compactor) score(f *flight, summary string) Quality {
	q := c.scorer.Score(f.source(), f.Range.PreviousSummary, summary)
	shown := Marker{Summary: summary, ReadFiles: f.Range.ReadFiles, ModifiedFiles: f.Range.ModifiedFiles}
	q.Files = mentioned(shown.text(), f.Range.ReadFiles, f.Range.ModifiedFiles)
	return q
}

// write has the range summarized, in parts if it is more than the summarizer takes
// at a time. Each part has its own time; nothing is left out.
func (c *Compactor) write(ctx context.Context, t *thread, f *flight, r *abi.SummarizeRequest, bill calibration) (*abi.Summary, error) {
	parts := c.parts(r, bill)
	var summary *abi.Summary
	for i, part := range parts {
		request := *r
		request.Messages = part
		if len(parts) > 1 {
			request.Masking = nil // a part does not show what is dead
		}
		if i < len(parts)-1 {
			request.Ledger = nil // it covers the whole range
		}
		if i > 0 {
			request.PreviousSummary = &summary.Text
		}
		s, err := c.part(ctx, t, f, &request)
		if err == nil && len(parts) > 1 {
			err = checkPart(&request, s)
		}
		if err != nil && len(parts) > 1 {
			err = fmt.Errorf("part %d of %d: %w", i+1, len(parts), err)
		}
		if err != nil {
			return nil, err
		}
		summary = s
	}
	own := *summary // what the summarizer returned is its own: a trial compares with it
	if len(parts) > 1 {
		own.FromID, own.ToID = f.Range.FromID, f.Range.ToID
	}
	return &own, nil
}

// checkPart is what the gate does for a whole summary, for that of a part.
func checkPart(r *abi.SummarizeRequest, s *abi.Summary) error {
	first, last := r.Messages[0].ID, r.Messages[len(r.Messages)-1].ID
	before := Estimate(r.Messages)
	if r.PreviousSummary != nil {
		before += textTokens(*r.PreviousSummary)
	}
	switch {
	case strings.TrimSpace(s.Text) == "":
		return errors.New("compaction: the summary is empty")
	case s.FromID != "" && s.FromID != first || s.ToID != "" && s.ToID != last:
		return fmt.Errorf("compaction: the summary claims to cover %.40q to %.40q, which was not asked for", s.FromID, s.ToID)
	case r.Ledger == nil && textTokens(s.Text) > before: // with a ledger the text is about the parts before too
		return fmt.Errorf("compaction: the summary is larger than its source")
	}
	return nil
}

// part asks for one part, with a deadline.
func (c *Compactor) part(ctx context.Context, t *thread, f *flight, r *abi.SummarizeRequest) (*abi.Summary, error) {
	t.mu.Lock()
	if t.flight == f {
		f.deadline = c.conf().Now().Add(c.conf().Quota.Timeout)
	}
	t.mu.Unlock()
	late := fmt.Errorf("compaction: timed out after %s", c.conf().Quota.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.conf().Quota.Timeout, late)
	defer cancel()
	s, err := c.ask(ctx, f, r)
	if err != nil && errors.Is(context.Cause(ctx), late) {
		err = fmt.Errorf("%w: %w", late, err)
	}
	return s, err
}

// ask calls the summarizer; one that panics has failed.
func (c *Compactor) ask(ctx context.Context, f *flight, r *abi.SummarizeRequest) (s *abi.Summary, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("compaction: the summarizer panicked: %v", p)
		}
	}()
	writer := c.conf().Summarizer
	if !f.main {
		writer = c.conf().Fallback
	}
	s, err = writer.Summarize(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, errors.New("compaction: the summarizer returned nothing")
	case s.Declined != "":
		return nil, fmt.Errorf("compaction: the summarizer declined: %.200s", s.Declined)
	case len(s.Masks) > 0 && (r.Masking == nil || s.Text != ""):
		return nil, errors.New("compaction: the summarizer masks messages, which was not asked for, or writes a text too")
	case len(s.Text) > maxSummary:
		return nil, fmt.Errorf("compaction: the summary has %d bytes, more than %d", len(s.Text), maxSummary)
	}
	if err := CheckMasks(r.Messages, s.Masks); err != nil {
		return nil, fmt.Errorf("compaction: the summarizer: %w", err)
	}
	return s, nil
}
