package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// owned are the values of one record.
type owned struct {
	owner  string
	list   []*abi.LedgerValue
	score  float64
	latest int
}

// values lists the records, first those whose id the agent or the user named, then the newest.
func (p *page) values() []string {
	if len(p.s.Work.Values) == 0 {
		return nil
	}
	used := map[string]float64{}
	for i := range p.names {
		n := p.names[i].name
		if n.Call || n.User || n.Agent {
			used[n.Text] = 1 + p.recency(n.Own)
		}
	}
	var records []*owned
	by := map[string]*owned{}
	for i := range p.s.Work.Values {
		v := &p.s.Work.Values[i]
		o := by[v.Owner]
		if o == nil {
			_, id, _ := strings.Cut(v.Owner, " ")
			o = &owned{owner: v.Owner, score: used[id]}
			by[v.Owner], records = o, append(records, o)
		}
		o.list, o.latest = append(o.list, v), max(o.latest, v.Message)
	}
	slices.SortStableFunc(records, func(a, b *owned) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.latest, a.latest))
	})
	own := p.ownWords()
	out := make([]string, 0, len(records))
	room := int(p.share.values * float64(p.limit))
	for _, o := range records {
		item := p.record(o, own, min(room, max(160, room/3)))
		if item == "" {
			continue
		}
		room -= len(item) + 1
		out = append(out, item)
	}
	return out
}

// ownWords are texts of the user and calls of the agent.
func (p *page) ownWords() string {
	var b strings.Builder
	for i := range p.s.Steps {
		b.WriteString(p.s.Steps[i].Text + "\n")
	}
	for i := range p.s.Talk.Requests {
		b.WriteString(p.s.Talk.Requests[i].Text + "\n")
	}
	return b.String()
}

// record is a line for a record. Values that changed stand first, then those that the user or the agent
// used.
func (p *page) record(o *owned, own string, room int) string {
	_, id, _ := strings.Cut(o.owner, " ")
	rank := func(v *abi.LedgerValue) int {
		switch {
		case v.Before != "":
			return 0
		case len(v.Value) > 2 && strings.Contains(own, v.Value):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(o.list, func(a, b *abi.LedgerValue) int { return cmp.Compare(rank(a), rank(b)) })
	out := "- " + line(o.owner, 120) + " (" + at(o.latest) + "): "
	n := 0
	for _, v := range o.list {
		if v.Value == id {
			continue
		}
		one := line(v.Key, 60) + " " + line(v.Value, maxValue)
		if v.Before != "" {
			one += " (was " + line(v.Before, 60) + ")"
		}
		if len(out)+len(one)+2 > room {
			continue
		}
		if n > 0 {
			out += "; "
		}
		out += one
		n++
	}
	if n == 0 {
		return ""
	}
	return out
}
