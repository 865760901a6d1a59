package compaction

import (
	"regexp"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Survival counts things that a source holds, and those that its summary keeps
// word for word.
type Survival struct {
	Total int `json:"total"`
	Kept  int `json:"kept"`
}

func (s Survival) share() float64 {
	if s.Total == 0 {
		return 1
	}
	return float64(s.Kept) / float64(s.Total)
}

// Quality is what a summary keeps of its source.
type Quality struct {
	Paths       Survival `json:"paths"`
	URLs        Survival `json:"urls"`
	Identifiers Survival `json:"identifiers"`
	Numbers     Survival `json:"numbers"`
	Errors      Survival `json:"errors"`
	// Overall weighs the kinds that the source has: paths and errors double,
	// numbers half. 1 when there is nothing to keep.
	Overall float64 `json:"overall"`
	// Savings is the share of the source's tokens that the summary saves.
	Savings float64 `json:"savings"`
}

// Bounds on scoring, so that its cost does not depend on what somebody wrote.
const (
	maxScored    = 4 << 20 // bytes of source
	maxItems     = 400     // of each kind, the most frequent first
	minMentioned = 2       // an identifier or number must occur so often to count
)

// Scorer measures summaries. It is immutable and safe for concurrent use.
type Scorer struct {
	kinds []kind
}

// kind is one sort of thing that should survive.
type kind struct {
	pattern *regexp.Regexp
	weight  float64
	least   int
	into    func(*Quality) *Survival
}

// NewScorer compiles the patterns.
func NewScorer() *Scorer {
	return &Scorer{kinds: []kind{
		{regexp.MustCompile(`https?://[^\s"'<>)\]]+`), 1, 1, func(q *Quality) *Survival { return &q.URLs }},
		{regexp.MustCompile(`(?:\.{0,2}/)?(?:[\w.-]+/)+[\w-]+\.[A-Za-z]\w{0,7}`), 2, minMentioned, func(q *Quality) *Survival { return &q.Paths }},
		{regexp.MustCompile(`(?m)^.{0,80}(?:Error|Exception|panic|FAIL|fatal|error):[ \t].{3,120}$`), 2, 1, func(q *Quality) *Survival { return &q.Errors }},
		{regexp.MustCompile(`\b(?:[a-z]+[A-Z]\w{2,}|[A-Z][a-z0-9]+[A-Z]\w*|[A-Za-z]\w*_\w+)\b`), 1, minMentioned, func(q *Quality) *Survival { return &q.Identifiers }},
		{regexp.MustCompile(`\b\d[\d.,]{2,}\d\b`), 0.5, minMentioned, func(q *Quality) *Survival { return &q.Numbers }},
	}}
}

// Score measures a summary against what it stands for: the messages and the
// summary before it.
func (s *Scorer) Score(source []abi.Message, previous *string, summary string) Quality {
	text := sourceText(source, previous)
	var q Quality
	var sum, weights float64
	for _, k := range s.kinds {
		into := k.into(&q)
		for _, item := range frequent(k.pattern, text, k.least) {
			into.Total++
			if strings.Contains(summary, item) {
				into.Kept++
			}
		}
		if into.Total > 0 {
			sum += k.weight * into.share()
			weights += k.weight
		}
	}
	q.Overall = 1
	if weights > 0 {
		q.Overall = sum / weights
	}
	before := Estimate(source)
	if previous != nil {
		before += textTokens(*previous)
	}
	if before > 0 {
		q.Savings = 1 - float64(textTokens(summary))/float64(before)
	}
	return q
}

func sourceText(source []abi.Message, previous *string) string {
	var b strings.Builder
	write := func(s string) {
		b.WriteString(s[:min(len(s), max(0, maxScored-b.Len()))])
		b.WriteByte('\n')
	}
	if previous != nil {
		write(*previous)
	}
	for i := range source {
		if b.Len() >= maxScored {
			break
		}
		write(source[i].Text())
		for _, c := range source[i].ToolCalls {
			write(argumentText(c.Arguments))
		}
	}
	return b.String()
}

// frequent returns what matches, if it occurs often enough, the first maxItems
// in the order of their first occurrence.
func frequent(pattern *regexp.Regexp, text string, least int) []string {
	count := make(map[string]int)
	var order []string
	for _, m := range pattern.FindAllString(text, 100_000) {
		m = strings.TrimSpace(strings.TrimRight(m, ".,;:"))
		count[m]++
		if count[m] == least && len(order) < maxItems {
			order = append(order, m)
		}
	}
	return order
}
