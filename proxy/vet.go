package proxy

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// canReplace reports whether a plugin may replace the model's answer, which is held until it has seen all of it.
func (x *exchange) canReplace() bool {
	rt := x.s.cfg.Runtime
	return rt != nil && x.why == "" && rt.Transforms(abi.AfterInference)
}

// show fires after_inference, and returns what plugins make of the answer. The lane, if any, is locked.
func (x *exchange) show(ctx context.Context, a *wire.Answer) (phases.Outcome, error) {
	m := a.Message()
	m.ID = "answer"
	f := x.frame(abi.AfterInference)
	f.Response = &abi.Response{Model: a.Model, Message: m, StopReason: a.StopReason(), Usage: a.Usage.ABI()}
	return x.s.cfg.Runtime.Fire(ctx, x.state(), f)
}

// vet shows an answer to the plugins at after_inference, and returns what the client gets of it instead: its blocks, or nil for the answer as
// it is. The error is that of a plugin whose failure refuses the answer.
func (x *exchange) vet(ctx context.Context, p *part, a *wire.Answer) (blocks []wire.Out, err error) {
	defer func() {
		if p.replaced = blocks != nil || err != nil; p.replaced {
			p.made = a.Calls()
		}
	}()
	if x.ln != nil {
		x.ln.Lock()
		defer x.ln.Unlock()
	}
	out, err := x.show(ctx, a)
	if err != nil {
		if hook, ok := errors.AsType[*phases.HookError](err); ok {
			x.s.stats.refused.Add(1)
			return nil, hook
		}
		x.s.stats.late.Add(1)
		return nil, nil
	}
	var m abi.Message
	switch {
	case out.Stop != nil:
		x.s.stats.replaced.Add(1)
		m = abi.Message{Content: []abi.ContentBlock{abi.Text("[mortise: plugin " + out.Stop.By + " stops the run: " + out.Stop.Detail + "]")}}
	case out.Response != nil:
		x.s.stats.replaced.Add(1)
		m = out.Response.Message
	default:
		return nil, nil
	}
	if a.Fixed() {
		return nil, malformedError(fixedCall)
	}
	return blocksOf(x.proto, a, &m), nil
}

// maxID is how long OpenAI takes the id of a call to be.
const maxID = 40

// blocksOf makes blocks of an answer that a plugin wrote. The thinking at the beginning of the model's stays.
func blocksOf(p wire.Protocol, a *wire.Answer, m *abi.Message) (out []wire.Out) {
	for _, b := range a.Blocks {
		if b.Type != wire.TypeThinking {
			break
		}
		out = append(out, b)
	}
	add := func(o wire.Out) {
		if o.Index = len(out); p == wire.Chat {
			o.Index = len(slices.DeleteFunc(slices.Clone(out), func(o wire.Out) bool { return o.Type != wire.TypeCall }))
		}
		o.SetRaw(p)
		out = append(out, o)
	}
	if text := m.Text(); text != "" {
		add(wire.NewText(text))
	}
	for _, c := range m.ToolCalls {
		if len(c.ID) > maxID {
			c.ID = strings.ReplaceAll(c.ID, "-", "") // a new id has a UUID
		}
		o := wire.Out{Type: wire.TypeCall, ID: c.ID, Name: c.Name, Args: wire.Marshal(c.Arguments)}
		if i := slices.IndexFunc(a.Blocks, func(b wire.Out) bool { return b.ID == c.ID && b.Type == wire.TypeCall }); i >= 0 {
			text, _ := c.Arguments.(string)
			switch b := &a.Blocks[i]; {
			case b.Custom:
				o.Custom, o.Args = true, []byte(text)
			case !b.Item:
				o.Args = b.Rewritten(c.Arguments)
			case bytes.Equal(wire.Marshal(b.Call()), wire.Marshal(&c)):
				o = *b
			default:
				continue // it cannot be written anew
			}
		}
		add(o)
	}
	if len(m.ToolCalls) == 0 && m.Text() == "" {
		add(wire.NewText("(removed)")) // an answer must have content
	}
	return out
}

// vetted holds the events of one part of an answer until plugins have seen all of it.
type vetted struct {
	stream *wire.Stream
	events []wire.Event
	kinds  []wire.Kind
	blocks []int // index of the block, -1 for none
	size   int
	begun  bool
	open   bool // too much came, or it failed: events pass as they come
}

// add takes an event, and returns those that pass now, and whether the part has ended.
func (v *vetted) add(e wire.Event) (now []wire.Event, ended bool) {
	step := v.stream.Event(e)
	switch {
	case v.open:
		return []wire.Event{e}, false
	case step.Kind == wire.Failure: // what came of the answer no plugin has seen
		v.open, v.events = true, nil
		return []wire.Event{e}, false
	case !v.begun && (step.Kind == wire.Start || step.Kind == wire.Other):
		v.begun = step.Kind == wire.Start
		return []wire.Event{e}, false
	}
	v.begun = true
	block := -1
	if step.Block != nil {
		block = step.Block.Index
	}
	v.events, v.kinds, v.blocks = append(v.events, e), append(v.kinds, step.Kind), append(v.blocks, block)
	if v.size += len(e.Raw); v.size > maxHeld {
		v.open = true
		now, v.events = v.events, nil
	}
	return now, step.Kind == wire.End
}

// release returns the events that were held, with other blocks if there are some.
func (v *vetted) release(p wire.Protocol, blocks []wire.Out) (out []wire.Event) {
	events := v.events
	v.events, v.open = nil, true
	if blocks == nil {
		return events
	}
	thinking := 0
	for i := range blocks {
		if blocks[i].Type == wire.TypeThinking {
			thinking++
		}
	}
	tail := false
	for i, e := range events {
		tail = tail || v.kinds[i] == wire.Stop || v.kinds[i] == wire.End
		if tail || v.blocks[i] >= 0 && v.blocks[i] < thinking && p != wire.Chat {
			if tail && blocks != nil {
				out = append(out, made(p, v.stream.ID, blocks[thinking:])...)
				blocks = nil
			}
			out = append(out, e)
		}
	}
	return out
}

func made(p wire.Protocol, id string, blocks []wire.Out) (out []wire.Event) {
	for i := range blocks {
		out = append(out, blocks[i].Events(p, id)...)
	}
	return out
}
