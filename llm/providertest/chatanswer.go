package providertest

import "github.com/mortise-dev/mortise/abi"

func ccUsage(a *ask) object {
	u := &a.bill
	return object{
		"prompt_tokens": u.PromptTokens, "completion_tokens": u.CompletionTokens, "total_tokens": u.TotalTokens,
		"prompt_tokens_details": object{"cached_tokens": u.CacheReadTokens, "audio_tokens": 0},
		"completion_tokens_details": object{
			"reasoning_tokens": u.ThinkingTokens, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
		},
	}
}

func ccStop(stop abi.StopReason) string {
	switch stop {
	case abi.StopMaxTokens:
		return "length"
	case abi.StopToolUse:
		return "tool_calls"
	case "content_filter":
		return "content_filter"
	default:
		return "stop"
	}
}

func ccCall(p *piece, arguments string) object {
	return object{"id": p.id, "type": "function", "function": object{"name": p.name, "arguments": arguments}}
}

func (s *Server) ccWhole(a *ask, r *reply) any {
	m := object{"role": "assistant", "content": nil, "refusal": nil, "annotations": []any{}}
	var calls []any
	text := map[string]string{}
	for i := range r.pieces {
		p := &r.pieces[i]
		switch field := ccField(p.kind); {
		case p.kind == callPiece:
			calls = append(calls, ccCall(p, p.text))
			m["tool_calls"] = calls
		default:
			text[field] += p.text
			m[field] = text[field]
		}
	}
	return object{
		"id": a.id, "object": "chat.completion", "created": 1754425777, "model": a.model, "usage": ccUsage(a),
		"choices":      []any{object{"index": 0, "message": m, "logprobs": nil, "finish_reason": ccStop(r.stop)}},
		"service_tier": "default", "system_fingerprint": nil,
	}
}

// ccField is where a message has the text of a piece.
func ccField(kind pieceKind) string {
	return map[pieceKind]string{textPiece: "content", refusalPiece: "refusal", thinkingPiece: "reasoning_content"}[kind]
}

func (s *Server) ccEvents(a *ask, r *reply) []event {
	var out []event
	emit := func(delta object, stop any) *event {
		data := object{
			"id": a.id, "object": "chat.completion.chunk", "created": 1754425777, "model": a.model, "service_tier": "default", "system_fingerprint": nil,
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": stop}}, "obfuscation": "mGx",
		}
		if a.usage {
			data["usage"] = nil
		}
		out = append(out, event{data: data})
		return &out[len(out)-1]
	}
	emit(object{"role": "assistant", "content": "", "refusal": nil}, nil)
	calls := 0
	for i := range r.pieces {
		p := &r.pieces[i]
		index := calls
		if p.kind == callPiece {
			call := ccCall(p, "")
			call["index"] = index
			emit(object{"tool_calls": []any{call}}, nil)
			calls++
		}
		for _, c := range p.chunks {
			delta := object{ccField(p.kind): c}
			if p.kind == callPiece {
				delta = object{"tool_calls": []any{object{"index": index, "function": object{"arguments": c}}}}
			}
			e := emit(delta, nil)
			e.chunk, e.tokens = true, tokens(len(c))
		}
	}
	last := emit(object{}, ccStop(r.stop))
	if a.usage {
		usage := object{}
		for k, v := range last.data.(object) { //nolint:errcheck,forcetypeassert // emit makes it
			usage[k] = v
		}
		usage["choices"], usage["usage"] = []any{}, ccUsage(a)
		out = append(out, event{data: usage})
	}
	return append(out, event{data: "[DONE]"})
}
