package summarizers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// Link is one summarizer of a [Chain].
type Link struct {
	// Name stands in events. Required.
	Name string
	// Summarizer is asked when the links before it failed. Required.
	Summarizer compaction.Summarizer
}

// Chain asks summarizers in their order until one gives what can be a summary. One that fails,
// breaks, panics, takes too long, or answers with nothing, with its input, with something larger
// or with ids that were not asked for has failed. While others follow, a link gets two thirds of
// the time that is left.
//
// Why links failed, and who wrote, stands in the compaction's event. When all fail, the error
// has the reason of each, and the thread's own fallback remains: compaction.Truncate, once the
// window is exceeded.
//
// A Chain is safe for concurrent use, as far as its links are.
type Chain struct{ links []Link }

var (
	_ compaction.Summarizer = (*Chain)(nil)
	_ compaction.Versioned  = (*Chain)(nil)
	_ compaction.Judged     = (*Chain)(nil)
)

// NewChain checks the links.
func NewChain(links ...Link) (*Chain, error) {
	if len(links) == 0 {
		return nil, errors.New("summarizers: a chain needs a link")
	}
	for i, l := range links {
		if l.Name == "" || l.Summarizer == nil {
			return nil, fmt.Errorf("summarizers: link %d of the chain: Name or Summarizer is missing", i)
		}
	}
	return &Chain{links: append([]Link(nil), links...)}, nil
}

// Name is the first link's.
func (c *Chain) Name() string { return c.links[0].Name }

// Version implements compaction.Versioned for the first link.
func (c *Chain) Version() string {
	if v, ok := c.links[0].Summarizer.(compaction.Versioned); ok {
		return v.Version()
	}
	return ""
}

// RollBack implements compaction.Versioned for the first link.
func (c *Chain) RollBack(version, reason string) bool {
	v, ok := c.links[0].Summarizer.(compaction.Versioned)
	return ok && v.RollBack(version, reason)
}

// Refused implements compaction.Judged for the first link.
func (c *Chain) Refused(version, reason string) {
	if j, ok := c.links[0].Summarizer.(compaction.Judged); ok {
		j.Refused(version, reason)
	}
}

// Summarize implements compaction.Summarizer.
func (c *Chain) Summarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	var failed error
	for i, l := range c.links {
		s, err := c.ask(ctx, l, r, i < len(c.links)-1)
		if err == nil && s.Declined != "" {
			err = &declinedError{s.Declined}
		}
		if err == nil {
			if i > 0 {
				compaction.Note(ctx, l.Name, "fallback after "+failed.Error())
			}
			return s, nil
		}
		err = fmt.Errorf("%s: %w", l.Name, err)
		if failed == nil {
			failed = err
		} else {
			failed = fmt.Errorf("%w; %w", failed, err)
		}
		if ctx.Err() != nil {
			break // there is no time for the others, or no caller waits
		}
	}
	return nil, failed
}

// declinedError is a link that leaves the request to the next.
type declinedError struct{ reason string }

// Error implements error.
func (e *declinedError) Error() string {
	return "it declined: " + e.reason[:min(len(e.reason), maxReason)]
}

// maxReason bounds the reason of a policy that declines, in bytes.
const maxReason = 200

// ask asks one link, and checks what it says.
func (c *Chain) ask(ctx context.Context, l Link, r *abi.SummarizeRequest, more bool) (s *abi.Summary, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("it panicked: %v", p)
		}
	}()
	if until, ok := ctx.Deadline(); ok && more {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(until)*2/3)
		defer cancel()
	}
	if s, err = l.Summarizer.Summarize(ctx, r); err != nil {
		return nil, err
	}
	return s, check(r, s)
}

// maxBytesPerToken is more than any policy's notion of a token.
const maxBytesPerToken = 8

// check returns why an answer cannot be a summary. The quality gate comes later; what is caught
// here need not cost the attempt.
func check(r *abi.SummarizeRequest, s *abi.Summary) error {
	if s == nil {
		return errors.New("it answered nothing")
	}
	if s.Declined != "" && s.Text == "" && len(s.Masks) == 0 {
		return nil
	}
	if len(s.Masks) > 0 && s.Text == "" && s.Declined == "" && r.Masking != nil {
		return compaction.CheckMasks(r.Messages, s.Masks)
	}
	if s.Declined != "" || len(s.Masks) > 0 {
		return errors.New("it masks messages, which was not asked for, or answers in two ways")
	}
	if strings.TrimSpace(s.Text) == "" {
		return errors.New("it answered nothing")
	}
	if n := len(r.Messages); n > 0 {
		from, to := r.Messages[0].ID, r.Messages[n-1].ID
		if s.FromID != "" && s.FromID != from || s.ToID != "" && s.ToID != to {
			return fmt.Errorf("it claims to cover %.40q to %.40q, which was not asked for", s.FromID, s.ToID)
		}
	}
	if source := replacedBytes(r); len(s.Text) >= source {
		return fmt.Errorf("its answer has %d bytes, the source %d", len(s.Text), source)
	}
	if most := r.BudgetTokens * maxBytesPerToken; int64(len(s.Text)) > most {
		return fmt.Errorf("its answer has %d bytes, too many for %d tokens", len(s.Text), r.BudgetTokens)
	}
	return nil
}

// replacedBytes is how long the text is that a summary replaces. A ledger without a previous summary may cover more than the
// messages of the request.
func replacedBytes(r *abi.SummarizeRequest) int {
	n := sourceBytes(r)
	if r.Ledger != nil && r.PreviousSummary == nil {
		n = max(n, int(min(r.Ledger.Bytes, math.MaxInt32)))
	}
	return n
}

// sourceBytes is how long the messages and the previous summary of a request are.
func sourceBytes(r *abi.SummarizeRequest) int {
	n := 0
	if r.PreviousSummary != nil {
		n = len(*r.PreviousSummary)
	}
	for i := range r.Messages {
		n += len(r.Messages[i].Text())
		for _, c := range r.Messages[i].ToolCalls {
			n += len(c.Name) + len(fmt.Sprint(c.Arguments))
		}
	}
	return n
}
