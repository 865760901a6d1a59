package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// handsV1 has the fields of events with a kind.
type handsV1 struct {
	Kind         looseString
	ToolName     looseString        `json:"tool_name"`
	ToolCallID   looseString        `json:"tool_call_id"`
	ResponseID   looseString        `json:"llm_response_id"`
	LLM          loose[listMessage] `json:"llm_message"`
	SystemPrompt json.RawMessage    `json:"system_prompt"`
	Thought      json.RawMessage
	ToolCall     loose[struct {
		Arguments json.RawMessage
		Function  *listFunc
	}] `json:"tool_call"`
	Error   looseString
	Reason  looseString `json:"rejection_reason"`
	Summary looseString
}

// kind reads an event of version 1.
func (l *handsLog) kind(e Entry, v *handsEvent) error {
	e.Message.ID = string(v.ID)
	switch v.Kind {
	case "SystemPromptEvent":
		c, err := parseContent(v.SystemPrompt)
		if err != nil {
			return err
		}
		return l.say(e, abi.RoleSystem, c.string())
	case "MessageEvent":
		return l.handsMessage(e, v)
	case "ActionEvent":
		return l.handsAction(e, v)
	case "ObservationEvent":
		o, ok := parseObject(v.Observation)
		if !ok {
			return errors.New("an ObservationEvent has no observation")
		}
		var c content
		if err := c.parse(o["content"].raw); err != nil || len(c.blocks) == 0 {
			c = rendered(either(o["output"].raw, v.Observation))
		}
		code := o.text("exit_code")
		return l.result(e, string(v.ToolCallID), string(o["is_error"].raw) == "true" || code != "" && code != "0", c)
	case "AgentErrorEvent", "UserRejectObservation":
		return l.result(e, string(v.ToolCallID), true, rendered(quoted(string(v.Error+v.Reason))))
	case "Condensation":
		l.draft.cuts = append(l.draft.cuts, cut{Compaction: Compaction{Summary: string(v.Summary), Line: e.Line, Time: e.At}})
	}
	l.r.skip("event " + string(v.Kind))
	return nil
}

func (l *handsLog) handsMessage(e Entry, v *handsEvent) error {
	m := v.LLM.value
	if m == nil {
		return errors.New("a MessageEvent has no llm_message")
	}
	c, err := m.content()
	if err != nil {
		return err
	}
	e.Message.Role = abi.RoleUser
	switch v.Source {
	case "agent":
		e.Message.Role = abi.RoleAssistant
	case "environment":
		e.Message.Visibility = abi.VisibilityInternal
	}
	l.items.open = -1
	return l.r.add(&l.draft, e, c)
}

func (l *handsLog) handsAction(e Entry, v *handsEvent) error {
	thought, err := parseContent(v.Thought)
	if err != nil {
		return err
	}
	o, _ := parseObject(v.Action)
	if v.ToolName == "finish" {
		return l.say(e, abi.RoleAssistant, strings.TrimSpace(thought.string()+"\n"+o.text("message")))
	}
	var args any
	if k := v.ToolCall.value; k != nil && k.Arguments != nil {
		args = arguments(k.Arguments)
	} else if k != nil && k.Function != nil {
		args = arguments(k.Function.Arguments)
	} else {
		args = arguments(v.Action)
	}
	call := handsCall{Name: v.ToolName, ID: cmp.Or(v.ToolCallID, "event_"+v.ID)}
	call.Response.ID = v.ResponseID
	return l.call(e, &call, args, thought.string())
}
