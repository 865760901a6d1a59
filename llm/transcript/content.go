package transcript

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

const maxCalls = 4096

// content is the decoded content of one message.
type content struct {
	blocks  []abi.ContentBlock
	calls   []abi.ToolCall
	results []result
	unknown []string // types of blocks that were left out
	// anthropic says that a block was seen which only Anthropic's lists have.
	anthropic bool
}

// result is a tool result that stands in a block of a user message.
type result struct {
	callID string
	failed bool
	blocks []abi.ContentBlock
}

// block is the union of the content blocks of all formats.
type block struct {
	Type      string
	Text      looseString
	Refusal   looseString
	Title     looseString
	Thinking  looseString
	Signature looseString
	// ThinkingSignature and MIMEType are pi's names.
	ThinkingSignature looseString
	MIMEType          looseString `json:"mimeType"`
	Data              looseString
	ID                looseString
	Name              looseString
	Input             json.RawMessage
	Arguments         json.RawMessage
	ToolUseID         looseString `json:"tool_use_id"`
	IsError           looseBool   `json:"is_error"`
	Content           json.RawMessage
	// Fields of media blocks are decoded only there: other blocks use the same
	// names for other things.
	Source     json.RawMessage
	ImageURL   json.RawMessage `json:"image_url"`
	InputAudio json.RawMessage `json:"input_audio"`
	File       json.RawMessage
}

// parseContent reads content that is null, a string, a block or a list of
// blocks. The JSON is known to be valid.
func parseContent(raw []byte) (content, error) {
	var c content
	switch first(raw) {
	case 0, 'n':
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return c, err
		}
		c.text(s)
	case '{':
		if err := c.block(raw); err != nil {
			return c, err
		}
	case '[':
		for _, part := range elements(raw) {
			if err := c.block(part); err != nil {
				return c, err
			}
		}
	default:
		return c, errors.New("content is neither text nor a list of blocks")
	}
	return c, nil
}

func (c *content) text(s string) {
	if s != "" {
		c.blocks = append(c.blocks, abi.Text(s))
	}
}

func (c *content) block(raw []byte) error {
	switch first(raw) {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		c.text(s)
		return nil
	case '{':
	default:
		return errors.New("a content block is not an object")
	}
	var b block
	if err := json.Unmarshal(raw, &b); err != nil {
		return fmt.Errorf("content block: %w", err)
	}
	switch b.Type {
	case "text", "input_text", "output_text":
		c.text(string(b.Text))
	case "refusal":
		c.text(string(b.Refusal))
	case "thinking", "redacted_thinking":
		c.thinking(&b)
	case "tool_use", "toolCall":
		c.anthropic = c.anthropic || b.Type == "tool_use"
		return c.call(&b)
	case "tool_result":
		c.anthropic = true
		return c.result(&b)
	default:
		if m, ok := b.media(); ok {
			c.anthropic = c.anthropic || first(b.Source) == '{'
			c.blocks = append(c.blocks, m)
		} else {
			c.unknown = append(c.unknown, b.Type)
		}
	}
	return nil
}

func (c *content) thinking(b *block) {
	t := abi.ContentBlock{Type: abi.BlockThinking, Text: string(b.Thinking), Signature: string(b.Signature + b.ThinkingSignature)}
	if b.Type == "redacted_thinking" {
		t.Signature = string(b.Data)
	}
	if t.Text != "" || t.Signature != "" {
		c.blocks = append(c.blocks, t)
	}
}

func (c *content) call(b *block) error {
	args := b.Input
	if args == nil {
		args = b.Arguments
	}
	return c.addCall(string(b.ID), string(b.Name), arguments(args))
}

func (c *content) addCall(id, name string, args any) error {
	if name == "" {
		return errors.New("a tool call has no name")
	}
	if len(c.calls) == maxCalls {
		return fmt.Errorf("%w: more than %d tool calls in one message", ErrTooLarge, maxCalls)
	}
	c.calls = append(c.calls, abi.ToolCall{ID: id, Name: name, Arguments: args})
	return nil
}

// arguments decodes the arguments of a call: JSON, or JSON in a string.
func arguments(raw json.RawMessage) any {
	if first(raw) != '"' {
		return dynamic(raw)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return dynamic([]byte(s))
}

func (c *content) result(b *block) error {
	inner, err := parseContent(b.Content)
	if err != nil {
		return fmt.Errorf("tool_result: %w", err)
	}
	if len(c.results) == maxCalls {
		return fmt.Errorf("%w: more than %d tool results in one message", ErrTooLarge, maxCalls)
	}
	c.results = append(c.results, result{callID: string(b.ToolUseID), failed: bool(b.IsError), blocks: inner.blocks})
	c.unknown = append(c.unknown, inner.unknown...)
	return nil
}
