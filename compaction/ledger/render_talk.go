package ledger

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Weights of words in a statement.
const (
	numberWeight = 6
	properWeight = 4
	rareWeight   = 0.14
	kindBonus    = 1.3
	agentPart    = 0.8 // what the agent said counts less than what people said
	lineCost     = 14  // bytes that a statement takes besides its text, about
)

// candidate is a statement that may be shown.
type candidate struct {
	text  *abi.LedgerText
	words []int32
	gain  float64
	taken bool
}

// lexicon numbers words and weighs them by how rare they are.
type lexicon struct {
	ids    map[string]int32
	weight []float64
	count  []int
	seen   []bool
}

func (x *lexicon) words(s string) []int32 {
	var out []int32
	start := -1
	flush := func(end int) {
		if start < 0 {
			return
		}
		w := strings.Trim(s[start:end], "'.,:")
		first := start == 0
		start = -1
		if w == "" {
			return
		}
		low := strings.ToLower(w)
		if isFactWord(w, low) {
			out = append(out, x.id(w, low, first))
		}
	}
	for i := range len(s) {
		c := s[i]
		in := letter(c) || c >= '0' && c <= '9' || c == '\'' || c == '_' || (c == '.' || c == ',' || c == ':') && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9'
		switch {
		case in && start < 0:
			start = i
		case !in:
			flush(i)
		}
	}
	flush(len(s))
	slices.Sort(out)
	return slices.Compact(out)
}

func (x *lexicon) id(w, low string, first bool) int32 {
	id, ok := x.ids[low]
	if !ok {
		id = int32(len(x.weight))
		x.ids[low] = id
		x.weight, x.count = append(x.weight, 1), append(x.count, 0)
	}
	switch {
	case strings.ContainsAny(w, "0123456789") || strings.Contains(numberWords, " "+low+" "):
		x.weight[id] = max(x.weight[id], numberWeight)
	case !first && w[0] >= 'A' && w[0] <= 'Z':
		x.weight[id] = max(x.weight[id], properWeight)
	}
	return id
}

// statements are those that cover the most words which no other one has, in order of messages.
func (p *page) statements() []string {
	list := p.s.Talk.Statements
	if p.share.statements == 0 {
		return nil
	}
	x := &lexicon{ids: map[string]int32{}}
	all := make([]candidate, len(list))
	for i := range list {
		all[i] = candidate{text: &list[i], words: x.words(list[i].Text)}
		for _, w := range all[i].words {
			x.count[w]++
		}
	}
	for i := range x.weight {
		x.weight[i] *= 1 + float64(rareWeight*float64(bits.Len(uint((len(list)+1)/(x.count[i]+1)))))
	}
	x.seen = make([]bool, len(x.weight))
	room := int(p.share.statements*float64(p.limit)) - len(secStatement) - 8
	room = min(room, p.limit-len(p.b)-len(secStatement)-8)
	p.choose(all, x, room)
	return p.saidItems(all)
}

// choose takes statements by what they add for each byte, until the room is full.
func (p *page) choose(all []candidate, x *lexicon, room int) {
	queue := make([]int, len(all))
	for i := range all {
		queue[i] = i
		all[i].gain = p.gain(&all[i], x)
	}
	byGain := func(a, b int) int { return cmp.Or(cmp.Compare(all[b].gain, all[a].gain), cmp.Compare(b, a)) }
	for len(queue) > 0 && room > minStatement {
		slices.SortFunc(queue, byGain)
		// Gains only fall, so that those above the middle are worth a look; the others wait.
		half := max(1, len(queue)/8)
		rest := queue[half:]
		var again []int
		for _, i := range queue[:half] {
			c := &all[i]
			g := p.gain(c, x)
			cost := len(c.text.Text) + 10
			switch {
			case g < c.gain*.9:
				c.gain = g
				if g > 0 {
					again = append(again, i)
				}
			case cost <= room && g > 0:
				c.taken = true
				room -= cost
				for _, w := range c.words {
					x.seen[w] = true
				}
			}
		}
		queue = slices.Concat(again, rest)
	}
}

// gain is what a statement adds.
func (p *page) gain(c *candidate, x *lexicon) float64 {
	sum := 0.0
	for _, w := range c.words {
		if !x.seen[w] {
			sum += x.weight[w]
		}
	}
	if c.text.Kind != "" {
		sum *= kindBonus
	}
	if c.text.By == string(abi.RoleAssistant) {
		sum *= agentPart
	}
	sum *= .9 + float64(.2*p.recency(c.text.Message))
	size := float64(len(c.text.Text) + lineCost)
	return sum / (size / math.Sqrt(math.Sqrt(size))) // to the power of 3/4
}

// betweenSaid separates the statements of one message.
const betweenSaid = " · "

// saidItems puts the statements of one message and speaker on a line, word for word.
func (p *page) saidItems(all []candidate) []string {
	var out []string
	line, m, by := "", -1, ""
	for i := range all {
		t := all[i].text
		if !all[i].taken {
			continue
		}
		if t.Message == m && t.By == by && line != "" {
			line += betweenSaid + clean(t.Text)
		} else {
			if line != "" {
				out = append(out, line)
			}
			line, m, by = "- "+at(t.Message)+" "+clean(t.By)+": "+clean(t.Text), t.Message, t.By
		}
		if t.Replaces != 0 {
			line += " (earlier: " + at(t.Replaces) + ")"
		}
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}
