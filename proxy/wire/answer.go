package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/dynamic"
)

// Usage is what a provider counted for one request. Input is what no cache had, and Write5m and Write1h are written to
// one; the four add up to the prompt.
type Usage struct {
	Input, Read, Write5m, Write1h, Output int64
}

// Prompt is the whole prompt.
func (u Usage) Prompt() int64 { return u.Input + u.Read + u.Write5m + u.Write1h }

// ABI returns it in the project's terms.
func (u Usage) ABI() *abi.Usage {
	return &abi.Usage{
		PromptTokens: u.Prompt(), CompletionTokens: u.Output, TotalTokens: u.Prompt() + u.Output,
		CacheReadTokens: u.Read, CacheCreationTokens: u.Write5m + u.Write1h,
	}
}

// Out is a part of an answer. Raw is its JSON as the conversation holds it, nil where it is unknown.
type Out struct {
	Index    int
	Type     string
	ID, Name string
	// Text is that of a text block. Args are the arguments of a call as the model wrote them.
	Text   string
	Args   []byte
	Raw    []byte
	Custom bool
	Server bool
	// Item means a call that cannot be written anew: that of a built-in tool of Responses which the client executes, as a shell (its name is that
	// of the tool, and its arguments are all of the item), or a function_call of Chat, which has no id.
	Item bool
}

// Call returns a call in the project's terms.
func (o *Out) Call() abi.ToolCall {
	c := abi.ToolCall{ID: o.ID, Name: o.Name, Arguments: string(o.Args)}
	if !o.Custom {
		c.Arguments = Value(o.Args)
	}
	return c
}

// Rewritten returns other arguments of a call as JSON, with the numbers of the model's that stay as it wrote them.
func (o *Out) Rewritten(args any) []byte {
	var wrote any
	if dynamic.Decode(o.Args, &wrote) == nil {
		args = dynamic.Exact(args, Value(o.Args), wrote)
	}
	return Marshal(args)
}

// Answer is what a model answered.
type Answer struct {
	Protocol Protocol
	ID       string
	Model    string
	Blocks   []Out
	Stop     string
	Usage    Usage
	// Counted means that there was a usage. Done means that the answer came to its end, Failed that it ended with an
	// error.
	Counted, Done, Failed bool
	// Extra are fields of a message of Chat besides content and calls.
	Extra map[string]json.RawMessage
	// Unclear is why calls cannot be decided about, empty where they can.
	Unclear string
	// Lost means that something came whose meaning is not known, so that the answer cannot be written anew.
	Lost bool
}

// Fixed reports whether a call of Chat has no id, so that none of its answer can be changed.
func (a *Answer) Fixed() bool {
	return slices.ContainsFunc(a.Blocks, func(o Out) bool { return o.Index == legacy })
}

// Calls returns the calls that the client executes.
func (a *Answer) Calls() (out []Out) {
	for _, b := range a.Blocks {
		if b.Type == TypeCall && !b.Server {
			out = append(out, b)
		}
	}
	return out
}

// Text returns the text of all blocks.
func (a *Answer) Text() string {
	var b strings.Builder
	for i := range a.Blocks {
		if a.Blocks[i].Type == TypeText {
			b.WriteString(a.Blocks[i].Text)
		}
	}
	return b.String()
}

// Message returns the answer in the project's terms.
func (a *Answer) Message() abi.Message {
	m := abi.Message{Role: abi.RoleAssistant}
	for i := range a.Blocks {
		switch b := &a.Blocks[i]; {
		case b.Type == TypeText && b.Text != "":
			m.Content = append(m.Content, abi.Text(b.Text))
		case b.Type == TypeCall && !b.Server:
			m.ToolCalls = append(m.ToolCalls, b.Call())
		}
	}
	return m
}

// AnswerKey names blocks of an answer as [Request.Key] names the item that the client makes of them.
func AnswerKey(blocks []Out) string {
	var ids []string
	var text strings.Builder
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.Type == TypeCall && b.Index != legacy:
			ids = append(ids, b.ID)
		case b.Type == TypeText:
			text.WriteString(b.Text)
		}
	}
	return key(ids, text.String())
}

// StopReason returns that of the answer in the project's terms.
func (a *Answer) StopReason() abi.StopReason {
	switch a.Stop {
	case "tool_use", "tool_calls":
		return abi.StopToolUse
	case "max_tokens", "length", "incomplete":
		return abi.StopMaxTokens
	}
	if len(a.Calls()) > 0 {
		return abi.StopToolUse
	}
	return abi.StopEndTurn
}

