package eval

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// Kind is the kind of a contender.
type Kind string

// Kinds.
const (
	// KindPolicy is a summarizer that could be used.
	KindPolicy Kind = "policy"
	// KindBaseline is a simple rule that a policy must beat.
	KindBaseline Kind = "baseline"
	// KindFallback is what Mortise does by itself when there is no summary.
	KindFallback Kind = "fallback"
)

// Contender is something that is measured.
type Contender struct {
	// Name is unique in a run.
	Name string
	Kind Kind
	// Summarizer writes the texts.
	Summarizer compaction.Summarizer
	// BytesPerToken turns a budget in bytes into the request's budget in tokens:
	// 3.6 by default, 1 for a summarizer that counts bytes.
	BytesPerToken float64
}

// Baselines returns the rules that every policy is held against, and the
// deterministic fallback:
//
//   - last-n: the end of the text.
//   - first-last: half of the budget from the beginning, half from the end.
//   - heads: the head of every message, all of the same length.
//   - centrality: the sentences nearest to the centre of all sentences, by the
//     cosine of their weighted words, in their order.
//   - index: identifiers, numbers and names, each once, the most frequent first.
//   - index+last-n: half of the budget for each.
//   - truncate: compaction.Truncate, as it serves a run without a summary.
//
// The summary before counts as the oldest text; heads takes its lines for
// messages.
func Baselines() []Contender {
	rule := func(name string, run func(texts []string, budget int) string) Contender {
		return Contender{Name: name, Kind: KindBaseline, Summarizer: rule{run}, BytesPerToken: 1}
	}
	return []Contender{
		rule("last-n", func(texts []string, n int) string { return tail(strings.Join(texts, "\n"), n) }),
		rule("first-last", firstLast),
		rule("heads", heads),
		rule("centrality", centrality),
		rule("index", index),
		rule("index+last-n", func(texts []string, n int) string {
			found := index(texts, n/2)
			return found + "\n" + tail(strings.Join(texts, "\n"), n-len(found)-1)
		}),
		{Name: "truncate", Kind: KindFallback, Summarizer: truncate{}, BytesPerToken: 1},
	}
}

// errNoText means that there is nothing to summarize.
var errNoText = errors.New("eval: baseline: nothing to summarize")

// rule is a baseline on plain texts, the oldest first.
type rule struct {
	run func(texts []string, budget int) string
}

// Summarize applies the rule.
func (b rule) Summarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var texts []string
	if r.PreviousSummary != nil {
		texts = strings.Split(*r.PreviousSummary, "\n")
	}
	for i := range r.Messages {
		texts = append(texts, flat(&r.Messages[i]))
	}
	if len(texts) == 0 {
		return nil, errNoText
	}
	return &abi.Summary{Text: head(b.run(texts, int(r.BudgetTokens)), int(r.BudgetTokens))}, nil
}

// head and tail cut a text at n bytes, between characters.
func head(s string, n int) string {
	if n >= len(s) {
		return s
	}
	n = max(0, n)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func tail(s string, n int) string {
	at := max(0, len(s)-max(0, n))
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}

func firstLast(texts []string, n int) string {
	all := strings.Join(texts, "\n")
	if len(all) <= n {
		return all
	}
	first := head(all, n/2)
	return first + "\n" + tail(all, n-len(first)-1)
}

// heads gives every text the same share; what short texts leave goes to the others.
func heads(texts []string, n int) string {
	low, high := 0, n
	for low < high { // the longest head with which all fit
		each, size := (low+high+1)/2, 0
		for _, t := range texts {
			size += min(each, len(t)) + 1
		}
		if size <= n {
			low = each
		} else {
			high = each - 1
		}
	}
	var b strings.Builder
	for _, t := range texts {
		b.WriteString(head(t, low) + "\n")
	}
	return head(b.String(), n)
}

// truncate is the fallback of a run: the view is made to fit, and what is left is
// written out.
type truncate struct{}

// Summarize truncates the messages behind the text before.
func (truncate) Summarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	view := r.Messages
	if r.PreviousSummary != nil {
		before := abi.Message{ID: "before", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(*r.PreviousSummary)}}
		view = append([]abi.Message{before}, view...)
	}
	if len(view) == 0 {
		return nil, errNoText
	}
	budget := int(r.BudgetTokens)
	text := Flatten(view)
	tokens := compaction.Estimate(view)
	for range 8 { // tokens and bytes are not proportional
		if len(text) <= budget {
			break
		}
		tokens = tokens * int64(budget) / int64(len(text)+1)
		text = Flatten(compaction.Truncate(view, tokens))
	}
	return &abi.Summary{Text: tail(text, budget)}, nil
}
