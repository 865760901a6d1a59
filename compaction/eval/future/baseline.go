package future

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval"
)

// Baselines returns simple rules that a summary must beat:
//
//   - last-n: the end of the text.
//   - index: names, each once, by the square root of their frequency and how
//     recently they occurred.
//   - index-own: the same, but names that the user or the agent wrote count more.
//   - half-half: half of the size for last-n, half for index-own.
func Baselines() []eval.Contender {
	rule := func(name string, run func(parts []part, size int) string) eval.Contender {
		return eval.Contender{Name: name, Kind: eval.KindBaseline, Summarizer: rule(run), BytesPerToken: 1}
	}
	return []eval.Contender{
		rule("last-n", lastN),
		rule("index", func(p []part, size int) string { return index(p, size, false) }),
		rule("index-own", func(p []part, size int) string { return index(p, size, true) }),
		rule("half-half", func(p []part, size int) string {
			end := lastN(p, size/2)
			return end + "\n" + index(p, size-len(end)-1, true)
		}),
	}
}

// part is a text of one writer.
type part struct {
	text string
	own  bool // of the user or the agent
}

// rule writes a text of a size in bytes.
type rule func(parts []part, size int) string

// Summarize applies the rule. The summary before counts as the oldest text.
func (r rule) Summarize(ctx context.Context, q *abi.SummarizeRequest) (*abi.Summary, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var parts []part
	if q.PreviousSummary != nil {
		parts = append(parts, part{text: *q.PreviousSummary})
	}
	for i := range q.Messages {
		m := &q.Messages[i]
		text := eval.Flatten(q.Messages[i : i+1])
		parts = append(parts, part{text: text, own: m.Role == abi.RoleUser || m.Role == abi.RoleAssistant})
	}
	if len(parts) == 0 {
		return nil, errors.New("future: baseline: nothing to summarize")
	}
	return &abi.Summary{Text: r(parts, int(q.BudgetTokens))}, nil
}

func lastN(parts []part, size int) string {
	left := size
	var out []string
	for _, p := range slices.Backward(parts) {
		if left <= 0 {
			break
		}
		s := p.text
		if len(s) > left {
			at := len(s) - left
			for at < len(s) && !utf8.RuneStart(s[at]) {
				at++
			}
			s = s[at:]
		}
		left -= len(s)
		out = append(out, s)
	}
	slices.Reverse(out)
	return strings.Join(out, "")
}

// ownWeight is how much more a name counts that the user or the agent wrote.
const ownWeight = 4

// name is what is known of a token.
type name struct {
	text           string
	n, first, last int
	own            bool
	weight         float64
}

func index(parts []part, size int, own bool) string {
	known := make(map[string]*name)
	var list []*name
	for i, p := range parts {
		tokens(p.text, func(w string) {
			e, ok := known[w]
			if !ok {
				e = &name{text: w, first: len(list)}
				known[w] = e
				list = append(list, e)
			}
			e.n++
			e.last = i
			e.own = e.own || p.own
		})
	}
	for _, e := range list {
		e.weight = math.Sqrt(float64(e.n)) * float64(e.last+1) / float64(len(parts))
		if own && e.own {
			e.weight *= ownWeight
		}
	}
	slices.SortFunc(list, func(a, b *name) int { return cmp.Or(cmp.Compare(b.weight, a.weight), a.first-b.first) })
	var b strings.Builder
	for _, e := range list {
		if b.Len()+len(e.text)+1 <= size {
			b.WriteString(e.text + "\n")
		}
	}
	return b.String()
}

// tokens hands on the names of a text: runs of letters, digits and signs with at
// least one sign or digit in them, or a capital behind a small letter.
func tokens(text string, f func(w string)) {
	start := -1
	for i := 0; i <= len(text); i++ {
		if i < len(text) && inName(text[i]) {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			w := strings.Trim(text[start:i], ".,:;-")
			if len(w) >= minFact && len(w) <= maxFact && isName(w) {
				f(w)
			}
			start = -1
		}
	}
}

func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_./:@-", c) >= 0
}

func isName(w string) bool {
	small := false
	for i := range len(w) {
		switch c := w[i]; {
		case c >= '0' && c <= '9', strings.IndexByte("/_.:", c) >= 0, small && c >= 'A' && c <= 'Z':
			return true
		default:
			small = c >= 'a' && c <= 'z'
		}
	}
	return false
}
