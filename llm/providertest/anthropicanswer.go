package providertest

import (
	"encoding/json"
	"strings"
)

// anUsage is the account of an answer. Input tokens are those that no cache read or wrote.
func anUsage(a *ask, output int64) object {
	u := &a.bill
	return object{
		"input_tokens":                u.PromptTokens - u.CacheReadTokens - u.CacheCreationTokens,
		"cache_creation_input_tokens": u.CacheCreationTokens, "cache_read_input_tokens": u.CacheReadTokens,
		"output_tokens": output, "output_tokens_details": object{"thinking_tokens": min(output, u.ThinkingTokens)},
	}
}

func anMessageObject(a *ask, output int64) object {
	usage := anUsage(a, output)
	usage["service_tier"] = "standard"
	usage["cache_creation"] = object{"ephemeral_5m_input_tokens": a.bill.CacheCreationTokens - a.long, "ephemeral_1h_input_tokens": a.long}
	return object{
		"id": a.id, "type": "message", "role": "assistant", "model": a.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}
}

func (s *Server) anWhole(a *ask, r *reply) any {
	out := anMessageObject(a, a.bill.CompletionTokens)
	content := []any{}
	for i := range r.pieces {
		content = append(content, anContent(&r.pieces[i], true))
	}
	out["content"], out["stop_reason"] = content, string(r.stop)
	return out
}

// anContent is a block, whole or as its stream begins.
func anContent(p *piece, whole bool) object {
	text, signature := "", ""
	var input any = object{}
	if whole {
		text, signature = p.text, p.signature
		if raw := json.RawMessage(p.text); json.Valid(raw) {
			input = raw
		} else {
			input = p.text
		}
	}
	switch {
	case p.kind == thinkingPiece && p.text == "":
		return object{"type": "redacted_thinking", "data": p.signature}
	case p.kind == thinkingPiece:
		return object{"type": "thinking", "thinking": text, "signature": signature}
	case p.kind == callPiece:
		return object{"type": "tool_use", "id": p.id, "name": p.name, "input": input, "caller": object{"type": "direct"}}
	default:
		return object{"type": "text", "text": text}
	}
}

func (s *Server) anEvents(a *ask, r *reply) []event {
	named := func(name string, data object) event {
		data["type"] = name
		return event{name: name, data: data}
	}
	first := min(1, a.bill.CompletionTokens)
	out := []event{named("message_start", object{"message": anMessageObject(a, first)})}
	out[0].stated = first
	var thoughts []string
	for i := range r.pieces {
		p := &r.pieces[i]
		out = append(out, named("content_block_start", object{"index": i, "content_block": anContent(p, false)}))
		if i == 0 {
			out = append(out, named("ping", object{}))
		}
		add := func(kind, field, text string) {
			e := named("content_block_delta", object{"index": i, "delta": object{"type": kind, field: text}})
			e.chunk, e.tokens = text != "" && kind != "signature_delta", tokens(len(text))
			out = append(out, e)
		}
		chunks := p.chunks
		switch p.kind {
		case callPiece:
			add("input_json_delta", "partial_json", "")
			if p.text == "{}" {
				chunks = nil // the real API sends nothing more for a call without arguments
			}
			if len(thoughts) > 0 {
				s.pair(p.id, strings.Join(thoughts, "\n"))
			}
			for _, c := range chunks {
				add("input_json_delta", "partial_json", c)
			}
		case thinkingPiece:
			for _, c := range chunks {
				add("thinking_delta", "thinking", c)
			}
			if thoughts = append(thoughts, p.signature); p.text != "" {
				add("signature_delta", "signature", p.signature)
				out[len(out)-1].tokens = 0
			}
		default:
			for _, c := range chunks {
				add("text_delta", "text", c)
			}
		}
		out = append(out, named("content_block_stop", object{"index": i}))
	}
	stop := object{"stop_reason": string(r.stop), "stop_sequence": nil}
	return append(out, named("message_delta", object{"delta": stop, "usage": anUsage(a, a.bill.CompletionTokens)}), named("message_stop", object{}))
}
