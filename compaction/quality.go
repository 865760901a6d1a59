package compaction

import (
	"regexp"
	"slices"
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
	// Files are those that tool calls read or changed. Pins are pinned messages that
	// stay in the view word for word. Structure counts the headings of the summary
	// before, which a summary that continues from it keeps.
	Files     Survival `json:"files"`
	Pins      Survival `json:"pins"`
	Structure Survival `json:"structure"`
	// Overall weighs paths, URLs, identifiers, numbers and errors, as far as the
	// source has them: paths and errors double, numbers half. 1 when there is nothing
	// to keep.
	Overall float64 `json:"overall"`
	// Savings is the share of the source's tokens that the summary saves.
	Savings float64 `json:"savings"`
}

// Bounds on scoring, so that its cost does not depend on the input.
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
	pattern *regexp.Regexp // matches within a line
	in      []string       // one of them is in each line that matches
	weight  float64
	least   int
	into    func(*Quality) *Survival
}

// bar is a score and what it must be at least.
type bar struct {
	name  string
	got   Survival
	least float64
}

func (b *Bars) list(q *Quality) []bar {
	return []bar{
		{"paths", q.Paths, b.Paths},
		{"urls", q.URLs, b.URLs},
		{"identifiers", q.Identifiers, b.Identifiers},
		{"numbers", q.Numbers, b.Numbers},
		{"errors", q.Errors, b.Errors},
		{"files", q.Files, b.Files},
		{"pins", q.Pins, b.Pins},
		{"structure", q.Structure, b.Structure},
	}
}

// NewScorer compiles the patterns.
func NewScorer() *Scorer {
	return &Scorer{kinds: []kind{
		{regexp.MustCompile(`https?://[^\s"'<>)\]]+`), []string{"://"}, 1, 1, func(q *Quality) *Survival { return &q.URLs }},
		{regexp.MustCompile(`(?:\.{0,2}/)?(?:[\w.-]+/)+[\w-]+\.[A-Za-z]\w{0,7}`), []string{"/"}, 2, minMentioned, func(q *Quality) *Survival { return &q.Paths }},
		{regexp.MustCompile(`(?m)^.{0,80}(?:Error|Exception|panic|FAIL|fatal|error):[ \t].{3,120}$`), []string{"rror:", "Exception:", "panic:", "FAIL:", "fatal:"}, 2, 1, func(q *Quality) *Survival { return &q.Errors }},
		{regexp.MustCompile(`\b(?:[a-z]+[A-Z]\w{2,}|[A-Z][a-z0-9]+[A-Z]\w*|[A-Za-z]\w*_\w+)\b`), []string{""}, 1, minMentioned, func(q *Quality) *Survival { return &q.Identifiers }},
		{regexp.MustCompile(`\b\d[\d.,]{2,}\d\b`), []string{""}, 0.5, minMentioned, func(q *Quality) *Survival { return &q.Numbers }},
	}}
}

// Score measures a summary against what it replaces: the messages and the
// summary before it. Pins count as kept when the summary has their text.
func (s *Scorer) Score(source []abi.Message, previous *string, summary string) Quality {
	text := sourceText(source, previous)
	var q Quality
	var sum, weights float64
	for _, k := range s.kinds {
		into := k.into(&q)
		for _, item := range frequent(&k, text) {
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
	read, modified := make(fileSet), make(fileSet)
	fileOperations(source, read, modified)
	q.Files = mentioned(summary, read.sorted(), modified.sorted())
	for i := range source {
		if source[i].Pinned {
			q.Pins.Total++
			if text := source[i].Text(); strings.Contains(summary, text) {
				q.Pins.Kept++
			}
		}
	}
	if previous != nil {
		q.Structure = headings(*previous, summary)
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
func frequent(k *kind, text string) []string {
	count := make(map[string]int)
	var order []string
	left := 100_000
	for line := range strings.SplitSeq(text, "\n") {
		if !slices.ContainsFunc(k.in, func(part string) bool { return strings.Contains(line, part) }) {
			continue // the pattern takes many times as long to find nothing
		}
		matches := k.pattern.FindAllString(line, left)
		left -= len(matches)
		for _, m := range matches {
			m = strings.TrimSpace(strings.TrimRight(m, ".,;:"))
			count[m]++
			if count[m] == k.least && len(order) < maxItems {
				order = append(order, m)
			}
		}
	}
	return order
}

// mentioned counts the different files of the lists, and those that a text names.
func mentioned(text string, lists ...[]string) Survival {
	var s Survival
	seen := make(map[string]bool)
	for _, list := range lists {
		for _, path := range list {
			if seen[path] {
				continue
			}
			seen[path] = true
			s.Total++
			if strings.Contains(text, shownPath(path)) {
				s.Kept++
			}
		}
	}
	return s
}

// headings counts the headings of one text that another one has too.
func headings(previous, summary string) Survival {
	var s Survival
	has := make(map[string]bool)
	for line := range strings.Lines(summary) {
		has[strings.TrimSpace(line)] = true
	}
	for line := range strings.Lines(previous) {
		line = strings.TrimSpace(line)
		if s.Total < maxItems && strings.HasPrefix(line, "#") && strings.Contains(line, "# ") {
			s.Total++
			if has[line] {
				s.Kept++
			}
		}
	}
	return s
}

// pins counts the pinned messages that a marker covers, and those that it leaves in
// the view.
func (x *index) pins(c cover) Survival {
	var s Survival
	for _, i := range x.pinned {
		if i >= c.from && i <= c.to {
			s.Total++
			if _, kept := slices.BinarySearch(c.keep, i); kept {
				s.Kept++
			}
		}
	}
	return s
}
