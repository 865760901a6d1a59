package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// part is one answer of the provider, of which an answer to the client may have several.
type part struct {
	answer  *wire.Answer
	removed map[string]verdict // by call id
	// made are the calls of the model, where plugins replaced or refused its answer.
	made     []wire.Out
	replaced bool
}

// visible are the blocks that the client gets.
func (p *part) visible() (out []wire.Out) {
	for _, b := range p.answer.Blocks {
		if _, gone := p.removed[b.ID]; !gone || b.Type != wire.TypeCall {
			out = append(out, b)
		}
	}
	return out
}

// results are those of removed calls, in the order of the calls.
func (p *part) results() (out [][]byte) {
	for i := range p.answer.Blocks {
		b := &p.answer.Blocks[i]
		if v, gone := p.removed[b.ID]; gone && b.Type == wire.TypeCall {
			out = append(out, wire.ResultBlock(p.answer.Protocol, b, v.result, v.failed))
		}
	}
	return out
}

// owed are the items that the provider wants behind an answer that it keeps, and that the client does not have: calls that plugins made, and
// results of those that were removed.
func (p *part) owed() (out []json.RawMessage) {
	has := func(list []wire.Out, id string) bool {
		return slices.ContainsFunc(list, func(o wire.Out) bool { return o.ID == id })
	}
	calls := p.answer.Calls()
	for i := range calls {
		if p.replaced && !has(p.made, calls[i].ID) {
			out = append(out, calls[i].Raw)
		}
	}
	out = append(out, raws(p.results())...)
	for i := range p.made {
		if o := &p.made[i]; !has(calls, o.ID) {
			out = append(out, wire.ResultBlock(p.answer.Protocol, o, blocked("a plugin took it out of the answer").result, true))
		}
	}
	return out
}

// continued is a request with an answer and the results of its calls.
func (x *exchange) continued(body []byte, p *part) ([]byte, error) {
	r, err := wire.Parse(x.proto, body)
	if err != nil {
		return nil, err
	}
	items := p.answer.Items(func(*wire.Out) bool { return true })
	items = append(items, resultItems(x.proto, p.results())...)
	if _, conversation := continuedFrom(r); conversation != "" { // which has the request and its answer by now
		return wire.Apply(body, []wire.Splice{{At: r.List, New: append(append([]byte{'['}, join(p.owed())...), ']')}}), nil
	}
	if r.Text {
		items = append([][]byte{wire.UserItem(x.proto, nil, wire.String(body, r.List))}, items...)
		return wire.Apply(body, []wire.Splice{{At: r.List, New: append(append([]byte{'['}, bytes.Join(items, []byte(","))...), ']')}}), nil
	}
	return wire.Apply(body, []wire.Splice{wire.Append(body, r.List, items...)}), nil
}

// resultItems makes items of results.
func resultItems(p wire.Protocol, results [][]byte) [][]byte {
	if p != wire.Messages {
		return results
	}
	m := []byte(`{"role":"user","content":[`)
	for i, r := range results {
		if i > 0 {
			m = append(m, ',')
		}
		m = append(m, r...)
	}
	return [][]byte{append(m, "]}"...)}
}

// end is the end of a merged answer.
func (x *exchange) end(parts []*part, spent wire.Usage) *wire.Merged {
	last := parts[len(parts)-1]
	m := &wire.Merged{ID: parts[0].answer.ID, Usage: last.answer.Usage}
	m.Usage.Output += spent.Output
	calls := 0
	for _, p := range parts {
		m.Text += p.answer.Text()
		for _, b := range p.visible() {
			if b.Type == wire.TypeCall && !b.Server {
				calls++
			}
			if x.proto != wire.Chat || b.Type == wire.TypeCall {
				m.Output = append(m.Output, b.Raw)
			}
		}
	}
	none, some := "end_turn", "tool_use"
	if x.proto == wire.Chat {
		none, some = "stop", "tool_calls"
	}
	switch {
	case calls == 0 && last.answer.Stop == some:
		m.Stop = none
	case calls > 0 && last.answer.Stop == none:
		m.Stop = some
	}
	return m
}

// graft notes what the client does not have of an answer, before the client sees its end.
func (x *exchange) graft(ctx context.Context, parts []*part) {
	gone := false
	for _, p := range parts {
		gone = gone || len(p.removed) > 0
	}
	x.owe(ctx, parts)
	if x.ln == nil {
		return
	}
	x.ln.Lock()
	defer x.ln.Unlock()
	var seen []wire.Out
	for _, p := range parts {
		seen = append(seen, p.visible()...)
	}
	x.ln.Answer = wire.AnswerKeys(x.proto, seen)
	if !gone || len(x.ln.Answer) == 0 {
		return
	}
	g := lane.Graft{At: x.items, Keys: x.ln.Answer}
	for i, p := range parts {
		items := p.answer.Items(func(*wire.Out) bool { return true })
		results := p.results()
		switch {
		case len(results) == 0:
		case i < len(parts)-1 || x.proto != wire.Messages:
			items = append(items, resultItems(x.proto, results)...)
		default:
			g.Results = raws(results)
		}
		g.Items = append(g.Items, raws(items)...)
	}
	x.ln.Grafts = append(x.ln.Grafts, g)
	x.save(ctx)
}

func raws(list [][]byte) (out []json.RawMessage) {
	for _, r := range list {
		out = append(out, r)
	}
	return out
}
