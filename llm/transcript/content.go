package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

const maxCalls = 4096

// content is the decoded content of one message.
type content struct {
	// earlier holds the steps of an answer before this one. Each ends with the
	// results of its calls.
	earlier []content
	blocks  []abi.ContentBlock
	calls   []abi.ToolCall
	results []result
	unknown []string // types of blocks that were left out
	// format is that of the first block that only one format has.
	format Format
}

// result is a tool result that stands in a block of a message.
type result struct {
	callID string
	name   string // of the tool, for a result without an id
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
	aiBlock
	bedrockBlock
	geminiBlock
}

// parseContent reads content that is null, a string, a block or a list of
// blocks. The JSON is known to be valid.
func parseContent(raw []byte) (content, error) {
	var c content
	err := c.parse(raw)
	return c, err
}

func (c *content) parse(raw []byte) error {
	switch first(raw) {
	case 0, 'n':
	case '"':
		return c.block(raw)
	case '{':
		return c.block(raw)
	case '[':
		for _, part := range elements(raw) {
			if err := c.block(part); err != nil {
				return err
			}
		}
	default:
		return errors.New("content is neither text nor a list of blocks")
	}
	return nil
}

// step ends a step of an answer, if the answer has made calls in it.
func (c *content) step() {
	if len(c.calls) == 0 {
		return
	}
	done := content{blocks: c.blocks, calls: c.calls, results: c.results}
	*c = content{earlier: append(c.earlier, done), unknown: c.unknown, format: c.format}
}

// steps returns the steps of an answer, the last one last.
func (c *content) steps() []content {
	if len(c.earlier) > 0 && len(c.blocks) == 0 && len(c.calls) == 0 && len(c.results) == 0 {
		return c.earlier
	}
	return append(slices.Clip(c.earlier), *c)
}

// string is the text of the blocks.
func (c content) string() string {
	m := abi.Message{Content: c.blocks}
	return m.Text()
}

// flat returns the content as one step.
func (c content) flat() content {
	out := content{unknown: c.unknown, format: c.format}
	for _, s := range c.steps() {
		out.blocks = append(out.blocks, s.blocks...)
		out.calls = append(out.calls, s.calls...)
		out.results = append(out.results, s.results...)
	}
	return out
}

// size counts the messages, the calls and the results.
func (c *content) size() int {
	n := 0
	for _, s := range c.steps() {
		n += 1 + len(s.calls) + len(s.results)
	}
	return n
}

// add appends a block. What follows the result of a call is the next step.
func (c *content) add(b abi.ContentBlock) {
	if len(c.results) > 0 {
		c.step()
	}
	c.blocks = append(c.blocks, b)
}

func (c *content) text(s string) {
	if s != "" {
		c.add(abi.Text(s))
	}
}

// is records that a block was seen which only one format has.
func (c *content) is(f Format) { c.format = cmp.Or(c.format, f) }

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
	case "":
		return c.untyped(&b, raw)
	case "text", "input_text", "output_text":
		c.text(string(b.Text))
	case "refusal":
		c.text(string(b.Refusal))
	case "thinking", "redacted_thinking", "redactedThinking":
		c.thinking(&b)
	case "toolRequest", "frontendToolRequest":
		return c.gooseRequest(raw)
	case "toolResponse":
		return c.gooseResponse(raw)
	case "toolCall":
		return c.call(&b)
	case "tool_use", "server_tool_use", "mcp_tool_use":
		c.is(FormatAnthropic)
		return c.call(&b)
	case "tool_result":
		c.is(FormatAnthropic)
		return c.result(&b)
	default:
		return c.other(&b)
	}
	return nil
}

// other reads the blocks that fewer formats have.
func (c *content) other(b *block) error {
	if strings.HasSuffix(b.Type, "_tool_result") {
		c.is(FormatAnthropic)
		return c.serverResult(b)
	}
	if done, err := c.aiPart(b); done || err != nil {
		return err
	}
	m, ok := b.media()
	if !ok {
		c.unknown = append(c.unknown, b.Type)
		return nil
	}
	if first(b.Source) == '{' {
		c.is(FormatAnthropic)
	}
	c.add(m)
	return nil
}

func (c *content) thinking(b *block) {
	t := abi.ContentBlock{Type: abi.BlockThinking, Text: string(b.Thinking), Signature: string(b.Signature + b.ThinkingSignature)}
	if b.Type != "thinking" {
		t.Signature = string(b.Data)
	}
	if t.Text != "" || t.Signature != "" {
		c.add(t)
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
	var inner content
	if err := inner.parse(b.Content); err != nil {
		return fmt.Errorf("tool_result: %w", err)
	}
	return c.addResult(string(b.ToolUseID), bool(b.IsError), inner)
}

func (c *content) addResult(callID string, failed bool, inner content) error {
	if len(c.results) == maxCalls {
		return fmt.Errorf("%w: more than %d tool results in one message", ErrTooLarge, maxCalls)
	}
	c.results = append(c.results, result{callID: callID, failed: failed, blocks: inner.blocks})
	c.unknown = append(c.unknown, inner.unknown...)
	return nil
}
