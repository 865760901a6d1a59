package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// listMessage is the union of the messages of OpenAI-style and Anthropic-style
// lists.
type listMessage struct {
	// Type is that of items of the Responses API.
	Type       looseString
	ID         looseString
	Role       string
	Name       looseString
	Content    json.RawMessage
	ToolCalls  []listCall  `json:"tool_calls"`
	Function   *listFunc   `json:"function_call"`
	ToolCallID looseString `json:"tool_call_id"`
	IsError    looseBool   `json:"is_error"`
	// Reasoning is written in one of two fields.
	Reasoning        looseString
	ReasoningContent looseString `json:"reasoning_content"`
	Refusal          looseString
	Model            looseString
	StopReason       looseString `json:"stop_reason"`
	FinishReason     looseString `json:"finish_reason"`
	Timestamp        looseString
	Usage            json.RawMessage
	Extra            listExtra
	// The rest belongs to messages of the AI SDK's user interfaces. Parts hold
	// the whole message, ToolInvocations are those of older ones without parts.
	Parts           json.RawMessage
	ToolInvocations loose[[]aiInvocation]
	CreatedAt       looseString
	// Created and Metadata are Goose's.
	Created  looseString
	Metadata loose[struct{ UserVisible *bool }]
	// MessageType, IsDemo and ToolCallIDs are SWE-agent's.
	MessageType looseString          `json:"message_type"`
	IsDemo      looseBool            `json:"is_demo"`
	ToolCallIDs loose[[]looseString] `json:"tool_call_ids"`
}

type listCall struct {
	ID       looseString
	Function *listFunc
}

type listFunc struct {
	Name      looseString
	Arguments json.RawMessage
}

// listExtra is where mini-swe-agent keeps the provider's answer. It is decoded
// by itself, so that another use of the field does no harm.
type listExtra struct {
	Model string
	Usage json.RawMessage
	Stop  string
}

// UnmarshalJSON never fails on valid JSON.
func (x *listExtra) UnmarshalJSON(data []byte) error {
	var e struct {
		Response struct {
			Model   looseString
			Usage   json.RawMessage
			Choices []struct {
				FinishReason looseString `json:"finish_reason"`
			}
		}
	}
	if json.Unmarshal(data, &e) != nil {
		return nil //nolint:nilerr // another use of the field
	}
	x.Model, x.Usage = string(e.Response.Model), e.Response.Usage
	if len(e.Response.Choices) > 0 {
		x.Stop = string(e.Response.Choices[0].FinishReason)
	}
	return nil
}

// messageList reads a list of messages that is one conversation.
type messageList struct {
	r     *reader
	draft draft
	// format is that of the first content that only one format has; system
	// reports a system prompt outside of the list.
	format Format
	system bool
	items  *itemReader // of a list that holds items of the Responses API
}

func (l *messageList) finish() (Format, []draft) {
	return l.kind(), []draft{l.draft}
}

func (l *messageList) kind() Format {
	if l.format == "" && l.system {
		return FormatAnthropic
	}
	return cmp.Or(l.format, FormatOpenAI)
}

