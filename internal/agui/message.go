package agui

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// Message is one of the protocol, as far as it is read.
type Message struct {
	_ struct{} `additionalProperties:"true"`

	ID      string `json:"id" maxLength:"256"`
	Role    string `json:"role" enum:"developer,system,assistant,user,tool,activity,reasoning" example:"user"`
	Content any    `json:"content,omitempty" doc:"A text, or parts."`
}

// part is one of the content of a message.
type part struct {
	Type   string  `json:"type"`
	Text   string  `json:"text,omitempty"`
	Source *source `json:"source,omitempty"`
}

type source struct {
	Type     string `json:"type"`
	Value    string `json:"value"`
	MimeType string `json:"mimeType,omitempty"`
}

// Roles of the protocol that others do not have.
const (
	roleUser      = "user"
	roleReasoning = "reasoning"
)

// Latest are the user's messages at the end of a conversation, which the agent has not answered.
func Latest(list []Message) []Message {
	at := len(list)
	for at > 0 && list[at-1].Role == roleUser {
		at--
	}
	return list[at:]
}

// Message translates a user's message.
func (m Message) Message() (abi.Message, error) {
	out := abi.Message{ID: m.ID, Role: abi.RoleUser}
	if text, ok := m.Content.(string); ok {
		out.Content = []abi.ContentBlock{abi.Text(text)}
		return out, nil
	}
	data, err := json.Marshal(m.Content)
	if err != nil {
		return out, errors.New("the content is not JSON")
	}
	var parts []part
	if json.Unmarshal(data, &parts) != nil || len(parts) == 0 {
		return out, errors.New("the content is neither a text nor a list of parts")
	}
	for i, p := range parts {
		block, err := p.block()
		if err != nil {
			return out, fmt.Errorf("part %d: %w", i, err)
		}
		out.Content = append(out.Content, block)
	}
	return out, nil
}

func (p part) block() (abi.ContentBlock, error) {
	b := abi.ContentBlock{Type: abi.BlockType(p.Type), Text: p.Text}
	switch b.Type {
	case abi.BlockText:
		return b, nil
	case abi.BlockImage, abi.BlockAudio, abi.BlockVideo, abi.BlockDocument:
	default:
		return b, fmt.Errorf("its type %.40q is none of text, image, audio, video and document", p.Type)
	}
	if p.Source == nil {
		return b, errors.New("it has no source")
	}
	b.MediaType = p.Source.MimeType
	switch p.Source.Type {
	case "data":
		b.Data = p.Source.Value
	case "url":
		b.URL = p.Source.Value
	default:
		return b, fmt.Errorf("the type of its source, %.40q, is neither data nor url", p.Source.Type)
	}
	return b, nil
}

// shown are the messages of a log as clients see them, without those of the runtime.
func shown(list []abi.Message) []any {
	out := []any{}
	for i := range list {
		if list[i].Visibility != abi.VisibilityInternal {
			out = append(out, show(&list[i])...)
		}
	}
	return out
}

func show(m *abi.Message) (out []any) {
	e := map[string]any{"id": m.ID, "role": string(m.Role), "content": m.Text()}
	switch m.Role {
	case abi.RoleAssistant:
		if r := reasoningOf(m); r != nil {
			out = append(out, r)
		}
		if calls := callsOf(m); calls != nil {
			e["toolCalls"] = calls
		}
	case abi.RoleTool:
		e["toolCallId"] = m.ToolCallID
	case abi.RoleUser:
		if parts := partsOf(m); parts != nil {
			e["content"] = parts
		}
	default:
	}
	return append(out, e)
}

func callsOf(m *abi.Message) (list []any) {
	for _, c := range m.ToolCalls {
		list = append(list, map[string]any{
			"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": jsonText(c.Arguments)},
		})
	}
	return list
}

// reasoningOf is the reasoning of an answer, which is a message of its own in the protocol.
func reasoningOf(m *abi.Message) any {
	text, signature, found := "", "", false
	for _, b := range m.Content {
		if b.Type == abi.BlockThinking {
			text, signature, found = text+b.Text, b.Signature, true
		}
	}
	if !found {
		return nil
	}
	e := map[string]any{"id": m.ID + reasoningSuffix, "role": roleReasoning, "content": text}
	if signature != "" {
		e["encryptedValue"] = signature
	}
	return e
}

// partsOf are the parts of a message that has more than text.
func partsOf(m *abi.Message) (list []part) {
	media := false
	for _, b := range m.Content {
		p := part{Type: string(b.Type), Text: b.Text}
		if b.Type != abi.BlockText {
			media = true
			if p.Source = (&source{Type: "url", Value: b.URL, MimeType: b.MediaType}); b.Data != "" {
				p.Source = &source{Type: "data", Value: b.Data, MimeType: b.MediaType}
			}
		}
		list = append(list, p)
	}
	if !media {
		return nil
	}
	return list
}
