package ledger

import (
	"math"
	"math/bits"
	"slices"
)

// rareWeight is what counts for each halving of how many texts hold a word.
const rareWeight = 0.6

// candidate is a text that may be shown: a statement, a call, a value of a record.
type candidate struct {
	words  []int
	size   int     // bytes that it takes
	factor float64 // how much its words count
	group  int     // of 1 and more: the record that it belongs to
	taken  bool
}

// weigh fixes what the words of some texts are worth: rare ones more.
func (x *lexicon) weigh(all []candidate) {
	x.count = make([]int, len(x.weight))
	for i := range all {
		for _, w := range all[i].words {
			x.count[w]++
		}
	}
	x.value, x.seen = make([]float64, len(x.weight)), make([]bool, len(x.weight))
	for i, w := range x.weight {
		x.value[i] = float64(w * (1 + float64(rareWeight*float64(bits.Len(uint((len(all)+1)/(x.count[i]+1)))))))
	}
}

// use notes that the user or the agent wrote words.
func (x *lexicon) use(words []int, weight float64) {
	for _, w := range words {
		x.used[w] = max(x.used[w], weight)
	}
}

// size is how many bytes a candidate takes now.
func (x *lexicon) size(c *candidate) int {
	if c.group > 0 {
		return c.size + x.heads[c.group-1]
	}
	return c.size
}

// stillGood is the part of its former gain with which a candidate is taken at once.
const stillGood = 0.95

// choose takes candidates by what they add for each byte, until the room is full.
func (x *lexicon) choose(all []candidate, room int) {
	order := make(offers, 0, len(all))
	for i := range all {
		if c := &all[i]; !c.taken && len(c.words) > 0 {
			order = append(order, offer{x.gain(c), i})
		}
	}
	order.order()
	var tooLong []offer // that may fit when the head of their group is shown
	for room > minStatement && len(order) > 0 {
		best := order[0]
		c := &all[best.at]
		if best.gain <= 0 {
			return
		}
		if x.size(c) > room {
			tooLong = append(tooLong, order.pop())
			continue
		}
		if g := x.gain(c); g < best.gain*stillGood { // others were taken since
			order.lower(g)
			continue
		}
		order.pop()
		c.taken = true
		room -= x.size(c)
		x.show(c)
		if c.group > 0 && x.heads[c.group-1] > 0 {
			x.heads[c.group-1] = 0
			tooLong = slices.DeleteFunc(tooLong, func(o offer) bool {
				if all[o.at].group != c.group {
					return false
				}
				order.push(o)
				return true
			})
		}
	}
}

// show notes what a text that is shown holds.
func (x *lexicon) show(c *candidate) {
	for _, w := range c.words {
		x.seen[w] = true
		if !x.paired || x.weight[w] == plainWeight {
			continue
		}
		if x.together == nil {
			x.together = make([][]uint64, len(x.weight))
		}
		if x.together[w] == nil {
			x.together[w] = make([]uint64, (len(x.weight)+63)/64)
		}
		for _, o := range c.words {
			x.together[w][o/64] |= 1 << (o % 64)
		}
	}
}

// gain is what a text adds for each byte.
func (x *lexicon) gain(c *candidate) float64 {
	sum := 0.0
	for k, w := range c.words {
		value := x.value[w]
		if !x.seen[w] {
			sum += value
		}
		if !x.paired || x.weight[w] == plainWeight {
			continue
		}
		if !x.seen[w] {
			for range len(c.words) - 1 {
				sum += value
			}
			continue
		}
		shown := x.together[w]
		for m, o := range c.words {
			if m != k && shown[o/64]&(1<<(o%64)) == 0 {
				sum += value
			}
		}
	}
	size := float64(x.size(c))
	return float64(sum*c.factor) / (size / math.Sqrt(math.Sqrt(size))) // to the power of 3/4
}
