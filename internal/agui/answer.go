package agui

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// messageID is that of the message that the step writes. An answer that begins anew is another message: what was sent of the
// one before stays with the client.
func (t *Translator) messageID() string {
	id := cmp.Or(t.message, t.Run+" "+t.step)
	if t.resets > 0 {
		id = fmt.Sprintf("%s-%d", id, t.resets+1)
	}
	return id
}

func (t *Translator) reasoningID() string { return t.messageID() + reasoningSuffix }

// reasoningSuffix makes the id of a reasoning message of that of the message to which it belongs.
const reasoningSuffix = "-reasoning"

func textStart(id string) Event {
	return Event{"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}
}

func reasoningStart(id string) []Event {
	return []Event{
		{"type": "REASONING_START", "messageId": id},
		{"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"},
	}
}

// answer translates what the model streams.
func (t *Translator) answer(name string, in *input, f Fields) (out []Event) {
	switch name {
	case "text_delta":
		if t.text == "" {
			out = t.closeMessages()
			t.text = t.messageID()
			out = append(out, textStart(t.text))
		}
		return append(out, Event{"type": "TEXT_MESSAGE_CONTENT", "messageId": t.text, "delta": in.text()})
	case "reasoning_delta":
		if t.reasoning == "" {
			out = t.closeMessages()
			t.reasoning = t.reasoningID()
			out = append(out, reasoningStart(t.reasoning)...)
		}
		return append(out, Event{"type": "REASONING_MESSAGE_CONTENT", "messageId": t.reasoning, "delta": in.text()})
	case "reasoning_encrypted_value":
		return []Event{{"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": t.reasoningID(), "encryptedValue": in.EncryptedValue}}
	default: // stream_reset
		void := map[string]any{"reason": in.Reason, "message_id": t.messageID(), "event": f}
		out = t.closeAnswer()
		t.resets, t.calls = t.resets+1, nil
		return append(out, Event{"type": "CUSTOM", "name": prefix + name, "value": void})
	}
}

// closeMessages ends the messages that are open.
func (t *Translator) closeMessages() (out []Event) {
	if t.reasoning != "" {
		out = append(out, Event{"type": "REASONING_MESSAGE_END", "messageId": t.reasoning}, Event{"type": "REASONING_END", "messageId": t.reasoning})
	}
	if t.text != "" {
		out = append(out, Event{"type": "TEXT_MESSAGE_END", "messageId": t.text})
	}
	t.text, t.reasoning = "", ""
	return out
}

// toolCall translates what becomes of a call.
func (t *Translator) toolCall(name string, in *input, f Fields) []Event {
	switch name {
	case "tool_call_started":
		return t.opened(in.Call, in.Call.Arguments != nil)
	case "tool_call_delta":
		out := t.opened(in.Call, false)
		if c := t.find(in.Call.ID); c.open {
			c.argued = true
			out = append(out, Event{"type": "TOOL_CALL_ARGS", "toolCallId": c.id, "delta": in.text()})
		}
		return out
	case "tool_call_ready":
		return t.opened(in.Call, true)
	case "tool_result":
		return append(t.opened(in.Call, true), result(in, f))
	case "tool_call_resumed":
		if in.Result.Status != abi.ToolPending { // the call was shown before the run waited
			return []Event{result(in, f)}
		}
		return []Event{custom(name, f)}
	case "tool_waiting":
		return append(t.opened(in.Call, true), custom(name, f))
	default: // tool_call_cancelled
		out := []Event{}
		if c := t.find(in.Call.ID); c != nil && c.open {
			out = t.ended(c)
		}
		return append(out, custom(name, f))
	}
}

// opened starts a call that was not, and ends it if it is whole.
func (t *Translator) opened(v abi.ToolCall, whole bool) (out []Event) {
	c := t.find(v.ID)
	if c == nil {
		out = t.closeMessages()
		t.calls = append(t.calls, call{id: v.ID, name: v.Name, open: true})
		c = &t.calls[len(t.calls)-1]
		out = append(out, t.callStart(*c))
	}
	if !whole || !c.open {
		return out
	}
	if !c.argued && v.Arguments != nil {
		out = append(out, Event{"type": "TOOL_CALL_ARGS", "toolCallId": c.id, "delta": jsonText(v.Arguments)})
	}
	return append(out, t.ended(c)...)
}

func (t *Translator) callStart(c call) Event {
	return Event{"type": "TOOL_CALL_START", "toolCallId": c.id, "toolCallName": c.name, "parentMessageId": t.messageID()}
}

func (*Translator) ended(c *call) []Event {
	c.open = false
	return []Event{{"type": "TOOL_CALL_END", "toolCallId": c.id}}
}

func result(in *input, f Fields) Event {
	return Event{
		"type": "TOOL_CALL_RESULT", "messageId": "result-" + in.Call.ID, "toolCallId": in.Call.ID, "role": "tool",
		"content": resultText(&in.Result), "rawEvent": f,
	}
}

// snapshot translates the state, the messages, and activities.
func snapshot(name string, in *input) []Event {
	switch name {
	case "state_snapshot":
		return []Event{{"type": "STATE_SNAPSHOT", "snapshot": object(in.Snapshot)}}
	case "state_delta":
		return []Event{{"type": "STATE_DELTA", "delta": patch(in.Delta)}}
	case "messages_snapshot":
		var list []abi.Message
		_ = json.Unmarshal(in.Messages, &list) // they are messages
		return []Event{{"type": "MESSAGES_SNAPSHOT", "messages": shown(list)}}
	case "activity_snapshot":
		return []Event{{
			"type": "ACTIVITY_SNAPSHOT", "messageId": in.MessageID, "activityType": in.ActivityType, "content": object(in.Content), "replace": in.Replace,
		}}
	default: // activity_delta
		return []Event{{"type": "ACTIVITY_DELTA", "messageId": in.MessageID, "activityType": in.ActivityType, "patch": patch(in.Patch)}}
	}
}

// object is a value that has to be an object.
func object(v json.RawMessage) any {
	var o map[string]json.RawMessage
	if len(v) > 0 && (json.Unmarshal(v, &o) != nil || o == nil) {
		return map[string]any{"value": v}
	}
	if o == nil {
		o = map[string]json.RawMessage{}
	}
	return o
}

// patch is a JSON Patch, in which a removal has no value.
func patch(v json.RawMessage) any {
	list := []map[string]any{}
	_ = json.Unmarshal(v, &list) // it is a list of operations
	for _, op := range list {
		if op["op"] == "remove" {
			delete(op, "value")
		}
	}
	return list
}
