package wire

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
)

type object = map[string]any

// SetRaw makes the JSON of a text block or a call, as the conversation holds it.
func (o *Out) SetRaw(p Protocol) {
	switch {
	case o.Item:
	case p == Messages && o.Type == TypeText:
		o.Raw = Marshal(object{"type": "text", "text": o.Text})
	case p == Messages:
		o.Raw = Marshal(object{"type": "tool_use", "id": o.ID, "name": o.Name, "input": input(o.Args)})
	case p == Responses && o.Type == TypeText:
		o.Raw = Marshal(o.message("completed", o.outputText(o.Text)))
	case p == Responses:
		o.Raw = Marshal(o.callItem("completed", string(o.Args)))
	case o.Type == TypeCall:
		o.Raw = ChatCall(o, o.Args)
	}
}

// input is that of a call of Anthropic.
func input(args []byte) any {
	if json.Valid(args) {
		return json.RawMessage(args)
	}
	return Value(args)
}

// NewText returns a text block of ours. Responses names it by a random id.
func NewText(text string) Out { return Out{Type: TypeText, ID: rand.Text(), Text: text} }

func (o *Out) itemID() string { return "mortise_" + strconv.Itoa(o.Index) + "_" + o.ID }

func (o *Out) outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}}
}

func (o *Out) message(status string, content ...object) object {
	if content == nil {
		content = []object{}
	}
	return object{"type": "message", "id": "msg_" + o.itemID(), "role": "assistant", "status": status, "content": content}
}

func (o *Out) callItem(status, args string) object {
	kind, field := "function_call", "arguments"
	if o.Custom {
		kind, field = "custom_tool_call", "input"
	}
	return object{"type": kind, "id": "fc_" + o.itemID(), "call_id": o.ID, "name": o.Name, "status": status, field: args}
}

// Events returns the events of a text block or a call of ours, with its index in its part of the answer. Of Chat the index is that among the
// calls; id is that of the answer.
func (o *Out) Events(p Protocol, id string) []Event {
	var list []object
	switch p {
	case Messages:
		start, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": o.Text}
		if o.Type == TypeCall {
			start = object{"type": "tool_use", "id": o.ID, "name": o.Name, "input": object{}}
			delta = object{"type": "input_json_delta", "partial_json": string(o.Args)}
		}
		list = []object{
			{"type": "content_block_start", "index": o.Index, "content_block": start},
			{"type": "content_block_delta", "index": o.Index, "delta": delta},
			{"type": "content_block_stop", "index": o.Index},
		}
	case Responses:
		list = o.responses()
	case Chat:
		delta := object{"content": o.Text}
		if o.Type == TypeCall {
			call := ChatCall(o, o.Args)
			call = Apply(call, []Splice{AddField(call, Whole(call), "index", digits(int64(o.Index)))})
			delta = object{"tool_calls": []json.RawMessage{call}}
		}
		data := object{"id": id, "object": "chat.completion.chunk", "choices": []object{{"index": 0, "delta": delta, "finish_reason": nil}}}
		return []Event{NewEvent("", Marshal(data))}
	}
	out := make([]Event, len(list))
	for i, e := range list {
		kind, _ := e["type"].(string)
		out[i] = NewEvent(kind, Marshal(e))
	}
	return out
}

func (o *Out) responses() (list []object) {
	switch {
	case o.Item:
		item := json.RawMessage(o.Raw)
		list = []object{{"type": "response.output_item.added", "item": item}, {"type": "response.output_item.done", "item": item}}
	case o.Type == TypeCall:
		kind, field := "response.function_call_arguments", "arguments"
		if o.Custom {
			kind, field = "response.custom_tool_call_input", "input"
		}
		item := "fc_" + o.itemID()
		list = []object{
			{"type": "response.output_item.added", "item": o.callItem("in_progress", "")},
			{"type": kind + ".delta", "item_id": item, "delta": string(o.Args)},
			{"type": kind + ".done", "item_id": item, field: string(o.Args)},
			{"type": "response.output_item.done", "item": o.callItem("completed", string(o.Args))},
		}
	default:
		item := "msg_" + o.itemID()
		part := o.outputText(o.Text)
		list = []object{
			{"type": "response.output_item.added", "item": o.message("in_progress")},
			{"type": "response.content_part.added", "item_id": item, "content_index": 0, "part": o.outputText("")},
			{"type": "response.output_text.delta", "item_id": item, "content_index": 0, "delta": o.Text},
			{"type": "response.output_text.done", "item_id": item, "content_index": 0, "text": o.Text},
			{"type": "response.content_part.done", "item_id": item, "content_index": 0, "part": part},
			{"type": "response.output_item.done", "item": o.message("completed", part)},
		}
	}
	for _, e := range list {
		e["output_index"], e["sequence_number"] = o.Index, 0
	}
	return list
}
