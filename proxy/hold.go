package proxy

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// holding are events from the first call on that plugins decide about until the last one has come whole: calls may overlap.
type holding struct {
	events []wire.Event
	of     []int // index of the call, -1 for events of none
	calls  map[int]*wire.Out
	size   int
}

func (h *holding) add(e wire.Event, index int) error {
	h.events, h.of = append(h.events, e), append(h.of, index)
	if h.size += len(e.Raw); h.size > maxHeld {
		return malformedError("a call is too large to be held")
	}
	return nil
}

// whole reports whether all calls have come.
func (h *holding) whole() bool {
	for _, o := range h.calls {
		if o == nil {
			return false
		}
	}
	return true
}

// block takes an event of a block, and decides about calls once they are whole.
func (l *relay) block(ctx context.Context, e wire.Event, step wire.Step) error {
	if l.x.proto == wire.Chat {
		if len(l.held.events) == 0 && !l.stream.Calling(l.holds) {
			return l.out.events(l.write.Forward(e))
		}
		return l.held.add(e, -1)
	}
	o, index := step.Block, -1
	if o != nil && o.Type == wire.TypeCall && !o.Server {
		_, known := l.held.calls[o.Index]
		switch {
		case known && step.Kind == wire.Open:
			return malformedError("a call begins twice")
		case known:
			index = o.Index
		case (step.Kind == wire.Open || step.Kind == wire.Close) && l.holds(o): // some servers do not open a call
			if l.held.calls == nil {
				l.held.calls = map[int]*wire.Out{}
			}
			l.held.calls[o.Index], index = nil, o.Index
		}
	}
	if len(l.held.calls) == 0 {
		return l.out.events(l.write.Forward(e))
	}
	if err := l.held.add(e, index); err != nil {
		return err
	}
	if index >= 0 && step.Kind == wire.Close {
		l.held.calls[index] = o
	}
	if !l.held.whole() {
		return nil
	}
	return l.decide(ctx)
}

// holds reports whether a call is held: plugins decide about it, or it is a hidden one. A name that is not known yet is
// taken for either. Calls of Chat are all held where some are hidden: they end together, and those that stay are numbered anew.
func (l *relay) holds(o *wire.Out) bool {
	return l.x.gates || o.Name == "" || l.x.hidden[o.Name] || l.x.proto == wire.Chat && len(l.x.hidden) > 0
}

// early reports whether an event before the blocks of an answer has some, which clients take with it.
func (l *relay) early(e wire.Event) bool {
	list := wire.Output(e.Data)
	if at := wire.Field(e.Data, wire.Whole(e.Data), "message"); at.Exists() && l.x.proto == wire.Messages {
		if a, err := wire.ParseAnswer(l.x.proto, at.Of(e.Data)); err == nil {
			list = append(list, a.Blocks...)
		}
	}
	return slices.ContainsFunc(list, func(o wire.Out) bool { return l.vetted != nil || o.Type == wire.TypeCall && !o.Server && l.holds(&o) })
}

// decide decides about the calls that are held, of Anthropic or Responses, and lets go of all events: as they came where no call is changed,
// and else one call after the other.
func (l *relay) decide(ctx context.Context) error {
	h := l.held
	l.held = holding{}
	verdicts := map[int]verdict{}
	changed := false
	for _, index := range h.of {
		if _, known := verdicts[index]; !known && index >= 0 {
			v := l.x.judge(ctx, h.calls[index])
			verdicts[index] = v
			changed = changed || v.removed || v.args != nil
		}
	}
	for i := range h.events {
		index, list := h.of[i], h.events[i:i+1]
		v, open := verdicts[index]
		switch {
		case !changed || index < 0:
		case !open: // with its first event
			continue
		default:
			delete(verdicts, index)
			list = h.callEvents(index)
		}
		if err := l.call(h.calls[index], list, v); err != nil {
			return err
		}
	}
	return nil
}

// callEvents are those of one call.
func (h *holding) callEvents(index int) (out []wire.Event) {
	for i, e := range h.events {
		if h.of[i] == index {
			out = append(out, e)
		}
	}
	return out
}

// call writes the events of a call as it was decided, or events of none.
func (l *relay) call(o *wire.Out, events []wire.Event, v verdict) error {
	switch {
	case v.removed:
		l.x.s.stats.removed.Add(1)
		l.parts[len(l.parts)-1].removed[o.ID] = v
		l.write.Removed++
		l.write.Dirty = true
		return nil
	case v.args != nil:
		events = l.write.Call(o, v.args, events)
		l.rewritten(o)
		return l.out.events(events...)
	}
	for i := range events {
		events[i] = l.write.Forward(events[i])
	}
	return l.out.events(events...)
}

// rewritten notes the new arguments in the answer.
func (l *relay) rewritten(o *wire.Out) {
	for i := range l.stream.Blocks {
		if l.stream.Blocks[i].ID == o.ID {
			l.stream.Blocks[i].Raw = o.Raw
		}
	}
}

// chatEnd decides about the calls of Chat, which all end with the finish reason, or where a server has none with the stream.
func (l *relay) chatEnd(ctx context.Context, e wire.Event) error {
	n := 0
	for i := range l.stream.Blocks {
		if o := &l.stream.Blocks[i]; o.Type == wire.TypeCall && l.holds(o) {
			n++
		}
	}
	switch {
	case n == l.decided:
		return nil
	case l.decided > 0:
		return malformedError("a call came behind its end")
	}
	l.decided = n
	p := l.parts[len(l.parts)-1]
	changed := false
	for i := range l.stream.Blocks {
		o := &l.stream.Blocks[i]
		if o.Type != wire.TypeCall {
			continue
		}
		switch v := l.x.judge(ctx, o); {
		case v.removed:
			l.x.s.stats.removed.Add(1)
			p.removed[o.ID], changed = v, true
		case v.args != nil:
			l.write.Call(o, v.args, nil)
			changed = true
		}
	}
	held := l.held.events
	l.held = holding{}
	if changed && p.answer.Fixed() {
		return malformedError(fixedCall)
	}
	if !changed {
		for i := range held {
			held[i] = l.write.Forward(held[i])
		}
		return l.out.events(held...)
	}
	l.write.Dirty = true
	return l.chatCalls(p, append(held, e))
}

// fixedCall is why a function_call of Chat, which has no id, must stay as it came.
const fixedCall = "a plugin changes an answer with a function_call, which has no id"

// chatCalls writes what was held without its calls, and then those that stay, in a chunk like the first that came. The last event is that of
// the end, which is not written here.
func (l *relay) chatCalls(p *part, held []wire.Event) error {
	for _, e := range held[:len(held)-1] {
		if b := wire.WithoutCalls(e.Data, len(l.parts) == 1); b != nil {
			if err := l.out.events(l.write.Forward(e.WithData(b))); err != nil {
				return err
			}
		}
	}
	n := 0
	for _, o := range p.visible() {
		if o.Type != wire.TypeCall {
			continue
		}
		call := wire.Apply(o.Raw, []wire.Splice{wire.AddField(o.Raw, wire.Whole(o.Raw), "index", wire.Marshal(n))})
		n++
		if err := l.out.events(l.write.Forward(held[0].WithData(wire.OneCall(held[0].Data, call)))); err != nil {
			return err
		}
	}
	return nil
}