func (l *messageList) record(line int, data []byte) error {
	if first(data) != '{' {
		return errors.New("a message is not an object")
	}
	var m listMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	l.r.firstMessage(data)
	if m.Role == "" && isItem(string(m.Type)) {
		return l.item(line, data)
	}
	role, err := listRole(m.Role)
	if err != nil {
		return err
	}
	if role == "" || bool(m.IsDemo) {
		l.r.skip(cmp.Or(string(m.MessageType), "role "+m.Role))
		return nil
	}
	c, err := m.content()
	if err != nil {
		return err
	}
	l.format = cmp.Or(l.format, c.format)
	e := Entry{Message: abi.Message{ID: string(m.ID), Role: role}, Line: line, At: moment(string(cmp.Or(m.Timestamp, m.CreatedAt, m.Created)))}
	if role == abi.RoleUser && m.written(l.draft.lastAnswer() < 0) {
		e.Message.Visibility = abi.VisibilityInternal
	}
	if role == abi.RoleTool {
		e.Message.ToolCallID, e.ToolName, e.Status = string(m.ToolCallID), string(m.Name), status(bool(m.IsError))
		if ids := m.ToolCallIDs.value; ids != nil && len(*ids) > 0 {
			e.Message.ToolCallID = string(cmp.Or(m.ToolCallID, (*ids)[0]))
		}
	}
	if role == abi.RoleAssistant {
		e.Model = string(m.Model) + m.Extra.Model
		e.StopReason = stopReason(string(m.StopReason+m.FinishReason) + m.Extra.Stop)
		e.Usage = mergeUsage(parseUsage(m.Usage), parseUsage(m.Extra.Usage))
	}
	if m.Type == "message" {
		l.format = cmp.Or(l.format, FormatResponses)
	}
	if l.items != nil {
		return l.items.message(&l.draft, e, c)
	}
	return l.r.add(&l.draft, e, c)
}

// item reads an item of the Responses API, which a list may hold besides messages.
func (l *messageList) item(line int, data []byte) error {
	if l.items == nil {
		l.items = &itemReader{r: l.r, open: -1}
	}
	l.format = cmp.Or(l.format, FormatResponses)
	return l.items.item(&l.draft, Entry{Line: line}, data)
}

// written reports a message in the user's place that the user did not write: what
// Goose hides from the user, and what SWE-agent observed behind its first answer.
func (m *listMessage) written(task bool) bool {
	hidden := m.Metadata.value != nil && m.Metadata.value.UserVisible != nil && !*m.Metadata.value.UserVisible
	return hidden || m.MessageType == "observation" && !task
}

// firstMessage keeps the names of the fields of the first message of a list.
func (r *reader) firstMessage(data []byte) {
	const most = 8
	if r.fields != nil {
		return
	}
	r.fields = []string{}
	if o, ok := parseObject(data); ok {
		for _, name := range slices.Sorted(maps.Keys(o)) {
			r.fields = append(r.fields, clip(name, 40))
		}
		r.fields = r.fields[:min(len(r.fields), most)]
	}
}

// listRole returns the empty role for entries that are no part of the
// conversation.
func listRole(s string) (abi.Role, error) {
	switch s {
	case "system", "developer":
		return abi.RoleSystem, nil
	case "user":
		return abi.RoleUser, nil
	case "assistant", "model": // the Gemini API says model
		return abi.RoleAssistant, nil
	case "tool", "function":
		return abi.RoleTool, nil
	case "exit": // mini-swe-agent's last entry repeats the outcome
		return "", nil
	case "":
		return "", errors.New("a message has no role")
	}
	return "", fmt.Errorf("unknown role %q; understood are system, developer, user, assistant, model, tool and function", clip(s, maxTitle))
}

func (m *listMessage) content() (content, error) {
	var c content
	if thoughts := cmp.Or(m.ReasoningContent, m.Reasoning); thoughts != "" {
		c.add(abi.ContentBlock{Type: abi.BlockThinking, Text: string(thoughts)})
	}
	if err := m.body(&c); err != nil {
		return c, err
	}
	c.text(string(m.Refusal))
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		if call.Function == nil {
			return c, errors.New("a tool call has no function")
		}
		if err := c.addCall(string(call.ID), string(call.Function.Name), arguments(call.Function.Arguments)); err != nil {
			return c, err
		}
	}
	if m.Function != nil {
		err := c.addCall("", string(m.Function.Name), arguments(m.Function.Arguments))
		return c, err
	}
	return c, nil
}

// body reads the parts of a message, or its content.
func (m *listMessage) body(c *content) error {
	if first(m.Parts) == '[' {
		return c.parts(m.Parts)
	}
	if m.ToolInvocations.value != nil {
		c.is(FormatAISDKUI)
		for _, t := range *m.ToolInvocations.value {
			if err := c.invocation(&t); err != nil {
				return err
			}
		}
	}
	return c.parse(m.Content)
}