// Items returns the answer as elements of a conversation, of those of its blocks that keep takes.
func (a *Answer) Items(keep func(*Out) bool) [][]byte {
	var raws [][]byte
	var calls [][]byte
	var text strings.Builder
	for i := range a.Blocks {
		b := &a.Blocks[i]
		switch {
		case !keep(b), b.Type == TypeText && b.Text == "" && a.Protocol == Messages: // an empty text is refused
		case a.Protocol == Chat && b.Type == TypeText:
			text.WriteString(b.Text)
		case a.Protocol == Chat:
			calls = append(calls, b.Raw)
		default:
			raws = append(raws, b.Raw)
		}
	}
	switch a.Protocol {
	case Responses:
		return raws
	case Messages:
		if len(raws) == 0 {
			return nil
		}
		return [][]byte{concat(`{"role":"assistant","content":[`, raws, `]}`)}
	case Chat:
	}
	m := append([]byte(`{"role":"assistant","content":`), nullOr(text.String())...)
	for _, name := range []string{"reasoning_content", "reasoning_details", "reasoning", "refusal"} { // others are of answers alone
		if val, ok := a.Extra[name]; ok {
			m = append(append(append(append(m, ','), Quote(name)...), ':'), val...)
		}
	}
	if len(calls) > 0 {
		m = append(m, concat(`,"tool_calls":[`, calls, `]`)...)
	}
	return [][]byte{append(m, '}')}
}

func nullOr(s string) []byte {
	if s == "" {
		return []byte("null")
	}
	return Quote(s)
}

func concat(before string, list [][]byte, after string) []byte {
	out := []byte(before)
	for i, e := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, after...)
}

// ResultBlock returns a result as the protocol has it: a block of Anthropic, an item of the others.
func ResultBlock(p Protocol, call *Out, text string, failed bool) []byte {
	switch p {
	case Messages:
		if strings.TrimSpace(text) == "" {
			text = "(empty)"
		}
		m := append([]byte(`{"type":"tool_result","tool_use_id":`), Quote(call.ID)...)
		m = append(append(m, `,"content":`...), Quote(text)...)
		if failed {
			m = append(m, `,"is_error":true`...)
		}
		return append(m, '}')
	case Responses:
		kind := "function_call_output"
		switch {
		case call.Custom:
			kind = "custom_tool_call_output"
		case call.Item:
			kind = Text(call.Raw, "type") + "_output"
		}
		m := append([]byte(`{"type":"`+kind+`","call_id":`), Quote(call.ID)...)
		if failed && kind == "apply_patch_call_output" {
			m = append(m, `,"status":"failed"`...)
		}
		return append(append(append(m, `,"output":`...), Quote(text)...), '}')
	case Chat:
	}
	m := append([]byte(`{"role":"tool","tool_call_id":`), Quote(call.ID)...)
	return append(append(append(m, `,"content":`...), Quote(text)...), '}')
}

// UserItem returns a user's message with text blocks. Mark, if any, is the value of a cache marker of the last one.
func UserItem(p Protocol, mark []byte, texts ...string) []byte {
	kind, head := "text", `{"role":"user","content":[`
	if p == Responses {
		kind, head = "input_text", `{"type":"message","role":"user","content":[`
	}
	var blocks [][]byte
	for i, t := range texts {
		b := append([]byte(`{"type":"`+kind+`","text":`), Quote(t)...)
		if i == len(texts)-1 && len(mark) > 0 {
			b = append(append(b, `,"cache_control":`...), mark...)
		}
		blocks = append(blocks, append(b, '}'))
	}
	return concat(head, blocks, "]}")
}

// ToolJSON returns a tool as the protocol has it.
func ToolJSON(p Protocol, t abi.Tool) []byte {
	type object = map[string]any
	var schema any = object{"type": "object", "properties": object{}}
	if t.Parameters != nil {
		schema = t.Parameters
	}
	if m, ok := schema.(object); ok && m["properties"] == nil {
		m = maps.Clone(m)
		m["properties"] = object{}
		schema = m
	}
	switch p {
	case Messages:
		return Marshal(object{"name": t.Name, "description": t.Description, "input_schema": schema})
	case Responses:
		return Marshal(object{"type": "function", "name": t.Name, "description": t.Description, "parameters": schema, "strict": false})
	case Chat:
	}
	return Marshal(object{"type": "function", "function": object{"name": t.Name, "description": t.Description, "parameters": schema}})
}
