package ledger

import (
	"math"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// A meeting is shown as stretches of about the same length, one behind the other.
const (
	stretchRoom   = 320 // bytes of a page for each
	maxStretches  = 24
	coursePart    = .43 // of the room for what was said: as much as there is for the rest
	topicRoom     = 80  // of these, for words that are the stretch's more than the meeting's
	stretchVoices = 3   // those that spoke most are named
)

// course lists what was spoken of, in order: for each part who spoke most, its topics, then names that the page does not
// hold yet and words that come up often, and below that what was said, word for word. All are the statements.
func (p *page) course(x *lexicon, all []candidate, parts [][2]int) []string {
	list := p.s.Talk.Statements
	room, said := p.limit-len(p.b)-len(secCourse)-8, make([]string, len(parts))
	for i, part := range parts {
		for _, item := range p.saidItems(all[part[0]:part[1]], part[0], false) {
			said[i] += below + item
		}
		room -= len(said[i])
	}
	z := scores{counts: make([]int, len(x.weight)), given: make([]bool, len(x.weight))}
	var out []string
	for i, part := range parts {
		line := p.stretch(x, &z, list[part[0]:part[1]], all[part[0]:part[1]], room/(len(parts)-i))
		out = append(out, line+said[i])
		room -= len(line) + 1
	}
	return out
}

// below begins a line below an item.
const below = "\n  → "

// stretches parts statements into some of about the same length, at the ends of messages.
func stretches(list []abi.LedgerText, n int) (out [][2]int) {
	left := 0
	for i := range list {
		left += len(list[i].Text)
	}
	for from := 0; from < len(list) && n > 0; n-- {
		to, size := from, 0
		for ; to < len(list) && (size < left/n || to > from && list[to].Message == list[to-1].Message); to++ {
			size += len(list[to].Text)
		}
		to = max(to, from+1)
		left -= size
		out, from = append(out, [2]int{from, to}), to
	}
	return out
}

// represent takes for each part what says most of its topics, and returns how much room that takes.
func (x *lexicon) represent(all []candidate, parts [][2]int, room int) (taken int) {
	z := scores{counts: make([]int, len(x.weight))}
	for _, part := range parts {
		list := all[part[0]:part[1]]
		z.count(list)
		var best *candidate
		most := 0.0
		for i := range list {
			c, sum := &list[i], 0.0
			for _, w := range c.words {
				if n := float64(z.counts[w]); n > 1 {
					sum += float64(n * (n / float64(x.count[w])))
				}
			}
			size := float64(x.size(c))
			if gain := float64(sum*c.factor) / math.Sqrt(size); gain > most && x.size(c) <= room/len(parts)/2 {
				best, most = c, gain
			}
		}
		z.reset()
		if best != nil {
			best.taken = true
			taken += x.size(best)
			x.heads[best.group-1] = 0
			x.show(best)
		}
	}
	return taken
}

// stretch is the line of a part of the statements, in at most so many bytes.
func (p *page) stretch(x *lexicon, z *scores, list []abi.LedgerText, all []candidate, most int) string {
	line := []byte("- " + at(list[0].Message) + " to " + at(list[len(list)-1].Message) + " " + strings.Join(loudest(list), ", ") + ":")
	head := len(line)
	add := func(words offers, most int) {
		for len(words) > 0 {
			w := words.pop().at
			if len(line)+len(x.label[w])+1 > most {
				return
			}
			line = append(append(line, ' '), x.label[w]...)
			z.counts[w], z.given[w], x.seen[w] = 0, true, true
		}
	}
	z.count(all)
	add(z.topics(x), head+min(topicRoom, (most-head)/2))
	topics := len(line)
	add(z.words(x), most-len("; also\n"))
	z.reset()
	if topics > head && len(line) > topics {
		line = slices.Insert(line, topics, []byte("; also")...)
	}
	return string(line)
}

// loudest are the few that said most.
func loudest(list []abi.LedgerText) []string {
	said := map[string]int{}
	var by []string
	for i := range list {
		name := clean(list[i].By)
		if said[name] == 0 {
			by = append(by, name)
		}
		said[name] += len(list[i].Text)
	}
	slices.SortStableFunc(by, func(a, b string) int { return said[b] - said[a] })
	return by[:min(len(by), stretchVoices)]
}

// Weights of a stretch's words.
const (
	newName   = 20  // a name that the page does not hold
	givenPart = 0.3 // a word that another stretch has
	ownPart   = .34 // of the times that a word occurs, for a topic
)

// scores are those of the words of one stretch after the other.
type scores struct {
	counts []int // zero between two stretches
	given  []bool
	held   []int
	order  offers
}

// count counts the words of statements.
func (z *scores) count(list []candidate) {
	for i := range list {
		for _, w := range list[i].words {
			if z.counts[w] == 0 {
				z.held = append(z.held, w)
			}
			z.counts[w]++
		}
	}
}

func (z *scores) reset() {
	for _, w := range z.held {
		z.counts[w] = 0
	}
	z.held = z.held[:0]
}

// offer are the words that have a score, the best first.
func (z *scores) offer(x *lexicon, score func(w int, n, own float64) float64) offers {
	z.order = z.order[:0]
	for _, w := range z.held {
		if x.kinds[w] == abi.WordBareNumber {
			continue
		}
		n := float64(z.counts[w])
		if v := score(w, n, n/float64(x.count[w])); v > 0 {
			z.order = append(z.order, offer{v, w})
		}
	}
	z.order.order()
	return z.order
}

// topics are the words that come up in the stretch more than elsewhere.
func (z *scores) topics(x *lexicon) offers {
	return z.offer(x, func(w int, n, own float64) float64 {
		if n < 2 || own < ownPart || z.given[w] {
			return 0
		}
		return n * own
	})
}

// words are those that stand out.
func (z *scores) words(x *lexicon) offers {
	return z.offer(x, func(w int, n, own float64) float64 {
		isNew := x.listed(w) && !x.seen[w]
		score := n * (.5 + own)
		switch {
		case n < 2 && !isNew:
			return 0
		case z.given[w]:
			return score * givenPart
		case isNew:
			return score * newName
		}
		return score
	})
}
