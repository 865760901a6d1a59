package eval

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// centrality takes the sentences nearest to the centre of all.
func centrality(texts []string, budget int) string {
	list := sentences(texts)
	weigh(list)
	slices.SortStableFunc(list, func(a, b *sentence) int { return cmp.Compare(b.score, a.score) })
	left := budget
	taken := list[:0]
	for _, s := range list {
		if len(s.text)+1 <= left {
			left -= len(s.text) + 1
			taken = append(taken, s)
		}
	}
	slices.SortFunc(taken, func(a, b *sentence) int { return a.order - b.order })
	var out strings.Builder
	for _, s := range taken {
		out.WriteString(s.text + "\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}

type sentence struct {
	text  string
	words []string
	order int
	score float64
}

// sentences cuts texts into sentences, each once.
func sentences(texts []string) []*sentence {
	var out []*sentence
	l := newLexicon()
	known := make(map[string]bool)
	for _, t := range texts {
		start := 0
		for i := range len(t) {
			if !ends(t, i) && i < len(t)-1 {
				continue
			}
			text := strings.TrimSpace(t[start : i+1])
			start = i + 1
			if text == "" || known[text] {
				continue
			}
			known[text] = true
			if words := l.content(text); len(words) > 0 {
				out = append(out, &sentence{text: text, words: words, order: len(out)})
			}
		}
	}
	return out
}

// weigh scores each sentence by the cosine of its words with the centre, words
// weighted by how few sentences hold them.
func weigh(list []*sentence) {
	holds := make(map[string]int)
	for _, s := range list {
		for _, w := range s.words {
			holds[w]++
		}
	}
	rare := func(w string) float64 { return math.Log(float64(len(list)+1) / float64(holds[w])) }
	for _, s := range list {
		var dot, norm float64
		for _, w := range s.words {
			weight := rare(w)
			dot += weight * weight * float64(holds[w])
			norm += weight * weight
		}
		if norm > 0 {
			s.score = dot / math.Sqrt(norm)
		}
	}
}
