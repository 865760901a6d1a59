package proxy

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy/lane"
)

// count makes a request besides a conversation like those of the lane that it continues, if there is one: a count of tokens, a title, the client's
// own compaction. What is new in it plugins see only where one fails closed, and in a copy of the lane: it changes nothing.
func (x *exchange) count(ctx context.Context) {
	if x.why != "" {
		return
	}
	x.stored(ctx)
	st, known := lane.State{}, 0
	if x.req.Fixed == "" && (x.id.kind != lane.Side || len(x.req.Items) > 1) {
		x.id.kind = lane.Main
		ln, change := x.s.lanes.Find(ctx, x.key(), x.req, true)
		if ln != nil && (change == lane.Grow || change == lane.Retry || change == lane.Again) {
			st, known = *ln.State, len(ln.Hashes)
			st.Edits, st.Run, st.Money = slices.Clone(st.Edits), "", nil
		}
		if ln != nil {
			ln.Unlock()
		}
	}
	if x.s.cfg.Runtime != nil {
		x.ln, x.fresh = &lane.Lane{State: &st}, upTo(known, x.items)
		defer func() { x.ln = nil }()
		x.messages()
		if x.s.closedAt(abi.BeforeInference, abi.AfterToolExecute) != "" {
			x.actOnTexts(ctx, x.attach())
		}
		x.said = x.flat()
	}
	x.apply(&st, &x.s.stats.counted)
}

// actOnTexts has plugins see a request whose history is not in its body, or that is no part of a conversation: of what they do only the texts
// count that they replace.
func (x *exchange) actOnTexts(ctx context.Context, a *attached) {
	rt := x.s.cfg.Runtime
	_, err := x.results(ctx, a, x.edits)
	if err == nil && len(rt.Order(abi.BeforeInference)) > 0 {
		var out phases.Outcome
		if out, err = rt.Fire(ctx, a.state, phases.Frame{Phase: abi.BeforeInference, Run: x.identity(), Messages: x.flat(), Request: x.inference}); err == nil {
			x.edits(&out)
		}
	}
	if err != nil {
		x.refused(ctx, err)
	}
}

// opaque acts on a request whose history is not in its body.
func (x *exchange) opaque(ctx context.Context, a *attached) {
	x.ln.Messages = nil
	x.ln.Edits, x.ln.Swap, x.ln.Grafts = nil, nil, nil
	x.fresh = upTo(0, x.items)
	x.stored(ctx)
	if x.s.cfg.Runtime != nil {
		x.messages()
		x.actOnTexts(ctx, a)
	}
	x.apply(&lane.State{Edits: x.ln.Edits}, &x.s.stats.acted)
}

func upTo(from, to int) (out []int) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}
