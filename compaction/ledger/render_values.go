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
	for i := range p.s.Names {
		n := &p.s.Names[i]
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
	out := make([]string, 0, len(records))
	room := int(p.share.values * float64(p.limit))
	for _, o := range records {
		item := p.record(o, room)
		if item == "" {
			continue
		}
		room -= len(item) + 1
		out = append(out, item)
	}
	return out
}

// record is a line for a record; values that the agent used stand first.
func (p *page) record(o *owned, room int) string {
	out := "- " + line(o.owner, 120) + " (" + at(o.latest) + "): "
	n := 0
	for _, v := range o.list {
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
