package eval

import (
	"slices"
	"strings"
)

// Bounds on the search for what grounds a needle.
const (
	maxPlaces    = 4096 // places of a needle in a text
	maxSentences = 64   // sentences of the conversation that are read for a needle
)

// Score is how much of a fact survives, from 0 to 1.
type Score struct {
	Literal  float64 `json:"literal"`
	Grounded float64 `json:"grounded"`
}

// fact is a probe that was prepared on its conversation.
type fact struct {
	needles []needle
	all     bool // each needle counts by itself
	lex     *lexicon
}

// needle is a string that the conversation states.
type needle struct {
	text string
	// words ground it: those of the question when it was asked for, else plain
	// ones of the sentences.
	words []string
	asked bool
	// end is the end of the place where the conversation states it first.
	end int
}

// groundable reports that something could ground the fact.
func (f *fact) groundable() bool {
	return slices.ContainsFunc(f.needles, func(n needle) bool { return len(n.words) > 0 })
}

// newFact finds what grounds a probe. Needles that the conversation does not
// state word for word are left out; nothing of them could survive.
func newFact(p *Probe, conversation *document, l *lexicon) fact {
	f := fact{all: len(p.Keys) > 0, lex: l}
	asked := l.content(p.Question)
	for _, s := range p.needles() {
		n := needle{text: fold(strings.TrimSpace(s)), words: asked, asked: p.Question != ""}
		if f.all && l.stop[n.text] { // a word that opens a sentence is no fact
			continue
		}
		at := places(conversation.fold, n.text, maxSentences)
		if len(at) == 0 {
			continue
		}
		n.end = at[0] + len(n.text)
		if !n.asked {
			var held strings.Builder
			for _, i := range at {
				from, to := unitAround(conversation.text, i, i+len(n.text))
				held.WriteString(conversation.text[from:to] + "\n")
			}
			for _, w := range l.prose(held.String()) {
				n.words = append(n.words, w.word)
			}
			slices.Sort(n.words)
			n.words = slices.Compact(n.words)
		}
		n.words = slices.DeleteFunc(slices.Clone(n.words), func(w string) bool { return strings.Contains(n.text, w) })
		f.needles = append(f.needles, n)
	}
	return f
}

// score looks for the fact in a text. Of the needles only those count that the
// conversation states within its first said bytes; a negative said takes all.
func (f *fact) score(d *document, said int) mean {
	var all mean
	var best Score
	for i := range f.needles {
		n := &f.needles[i]
		if said >= 0 && n.end > said {
			continue
		}
		s := n.find(d, f.lex)
		all.add(s, len(n.words) > 0)
		best.Literal, best.Grounded = max(best.Literal, s.Literal), max(best.Grounded, s.Grounded)
	}
	if f.all {
		return all
	}
	return mean{sum: best, literal: min(1, all.literal), grounded: min(1, all.grounded)}
}

func (n *needle) find(d *document, l *lexicon) Score {
	var s Score
	for _, i := range places(d.fold, n.text, maxPlaces) {
		s.Literal = 1
		end := i + len(n.text)
		from, to := unitAround(d.text, i, end)
		if n.grounds(d, from, i, l) || n.grounds(d, end, to, l) {
			return Score{Literal: 1, Grounded: 1}
		}
	}
	return s
}

// grounds reports whether a content word stands in a part of the text.
func (n *needle) grounds(d *document, from, to int, l *lexicon) bool {
	if n.asked {
		return slices.ContainsFunc(n.words, func(w string) bool { return begins(d.fold[from:to], w) })
	}
	return slices.ContainsFunc(d.between(from, to, l), func(w proseWord) bool {
		_, ok := slices.BinarySearch(n.words, w.word)
		return ok
	})
}

// mean is the mean of scores. What nothing could ground does not count for the
// grounded one.
type mean struct {
	sum               Score
	literal, grounded int
}

func (m *mean) add(s Score, groundable bool) {
	m.sum.Literal += s.Literal
	m.literal++
	if groundable {
		m.sum.Grounded += s.Grounded
		m.grounded++
	}
}

// addMean counts another mean as one.
func (m *mean) addMean(o mean) {
	if o.literal > 0 {
		m.add(o.score(), o.grounded > 0)
	}
}

func (m *mean) score() Score {
	return Score{Literal: m.sum.Literal / float64(max(1, m.literal)), Grounded: m.sum.Grounded / float64(max(1, m.grounded))}
}

// Grade scores a text for one probe of a conversation, and reports false when
// the conversation does not state the fact word for word.
func Grade(p Probe, conversation Conversation, text string) (Score, bool) {
	f := newFact(&p, newDocument(Flatten(conversation.Messages)), newLexicon())
	m := f.score(newDocument(text), -1)
	return m.score(), m.literal > 0
}

// Facts are probes that were prepared on a conversation, for scoring many texts.
type Facts struct{ facts []fact }

// Verdict is the score of a probe in a text.
type Verdict struct {
	Score
	// Groundable reports that something could ground the fact. Where it is false
	// Grounded is 0 and says nothing.
	Groundable bool
}

// Prepare finds what grounds the probes of a conversation.
func Prepare(c Conversation, probes []Probe) *Facts {
	l, d := newLexicon(), newDocument(Flatten(c.Messages))
	f := &Facts{facts: make([]fact, len(probes))}
	for i := range probes {
		f.facts[i] = newFact(&probes[i], d, l)
	}
	return f
}

// Score scores a text for each probe, in their order.
func (f *Facts) Score(text string) []Verdict {
	d := newDocument(text)
	out := make([]Verdict, len(f.facts))
	for i := range f.facts {
		m := f.facts[i].score(d, -1)
		out[i] = Verdict{Score: m.score(), Groundable: f.facts[i].groundable()}
	}
	return out
}
