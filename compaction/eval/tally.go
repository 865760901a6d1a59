package eval

import (
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// tally sums up a cell.
type tally struct {
	cell                 Cell
	all                  mean
	known                knownMean
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
	score mean
}

// knownMean is [Known] while it is summed up.
type knownMean struct{ first, last, kept mean }

// first scores the first text of a chain on what had been said by then.
func (t *tally) first(sub *subject, text string, said int) {
	d := newDocument(text)
	t.had = make([]hadFact, len(sub.facts))
	for i := range sub.facts {
		t.had[i] = hadFact{said: said, score: sub.facts[i].score(d, said)}
	}
}

// last scores the last text.
func (t *tally) last(sub *subject, text string) {
	d := newDocument(text)
	for i := range sub.facts {
		t.all.addMean(sub.facts[i].score(d, -1))
		if i < len(t.had) {
			t.known.add(t.had[i].score, sub.facts[i].score(d, t.had[i].said))
		}
	}
	t.had = nil
	t.cell.Conversations++
	t.cell.TokensBefore += sub.tokens
	t.cell.TokensAfter += compaction.Estimate([]abi.Message{{Content: []abi.ContentBlock{abi.Text(text)}}})
	if sectioned(text) {
		t.sectioned++
	}
	if len(sub.modified) > 0 {
		t.artifacts += named(text, sub.modified)
		t.cell.Structure.Modifying++
	}
	t.words += sub.said.share(text)
}

// done turns sums into means.
func (t *tally) done() Cell {
	c := &t.cell
	c.Probes, c.Groundable, c.Score = t.all.literal, t.all.grounded, t.all.score()
	c.Known = t.known.done()
	n := float64(max(1, c.Conversations))
	c.Structure.Sections, c.Structure.Prose = t.sectioned/n, t.words/n
	c.Structure.Artifacts = t.artifacts / float64(max(1, c.Structure.Modifying))
	if c.TokensBefore > 0 {
		c.Savings = 1 - float64(c.TokensAfter)/float64(c.TokensBefore)
	}
	c.Mean = millis(t.spent / time.Duration(max(1, c.Compactions)))
	return *c
}

// add counts a fact that was known at the first compaction.
func (k *knownMean) add(first, last mean) {
	a, b := first.score(), last.score()
	k.first.addMean(first)
	k.last.addMean(last)
	if first.literal > 0 {
		k.kept.add(Score{Literal: min(a.Literal, b.Literal), Grounded: min(a.Grounded, b.Grounded)}, first.grounded > 0)
	}
}

// done turns sums into means; nil when nothing was known.
func (k *knownMean) done() *Known {
	if k.first.literal == 0 {
		return nil
	}
	share := func(part, whole float64) float64 {
		if whole == 0 {
			return 1
		}
		return part / whole
	}
	return &Known{
		Probes: k.first.literal, First: k.first.score(), Last: k.last.score(),
		Kept: Score{Literal: share(k.kept.sum.Literal, k.first.sum.Literal), Grounded: share(k.kept.sum.Grounded, k.first.sum.Grounded)},
	}
}
