package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// aiBlock has the fields of content parts of the Vercel AI SDK. Parts of its
// core messages and of its UI messages differ in names, and those of older
// versions do too.
type aiBlock struct {
	ToolCallID looseString
	ToolName   looseString
	State      looseString
	ErrorText  looseString
	Args       json.RawMessage
	Result     json.RawMessage
	Output     json.RawMessage
	// Reasoning is the text of a reasoning part in older UI messages.
	Reasoning looseString
	MediaType looseString `json:"mediaType"`
	URL       looseString
	Filename  looseString
	// Image is data or an address; in Bedrock's messages it is an object.
	Image          json.RawMessage
	ToolInvocation loose[aiInvocation]
}

// aiInvocation is a tool call and its result, as far as there is one.
type aiInvocation struct {
	ToolCallID looseString
	ToolName   looseString
	State      looseString
	Args       json.RawMessage
	Result     json.RawMessage
}

// parts reads the parts of a UI message, each of which has a type, or of the
// Gemini API, which have none.
func (c *content) parts(raw []byte) error {
	for _, part := range elements(raw) {
		o, ok := parseObject(part)
		switch {
		case ok && o.text("type") == "" && isGemini(o):
			c.is(FormatGemini)
			if err := c.gemini(part); err != nil {
				return err
			}
			continue
		case ok && o.text("type") == "":
			c.unknown = append(c.unknown, "without a type")
			continue
		}
		c.is(FormatAISDKUI)
		if err := c.block(part); err != nil {
			return err
		}
	}
	return nil
}

// aiPart reads a part that only the AI SDK has. It reports false for others.
func (c *content) aiPart(b *block) (bool, error) {
	switch b.Type {
	case "reasoning":
		if text := cmp.Or(b.Text, b.Reasoning); text != "" {
			c.add(abi.ContentBlock{Type: abi.BlockThinking, Text: string(text)})
		}
		return true, nil
	case "step-start":
		c.step()
		return true, nil
	case "tool-call":
		c.is(FormatAISDK)
		return true, c.addCall(string(b.ToolCallID), string(b.ToolName), arguments(either(b.Input, b.Args)))
	case "tool-result":
		c.is(FormatAISDK)
		inner, failed, err := b.output()
		if err != nil {
			return true, err
		}
		return true, c.addResult(string(b.ToolCallID), failed || bool(b.IsError), inner)
	case "tool-invocation":
		if b.ToolInvocation.value == nil {
			return true, errors.New("a tool-invocation part has no toolInvocation")
		}
		return true, c.invocation(b.ToolInvocation.value)
	case "dynamic-tool":
		return true, c.toolPart(b, string(b.ToolName))
	}
	if name, ok := strings.CutPrefix(b.Type, "tool-"); ok && b.ToolCallID != "" && b.State != "" {
		return true, c.toolPart(b, name)
	}
	return false, nil
}

func either(a, b json.RawMessage) json.RawMessage {
	if a == nil {
		return b
	}
	return a
}

// invocation reads a call of the older UI messages.
func (c *content) invocation(t *aiInvocation) error {
	if err := c.addCall(string(t.ToolCallID), string(t.ToolName), arguments(t.Args)); err != nil || t.State != "result" {
		return err
	}
	return c.addResult(string(t.ToolCallID), false, rendered(t.Result))
}

// toolPart reads a call of a UI message. One without an output is not answered
// yet.
func (c *content) toolPart(b *block, name string) error {
	id := string(b.ToolCallID)
	if err := c.addCall(id, name, arguments(b.Input)); err != nil {
		return err
	}
	switch b.State {
	case "output-available":
		return c.addResult(id, false, rendered(b.Output))
	case "output-error":
		return c.addResult(id, true, rendered(quoted(string(b.ErrorText))))
	case "output-denied":
		return c.addResult(id, true, rendered(quoted("The execution was denied.")))
	}
	return nil
}

// output reads the output of a tool-result part, which is typed, or in older
// messages the plain result.
func (b *block) output() (c content, failed bool, err error) {
	if b.Output == nil {
		return rendered(b.Result), false, nil
	}
	var out struct {
		Type   string
		Value  json.RawMessage
		Reason looseString
	}
	if first(b.Output) == '{' {
		_ = json.Unmarshal(b.Output, &out) // an output without a type is rendered whole
	}
	switch out.Type {
	case "text", "json":
		return rendered(out.Value), false, nil
	case "error-text", "error-json":
		return rendered(out.Value), true, nil
	case "execution-denied":
		return rendered(quoted("The execution was denied. " + string(out.Reason))), true, nil
	case "content":
		err := c.parse(out.Value)
		return c, false, err
	}
	return rendered(b.Output), false, nil
}

// rendered is a JSON value as text: a string as it is, anything else as JSON.
func rendered(raw json.RawMessage) (c content) {
	var s string
	if first(raw) == '"' && json.Unmarshal(raw, &s) == nil {
		c.text(s)
		return c
	}
	var b bytes.Buffer
	if len(raw) > 0 && json.Compact(&b, raw) == nil {
		c.text(strings.ToValidUTF8(b.String(), "\uFFFD"))
	}
	return c
}

func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return b
}

// file returns the media block of a file part; its address is a URL or data.
func (b *block) file(out *abi.ContentBlock) {
	kind := string(cmp.Or(b.MediaType, b.MIMEType))
	source := string(cmp.Or(b.URL, b.Data))
	if first(b.Image) == '"' {
		var s looseString
		_ = json.Unmarshal(b.Image, &s) // a string is always read
		source = string(s)
	}
	switch {
	case strings.HasPrefix(source, "data:"), strings.Contains(source, "://"):
		address(out, source)
	default:
		out.Data = source
	}
	out.MediaType = cmp.Or(kind, out.MediaType)
	out.Title = cmp.Or(out.Title, string(b.Filename))
	for prefix, t := range map[string]abi.BlockType{"image/": abi.BlockImage, "audio/": abi.BlockAudio, "video/": abi.BlockVideo} {
		if strings.HasPrefix(out.MediaType, prefix) {
			out.Type = t
		}
	}
}
