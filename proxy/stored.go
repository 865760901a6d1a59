package proxy

import (
	"bytes"
	"context"

	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// continuedFrom are the ids of what the provider keeps and a request continues: an answer, or a conversation.
func continuedFrom(r *wire.Request) (answer, conversation string) {
	if r == nil || r.Protocol != wire.Responses {
		return "", ""
	}
	at := r.Top["conversation"]
	if at.Exists() && r.Body[at.From] == '{' {
		at = wire.Field(r.Body, at, "id")
	}
	return wire.String(r.Body, r.Top["previous_response_id"]), wire.String(r.Body, at)
}

// stored finds what the provider has to get with a request that continues what it keeps.
func (x *exchange) stored(ctx context.Context) {
	answer, conversation := continuedFrom(x.req)
	for _, id := range []string{answer, conversation} {
		if id != "" {
			x.s.lanes.Stored(ctx, x.key(), id, func(st *lane.Stored) bool {
				x.owed = *st
				return false
			})
		}
	}
}

// owe notes what the provider has not got of an answer that it keeps, before the client sees the end of that.
func (x *exchange) owe(ctx context.Context, parts []*part) {
	if x.proto != wire.Responses {
		return
	}
	last := parts[len(parts)-1]
	items := last.owed()
	first := parts[0].answer.ID
	_, conversation := continuedFrom(x.req)
	if conversation != "" && (len(items) > 0 || len(x.owed.Items) > 0) {
		x.s.lanes.Stored(ctx, x.key(), conversation, func(st *lane.Stored) bool {
			st.Items = items
			return true
		})
	}
	kept := x.req == nil || string(x.req.Top["store"].Of(x.req.Body)) != "false"
	if first == "" || !kept || len(items) == 0 && len(parts) == 1 {
		return
	}
	x.s.lanes.Stored(ctx, x.key(), first, func(st *lane.Stored) bool {
		if x.fetched && st.ID != "" { // it was continued when it was made
			return false
		}
		if st.Items = items; len(parts) > 1 {
			st.ID = last.answer.ID
		}
		return true
	})
}

// owed adds what the client does not have in front of its input.
func (e *editor) owed(st *lane.Stored) {
	if at := e.r.Top["previous_response_id"]; st.ID != "" && at.Exists() {
		e.add(at, wire.Quote(st.ID))
	}
	if len(st.Items) == 0 || !e.r.List.Exists() {
		return
	}
	list, at := join(st.Items), e.r.List.From
	if e.r.Text { // in front of a replacement of the text itself, which begins at the same place
		open := bytes.Join([][]byte{[]byte("["), list, []byte(`,{"type":"message","role":"user","content":`)}, nil)
		e.out = append([]wire.Splice{{At: wire.Span{From: at, To: at}, New: open}}, e.out...)
		e.add(wire.Span{From: e.r.List.To, To: e.r.List.To}, []byte("}]"))
		return
	}
	if len(e.r.Items) > 0 {
		list = append(list, ',')
	}
	e.add(wire.Span{From: at + 1, To: at + 1}, list)
}

// unpaid notes a response that is made in the background, whose usage comes with the answer that is fetched, and reports whether it is one.
func (x *exchange) unpaid(ctx context.Context, a *wire.Answer) bool {
	if !x.background || a.Counted || a.Failed || a.ID == "" {
		return false
	}
	x.s.lanes.Stored(ctx, x.key(), a.ID, func(st *lane.Stored) bool {
		st.Unpaid = true
		return true
	})
	return true
}

// paid counts the usage of a fetched answer, once.
func (x *exchange) paid(ctx context.Context, a *wire.Answer) {
	if !a.Counted || a.ID == "" {
		return
	}
	unpaid := false
	x.s.lanes.Stored(ctx, x.key(), a.ID, func(st *lane.Stored) bool {
		unpaid, st.Unpaid = st.Unpaid, false
		return unpaid
	})
	if unpaid {
		x.model = a.Model
		x.s.sideBill(x, a)
	}
}
