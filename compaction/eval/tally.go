package eval

import (
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// tally sums up a cell.
type tally struct {
	cell                 Cell
	known                Known
	spent                time.Duration
	sectioned, artifacts float64
	words                float64
	// had is what the first text of a subject's chain has of each fact that was
	// known then; nil for a single compaction.
	had []hadFact
}

func (t *tally) took(d time.Duration) {
	t.spent += d
	t.cell.Max = max(t.cell.Max, millis(d))
	t.cell.Compactions++
}

func (t *tally) failed(err error) {
	t.cell.Failures++
	if t.cell.Error == "" {
		t.cell.Error = err.Error()
	}
}

// hadFact is a fact of a subject at the first compaction of a chain.
type hadFact struct {
	said  int
	score Score
	known bool
}

// first scores the first text of a chain on what had been said by then.
func (t *tally) first(sub *subject, text string, said int) {
	d := newDocument(text)
	t.had = make([]hadFact, len(sub.facts))
	for i := range sub.facts {
		h := hadFact{said: said}
		h.score, h.known = sub.facts[i].score(d, said)
		t.had[i] = h
	}
}

// last scores the last text.
func (t *tally) last(sub *subject, text string) {
	d := newDocument(text)
	for i := range sub.facts {
		s, _ := sub.facts[i].score(d, -1)
		t.cell.Probes++
		t.cell.add(s)
		if i >= len(t.had) || !t.had[i].known {
			continue
		}
		had := t.had[i].score
		s, _ = sub.facts[i].score(d, t.had[i].said)
		t.known.Probes++
		t.known.First.add(had)
		t.known.Last.add(s)
		t.known.Kept.add(Score{Literal: min(s.Literal, had.Literal), Grounded: min(s.Grounded, had.Grounded)})
	}
	t.had = nil
	t.cell.Conversations++
	t.cell.TokensBefore += sub.tokens
	t.cell.TokensAfter += compaction.Estimate([]abi.Message{{Content: []abi.ContentBlock{abi.Text(text)}}})
	if sectioned(text) {
		t.sectioned++
	}
	t.artifacts += named(text, sub.modified)
	t.words += sub.said.share(text)
}

// done turns sums into means.
func (t *tally) done() Cell {
	c := &t.cell
	c.over(c.Probes)
	if t.known.Probes > 0 {
		c.Known = t.known.done()
	}
	n := float64(max(1, c.Conversations))
	c.Structure.Sections, c.Structure.Prose, c.Structure.Artifacts = t.sectioned/n, t.words/n, t.artifacts/n
	if c.TokensBefore > 0 {
		c.Savings = 1 - float64(c.TokensAfter)/float64(c.TokensBefore)
	}
	c.Mean = millis(t.spent / time.Duration(max(1, c.Compactions)))
	return *c
}
