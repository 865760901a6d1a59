package providertest

import (
	"maps"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// rsObject is a response in a state.
func rsObject(a *ask, status string, output []any) object {
	return object{
		"id": a.id, "object": "response", "created_at": 1754425777, "status": status, "model": a.model, "output": output,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{}, "parallel_tool_calls": true,
		"previous_response_id": nullable(a.previous), "background": a.background, "store": a.keeps, "temperature": 1.0, "top_p": 1.0, "tool_choice": "auto", "tools": []any{}, "truncation": "disabled", "usage": nil,
	}
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// rsFinal is the response at its end.
func (s *Server) rsFinal(a *ask, r *reply, output []any) object {
	status := "completed"
	if r.stop == abi.StopMaxTokens {
		status = "incomplete"
	}
	out := rsObject(a, status, output)
	if status == "incomplete" {
		out["incomplete_details"] = object{"reason": "max_output_tokens"}
	}
	u := &a.bill
	out["usage"] = object{
		"input_tokens": u.PromptTokens, "input_tokens_details": object{"cached_tokens": u.CacheReadTokens},
		"output_tokens": u.CompletionTokens, "output_tokens_details": object{"reasoning_tokens": u.ThinkingTokens},
		"total_tokens": u.TotalTokens,
	}
	return out
}

func (s *Server) rsWhole(a *ask, r *reply) any {
	_, output := s.rsPlay(a, r)
	return s.rsFinal(a, r, output)
}

func (s *Server) rsEvents(a *ask, r *reply) []event {
	events, _ := s.rsPlay(a, r)
	return events
}

// rsPlay makes the items of an answer, and the events that stream them.
func (s *Server) rsPlay(a *ask, r *reply) (events []event, output []any) {
	if a.played != nil {
		return a.played, a.output
	}
	b := &rsBuilder{Server: s, a: a}
	first := "in_progress"
	if a.background {
		first = "queued"
	}
	b.emit("response.created", object{"response": rsObject(a, first, []any{})})
	if a.background {
		b.emit("response.queued", object{"response": rsObject(a, first, []any{})})
	}
	b.emit("response.in_progress", object{"response": rsObject(a, "in_progress", []any{})})
	for i := range r.pieces {
		b.item(&r.pieces[i], i == len(r.pieces)-1 && r.stop == abi.StopMaxTokens)
	}
	final := "response.completed"
	if r.stop == abi.StopMaxTokens {
		final = "response.incomplete"
	}
	b.emit(final, object{"response": s.rsFinal(a, r, b.output)})
	a.played, a.output = b.events, b.output
	return b.events, b.output
}

// rsBuilder makes the events of an answer.
type rsBuilder struct {
	*Server
	a      *ask
	events []event
	output []any
	reason string // id of the reasoning item before
}

func (b *rsBuilder) emit(name string, data object) *event {
	data["type"], data["sequence_number"] = name, len(b.events)
	b.events = append(b.events, event{name: name, data: data})
	return &b.events[len(b.events)-1]
}

// at is an event of the item that is under way.
func (b *rsBuilder) at(name, item string, data object) *event {
	data["item_id"], data["output_index"] = item, len(b.output)
	return b.emit(name, data)
}

func (b *rsBuilder) chunks(name, item string, p *piece, more object) {
	for _, c := range p.chunks {
		data := object{"delta": c}
		maps.Copy(data, more)
		e := b.at(name, item, data)
		e.chunk, e.tokens = true, tokens(len(c))
	}
}

func (b *rsBuilder) item(p *piece, cut bool) {
	status := "completed"
	if cut {
		status = "incomplete"
	}
	var id string
	var begun, done object
	switch p.kind {
	case thinkingPiece:
		id = newID("rs_")
		begun, done = b.reasoning(id, p)
	case callPiece:
		id = newID("fc_")
		begun = object{"type": "function_call", "id": id, "call_id": p.id, "name": p.name, "arguments": "", "status": "in_progress"}
		done = object{"type": "function_call", "id": id, "call_id": p.id, "name": p.name, "arguments": p.text, "status": status}
		if space := b.a.spaces[p.name]; space != "" {
			for _, o := range []object{begun, done} {
				o["namespace"], o["name"] = space, strings.TrimPrefix(p.name, space+namespaceSeparator)
			}
		}
	default:
		id = newID("msg_")
		begun = object{"type": "message", "id": id, "role": "assistant", "content": []any{}, "status": "in_progress"}
		done = object{"type": "message", "id": id, "role": "assistant", "content": []any{rsPart(p.kind, p.text)}, "status": status}
	}
	if p.kind == thinkingPiece {
		b.reason = id
	} else if b.reason != "" {
		b.pair(id, b.reason)
	}
	b.emit("response.output_item.added", object{"output_index": len(b.output), "item": begun})
	b.content(id, p)
	b.emit("response.output_item.done", object{"output_index": len(b.output), "item": done})
	b.output = append(b.output, done)
}

// content is what comes between the begin of an item and its end.
func (b *rsBuilder) content(id string, p *piece) {
	switch p.kind {
	case thinkingPiece:
		if !b.a.summary || p.text == "" {
			b.hidden(p)
			return
		}
		index := object{"summary_index": 0}
		b.at("response.reasoning_summary_part.added", id, object{"summary_index": 0, "part": object{"type": "summary_text", "text": ""}})
		b.chunks("response.reasoning_summary_text.delta", id, p, index)
		b.at("response.reasoning_summary_text.done", id, object{"summary_index": 0, "text": p.text})
		b.at("response.reasoning_summary_part.done", id, object{"summary_index": 0, "part": object{"type": "summary_text", "text": p.text}})
	case callPiece:
		b.chunks("response.function_call_arguments.delta", id, p, nil)
		b.at("response.function_call_arguments.done", id, object{"arguments": p.text})
	case refusalPiece:
		b.part(id, p, "response.refusal", "refusal", object{"content_index": 0})
	default:
		b.part(id, p, "response.output_text", "text", object{"content_index": 0, "logprobs": []any{}})
	}
}

func (b *rsBuilder) part(id string, p *piece, name, field string, more object) {
	b.at("response.content_part.added", id, object{"content_index": 0, "part": rsPart(p.kind, "")})
	b.chunks(name+".delta", id, p, more)
	done := object{field: p.text}
	maps.Copy(done, more)
	b.at(name+".done", id, done)
	b.at("response.content_part.done", id, object{"content_index": 0, "part": rsPart(p.kind, p.text)})
}

// hidden bills reasoning that is not shown.
func (b *rsBuilder) hidden(p *piece) {
	for _, c := range p.chunks {
		b.events[len(b.events)-1].tokens += tokens(len(c))
	}
}

func (b *rsBuilder) reasoning(id string, p *piece) (begun, done object) {
	item := func(summary []any) object {
		out := object{"type": "reasoning", "id": id, "summary": summary}
		if b.a.encrypted {
			out["encrypted_content"] = b.sign(id + "\n" + p.text)
		}
		return out
	}
	summary := []any{}
	if b.a.summary && p.text != "" {
		summary = append(summary, object{"type": "summary_text", "text": p.text})
	}
	return item([]any{}), item(summary)
}

func rsPart(kind pieceKind, text string) object {
	if kind == refusalPiece {
		return object{"type": "refusal", "refusal": text}
	}
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}
