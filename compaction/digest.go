package compaction

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Digest is a [Summarizer] that needs no model and cannot fail: what was asked for,
// files, errors, references and excerpts, in sections, within the budget. It writes
// when the breaker is open.
type Digest struct{}

// Name is "digest".
func (Digest) Name() string { return "digest" }

// Lengths of excerpts, in bytes.
const (
	askedLength = 400
	saidLength  = 240
)

// digest collects lines as long as there is room.
type digest struct {
	b    strings.Builder
	left int64
}

// section writes a heading and as many lines as a share of what is left holds.
func (d *digest) section(title string, share float64, lines []string) {
	room := int64(float64(d.left) * share)
	head := fmt.Sprintf("\n## %s\n", title)
	room -= textTokens(head)
	first := true
	for _, line := range lines {
		n := textTokens(line) + 1
		if n > room {
			continue
		}
		if first {
			d.b.WriteString(head)
			d.left -= textTokens(head)
			first = false
		}
		d.b.WriteString(line + "\n")
		room -= n
		d.left -= n
	}
}

// Summarize implements [Summarizer].
func (Digest) Summarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	d := &digest{left: r.BudgetTokens * 9 / 10}
	var asked, said []string
	for i := range slices.Backward(r.Messages) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		m := &r.Messages[i]
		text := strings.Join(strings.Fields(m.Text()), " ")
		switch {
		case text == "" || m.Visibility == abi.VisibilityInternal:
		case m.Role == abi.RoleUser:
			asked = append(asked, "- "+excerpt(text, askedLength))
		case m.Role == abi.RoleAssistant:
			said = append(said, "- "+excerpt(text, saidLength))
		}
	}
	if r.PreviousSummary != nil {
		d.section("Before", 0.5, strings.Split(strings.TrimSpace(*r.PreviousSummary), "\n"))
	}
	text := sourceText(r.Messages, nil)
	d.section("Requests, the newest first", 0.3, asked)
	d.section("Background tasks", 0.3, listed(r.LiveTasks))
	d.section("Changed files", 0.3, listed(r.ModifiedFiles))
	d.section("Read files", 0.2, listed(r.ReadFiles))
	kinds := NewScorer().kinds
	for i, title := range []string{"Links", "Paths", "Errors", "Names", "Numbers"} {
		d.section(title, 0.25, listed(frequent(kinds[i].pattern, text, kinds[i].least)))
	}
	d.section("Said, the newest first", 1, said)
	return &abi.Summary{Text: strings.TrimSpace(d.b.String()), Policy: "digest"}, nil
}

func listed(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "- " + n
	}
	return out
}

// excerpt is the head and the tail of a text.
func excerpt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	tail := s[len(s)-n/3:]
	for tail != "" && tail[0]&0xc0 == 0x80 {
		tail = tail[1:]
	}
	return cut(s, n-n/3) + " … " + tail
}
