package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// item is the union of the items of OpenAI's Responses API other than messages.
// Codex writes them to its rollouts.
type item struct {
	Type      string
	ID        looseString
	CallID    looseString `json:"call_id"`
	Name      looseString
	Status    looseString
	Arguments json.RawMessage
	// Input is that of a custom tool call.
	Input  json.RawMessage
	Action json.RawMessage
	// Operation is that of apply_patch_call.
	Operation json.RawMessage
	Code      looseString
	Queries   json.RawMessage
	Output    json.RawMessage
	Outputs   json.RawMessage
	Results   json.RawMessage
	Error     json.RawMessage
	Summary   json.RawMessage
	Content   json.RawMessage
	Encrypted looseString `json:"encrypted_content"`
}

// isItem reports the type of an item that is no message.
func isItem(kind string) bool {
	switch kind {
	case "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "item_reference", "compaction",
		"compaction_summary", "ghost_snapshot", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "image_generation_call":
		return true
	}
	return strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output")
}

// itemReader puts items together to messages: what the model writes between two
// results is one answer.
type itemReader struct {
	r *reader
	// open is the index of the answer that items still belong to, -1 when there
	// is none.
	open int
}

// message adds a message, to the open answer where it is one.
func (t *itemReader) message(d *draft, e Entry, c content) error {
	if e.Message.Role != abi.RoleAssistant {
		t.open = -1
		return t.r.add(d, e, c)
	}
	if t.open >= 0 && t.open < len(d.entries) {
		into := &d.entries[t.open].Message
		if len(into.ToolCalls)+len(c.calls) > maxCalls {
			return ErrTooLarge
		}
		c = c.flat()
		for _, kind := range c.unknown {
			t.r.skip("content block " + kind)
		}
		t.r.size += len(c.calls)
		into.Content = append(into.Content, c.blocks...)
		into.ToolCalls = append(into.ToolCalls, c.calls...)
		return nil
	}
	err := t.r.add(d, e, c)
	t.open = d.lastAnswer()
	return err
}

// item adds any other item.
func (t *itemReader) item(d *draft, e Entry, data []byte) error {
	var i item
	if err := json.Unmarshal(data, &i); err != nil {
		return err
	}
	e.Message.ID = string(i.ID)
	e.Message.Role = abi.RoleAssistant
	var c content
	switch {
	case i.Type == "reasoning":
		c.reasoned(&i)
		if len(c.blocks) == 0 {
			t.r.skip("reasoning without text")
			return nil
		}
		return t.message(d, e, c)
	case strings.HasSuffix(i.Type, "_call_output"):
		return t.output(d, e, &i)
	case strings.HasSuffix(i.Type, "_call"):
		return t.call(d, e, &i)
	}
	t.r.skip("item " + i.Type)
	return nil
}

// reasoned reads the summary and the text of what the model thought.
func (c *content) reasoned(i *item) {
	var texts []string
	for _, list := range []json.RawMessage{i.Summary, i.Content} {
		for _, part := range elements(list) {
			if o, ok := parseObject(part); ok {
				texts = append(texts, o.text("text"))
			}
		}
	}
	if text := strings.Join(texts, "\n"); text != "" {
		c.add(abi.ContentBlock{Type: abi.BlockThinking, Text: text, Signature: string(i.Encrypted)})
	}
}

// call adds a call. One that the provider ran holds its result.
func (t *itemReader) call(d *draft, e Entry, i *item) error {
	id := string(cmp.Or(i.CallID, i.ID))
	name := string(i.Name)
	if name == "" {
		name = strings.TrimSuffix(i.Type, "_call")
	}
	if name == "function" {
		return errors.New("a function_call has no name")
	}
	e.Message.ID = ""
	var c content
	if err := c.addCall(id, name, i.arguments()); err != nil {
		return err
	}
	if err := t.message(d, e, c); err != nil {
		return err
	}
	result, failed, ran := i.ran()
	if !ran {
		return nil
	}
	e.Message = abi.Message{Role: abi.RoleTool, ToolCallID: id}
	e.Status, e.Model = status(failed), ""
	return t.r.add(d, e, result)
}

// arguments are in a field that depends on the type.
func (i *item) arguments() any {
	for _, raw := range []json.RawMessage{i.Arguments, i.Action, i.Operation, i.Queries} {
		if len(raw) > 0 && first(raw) != 'n' {
			return arguments(raw)
		}
	}
	if i.Code != "" {
		return map[string]any{"code": string(i.Code)}
	}
	var s string
	if json.Unmarshal(i.Input, &s) == nil {
		return map[string]any{"input": s}
	}
	return arguments(i.Input)
}

// ran returns the result of a call that the provider ran itself.
func (i *item) ran() (content, bool, bool) {
	switch i.Type {
	case "mcp_call", "code_interpreter_call", "file_search_call", "web_search_call", "image_generation_call":
	default:
		return content{}, false, false
	}
	for _, raw := range []json.RawMessage{i.Error, i.Output, i.Outputs, i.Results} {
		if len(raw) > 0 && first(raw) != 'n' {
			return rendered(raw), i.Status == "failed" || bytes.Equal(raw, i.Error), true
		}
	}
	return rendered(quoted(string(i.Status))), i.Status == "failed", true
}

// output adds the result of a call.
func (t *itemReader) output(d *draft, e Entry, i *item) error {
	t.open = -1
	c, failed, err := i.outputText()
	if err != nil {
		return err
	}
	e.Message = abi.Message{Role: abi.RoleTool, ToolCallID: string(cmp.Or(i.CallID, i.ID))}
	e.Status, e.Model = status(failed || i.Status == "failed"), ""
	return t.r.add(d, e, c)
}

// outputText reads an output: text, content blocks, or what Codex writes, an
// object with the text and whether the call succeeded, which may be JSON in a
// string with the exit code.
func (i *item) outputText() (c content, failed bool, err error) {
	switch first(i.Output) {
	case '[':
		err := c.parse(i.Output)
		return c, false, err
	case '{':
		var o struct {
			Content json.RawMessage
			Body    json.RawMessage
			Success *bool
		}
		if json.Unmarshal(i.Output, &o) == nil && (o.Content != nil || o.Body != nil) {
			err := c.parse(either(o.Content, o.Body))
			return c, o.Success != nil && !*o.Success, err
		}
		return rendered(i.Output), false, nil
	}
	c = rendered(i.Output)
	var exec struct {
		Output   *string
		Metadata struct {
			ExitCode *int `json:"exit_code"`
		}
	}
	if text := c.string(); strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &exec) == nil && exec.Output != nil {
		c = content{}
		c.text(*exec.Output)
		return c, exec.Metadata.ExitCode != nil && *exec.Metadata.ExitCode != 0, nil
	}
	return c, exitedWith(c.string()), nil
}

// exitedWith reports the head of a shell result of Codex with an exit code
// other than 0.
func exitedWith(text string) bool {
	const head = 200
	text = text[:min(len(text), head)]
	for _, before := range []string{"Process exited with code ", "Exit code: "} {
		if _, code, ok := strings.Cut(text, before); ok {
			return !strings.HasPrefix(code, "0")
		}
	}
	return false
}
