package hook

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Index ranks the names of a conversation by how often and how late they were used, and by whom: it is the simple
// [Repairer]. It keeps at most a bounded number of names.
type Index struct {
	at    int
	names map[string]*name
}

type name struct {
	fact  Fact
	score float64 // of uses, those of the agent and the user counted more
	last  int
	first int
}

// maxNames is when the least of an index is forgotten.
const maxNames = 20_000

// ownWeight is how much more a name counts that the agent or the user wrote.
const ownWeight = 4

// NewIndex makes an empty index.
func NewIndex() *Index { return &Index{names: map[string]*name{}} }

// Add implements [Repairer].
func (x *Index) Add(text string, own bool) {
	x.at++
	for _, f := range factsIn(text) {
		n := x.names[f.Text]
		if n == nil {
			n = &name{fact: f, first: x.at}
			x.names[f.Text] = n
		}
		n.last = x.at
		n.score++
		if own {
			n.score += ownWeight - 1
		}
	}
	if len(x.names) > maxNames {
		for _, n := range x.ranked()[maxNames/2:] {
			delete(x.names, n.fact.Text)
		}
	}
}

// Facts implements [Repairer].
func (x *Index) Facts() []Fact {
	ranked := x.ranked()
	out := make([]Fact, len(ranked))
	for i, n := range ranked {
		out[i] = n.fact
	}
	return out
}

func (x *Index) ranked() []*name {
	out := make([]*name, 0, len(x.names))
	for _, n := range x.names {
		out = append(out, n)
	}
	rank := func(n *name) float64 {
		return math.Sqrt(n.score) * (float64(n.last) + 1) / (float64(x.at) + 1)
	}
	slices.SortFunc(out, func(a, b *name) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(a.first, b.first), strings.Compare(a.fact.Text, b.fact.Text))
	})
	return out
}

// Lost implements [Repairer].
func (*Index) Lost(summary string, facts []Fact) []Fact {
	var out []Fact
	for _, f := range facts {
		if !strings.Contains(summary, f.Text) {
			out = append(out, f)
		}
	}
	return out
}

var (
	word    = regexp.MustCompile("[A-Za-z0-9_@~][A-Za-z0-9_@./:~#?&=%+-]{3,199}")
	long    = regexp.MustCompile(`^\d[0-9.,:_-]{4,}$`)
	hexes   = regexp.MustCompile(`^[0-9a-f]{7,64}$`)
	compact = regexp.MustCompile(`[a-z0-9][A-Z]|_|::|\d`)
)

// maxFactText bounds the text of one entry that is searched for names.
const maxFactText = 256 << 10

// factsIn finds names: paths, URLs, identifiers, hashes and long numbers.
func factsIn(text string) []Fact {
	text = text[:min(len(text), maxFactText)]
	seen := map[string]bool{}
	var out []Fact
	for _, w := range word.FindAllString(text, -1) {
		w = strings.TrimRight(w, ".:,?&=-+#%")
		if len(w) < 4 || seen[w] {
			continue
		}
		if kind, ok := kindOf(w); ok {
			seen[w] = true
			out = append(out, Fact{Kind: kind, Text: w})
		}
	}
	return out
}

func kindOf(w string) (FactKind, bool) {
	switch dot := strings.LastIndexByte(w, '.'); {
	case strings.Contains(w, "://"), long.MatchString(w), hexes.MatchString(w) && strings.ContainsAny(w, "0123456789"):
		return FactValue, true
	case strings.Contains(w, "/") && len(w) > 5:
		return FactFile, true
	case dot > 0 && len(w)-dot <= 5 && !strings.ContainsAny(w[dot+1:], "0123456789") && strings.ToLower(w[dot+1:]) == w[dot+1:]:
		return FactFile, true
	case len(w) >= 6 && compact.MatchString(w) && strings.ContainsAny(w, "abcdefghijklmnopqrstuvwxyz"):
		return FactIdentifier, true
	}
	return "", false
}
