package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// recency is from 0 to 1.
func (p *page) recency(m int) float64 { return float64(m) / float64(max(p.s.Messages, 1)) }

// keptRules are the newest and the strongest, in order of messages.
func (p *page) keptRules() []string {
	return p.byScore(p.s.Talk.Rules, p.share.rules, p.ruleScore())
}

func (p *page) ruleScore() func(*abi.LedgerText) float64 {
	strong := strongCues()
	return func(r *abi.LedgerText) float64 {
		score := p.recency(r.Message)
		if r.Kind == "refusal" || hasCue(strings.ToLower(r.Text), strong) {
			score += .5
		}
		return score
	}
}

// byScore quotes the texts of the highest scores that fit into a share, in order of messages.
func (p *page) byScore(list []abi.LedgerText, share float64, score func(*abi.LedgerText) float64) []string {
	order := ordered(list, score)
	room := int(share*float64(p.limit)) - 48
	items := make([]string, len(list))
	for _, i := range order[:candidates(list, order, room)] {
		t := &list[i]
		item := textItem(t.Message, t.Text, t.Size)
		if held := p.quoted[t.Message] && strings.Contains(string(p.b), clean(t.Text)); !held && len(item) < room {
			room -= len(item) + 1
			items[i] = item
		}
	}
	return items
}

func textItem(m int, s string, size int) string {
	return "- " + at(m) + " " + quoteCut(s, size, maxSentence)
}

// ordered returns the places of texts by their scores, the newest first among equals.
func ordered(list []abi.LedgerText, score func(*abi.LedgerText) float64) []int {
	scores, order := make([]float64, len(list)), make([]int, len(list))
	for i := range list {
		scores[i], order[i] = score(&list[i]), i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(b, a)) })
	return order
}

// candidates is how many of the best texts are looked at to fill a room: those that would fill it twice.
func candidates(list []abi.LedgerText, order []int, room int) int {
	sum := 0
	for n, i := range order {
		if sum > 2*room {
			return n
		}
		sum += len(list[i].Text)
	}
	return len(order)
}

func (p *page) findings() []string {
	return p.byScore(p.s.Talk.Findings, p.share.findings, p.findingScore())
}

// findingScore weighs a finding by its age and by how many of the best names it holds.
func (p *page) findingScore() func(*abi.LedgerText) float64 {
	top := make(map[string]bool, len(p.names))
	for i := range p.names[:min(len(p.names), p.limit/24)] {
		top[p.names[i].name.Text] = true
	}
	c := newClasses()
	return func(t *abi.LedgerText) float64 {
		n := 0
		for sc := (scanner{c: c, s: t.Text}); ; {
			k, ok := sc.next()
			if !ok {
				break
			}
			if top[k] {
				n++
			}
		}
		return float64((.4 + p.recency(t.Message)) * (1 + float64(.3*float64(n))))
	}
}
