package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

type anRequest struct {
	Model       string
	MaxTokens   int64 `json:"max_tokens"`
	Stream      bool
	System      anBlocks
	Messages    []anMessage
	Temperature *float64
	TopP        *float64 `json:"top_p"`
	TopK        *int64   `json:"top_k"`
	Tools       []anTool
	ToolChoice  json.RawMessage `json:"tool_choice"`
	Thinking    struct {
		Type   string
		Budget int64 `json:"budget_tokens"`
	}
	OutputConfig struct{ Effort string } `json:"output_config"`
	CacheControl *cacheControl           `json:"cache_control"`
}

type anTool struct {
	Name, Description string
	InputSchema       json.RawMessage `json:"input_schema"`
	CacheControl      *cacheControl   `json:"cache_control"`
}

type anMessage struct {
	Role    string
	Content anBlocks
}

type anBlock struct {
	Type, Text, ID, Name, Thinking, Signature, Data, Title string
	Input                                                  json.RawMessage
	ToolUseID                                              string `json:"tool_use_id"`
	IsError                                                bool   `json:"is_error"`
	Content                                                anBlocks
	Source                                                 struct {
		Type, Data, URL string
		MediaType       string `json:"media_type"`
	}
	CacheControl *cacheControl `json:"cache_control"`
}

// anBlocks are blocks, or a string in place of one of text.
type anBlocks []anBlock

// UnmarshalJSON reads both forms.
func (b *anBlocks) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte{'"'}) {
		*b = anBlocks{{Type: "text"}}
		return json.Unmarshal(data, &(*b)[0].Text)
	}
	return json.Unmarshal(data, (*[]anBlock)(b))
}

func (b *anBlock) thinks() bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }

func (s *Server) anParse(body []byte, counts bool) (*ask, *failure) {
	if p := conform(body, anShape(counts)); p != nil {
		return nil, anProblem(p)
	}
	var r anRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, invalid("The request body is not valid JSON: " + err.Error())
	}
	spec, ok := s.cfg.Models[r.Model]
	if !ok {
		return nil, &failure{status: http.StatusNotFound, message: "model: " + r.Model}
	}
	for _, check := range []func() string{
		func() string { return r.checkLimits(spec, counts) }, r.checkTools, func() string { return r.checkRoles(spec) }, r.checkContent, r.checkResults, r.checkCache,
		func() string { return r.checkThinking(s, spec) },
	} {
		if message := check(); message != "" {
			return nil, invalid(message)
		}
	}
	return r.ask(spec), nil
}

func (r *anRequest) thinking() bool {
	return r.Thinking.Type == "enabled" || r.Thinking.Type == "adaptive"
}

func (r *anRequest) ask(spec ModelSpec) *ask {
	a := &ask{
		id: newID("msg_"), model: r.Model, spec: spec, stream: r.Stream, limit: r.MaxTokens,
		shows: r.thinking(), must: r.Thinking.Type == "enabled",
	}
	for _, t := range r.Tools {
		a.prompt.add("tool", t.Name, t.Description)
		a.prompt.raw(t.InputSchema)
		a.prompt.mark(t.CacheControl)
		tool := abi.Tool{Name: t.Name, Description: t.Description}
		_ = json.Unmarshal(t.InputSchema, &tool.Parameters)
		a.tools = append(a.tools, tool)
	}
	for i := range r.System {
		a.prompt.add("system", r.System[i].Text)
		a.prompt.mark(r.System[i].CacheControl)
		a.system += r.System[i].Text
	}
	// A change of these invalidates the messages, and neither tools nor system prompt.
	a.prompt.add(r.Thinking.Type, fmt.Sprint(r.Thinking.Budget), r.OutputConfig.Effort)
	a.prompt.raw(r.ToolChoice)
	for _, m := range r.Messages {
		for i := range m.Content {
			a.prompt.add(m.Role)
			m.Content[i].render(&a.prompt)
			a.prompt.mark(m.Content[i].CacheControl)
		}
		a.messages = append(a.messages, m.abi()...)
	}
	if n := len(a.prompt.marks); n > 0 && r.CacheControl != nil {
		a.prompt.marks[n-1].ttl = r.CacheControl.lifetime()
	}
	return a
}

func (b *anBlock) render(p *prompt) {
	p.add(b.Type, b.Text, b.ID, b.Name, b.Thinking, b.ToolUseID, b.Title, fmt.Sprint(b.IsError))
	p.raw(b.Input)
	if b.Source.Type == "text" {
		p.add(b.Source.Data)
	} else if b.Source.Type != "" {
		p.media(b.Source.Data + b.Source.URL)
	}
	for i := range b.Content {
		b.Content[i].render(p)
	}
}

// abi returns a message in the project's terms: results are messages of their own.
func (m *anMessage) abi() (out []abi.Message) {
	rest := abi.Message{Role: abi.Role(m.Role)}
	for i := range m.Content {
		switch b := &m.Content[i]; b.Type {
		case "tool_result":
			result := abi.Message{Role: abi.RoleTool, ToolCallID: b.ToolUseID}
			if b.IsError {
				result.Metadata = object{"is_error": true}
			}
			for j := range b.Content {
				result.Content = append(result.Content, b.Content[j].abi())
			}
			out = append(out, result)
		case "tool_use":
			call := abi.ToolCall{ID: b.ID, Name: b.Name}
			_ = json.Unmarshal(b.Input, &call.Arguments)
			rest.ToolCalls = append(rest.ToolCalls, call)
		default:
			rest.Content = append(rest.Content, b.abi())
		}
	}
	if len(rest.Content)+len(rest.ToolCalls) > 0 || len(out) == 0 {
		out = append(out, rest)
	}
	return out
}

func (b *anBlock) abi() abi.ContentBlock {
	switch b.Type {
	case "thinking", "redacted_thinking":
		return abi.ContentBlock{Type: abi.BlockThinking, Text: b.Thinking, Signature: b.Signature + b.Data}
	case "image", "document":
		return abi.ContentBlock{Type: abi.BlockType(b.Type), MediaType: b.Source.MediaType, Data: b.Source.Data, URL: b.Source.URL, Title: b.Title}
	default:
		return abi.Text(b.Text)
	}
}

func (r *anRequest) checkLimits(spec ModelSpec, counts bool) string {
	// Adaptive thinking alone means Claude 4.7 or later here.
	newer := spec.Thinking == ThinkingAdaptive
	switch {
	case newer && len(r.Messages) > 0 && r.Messages[len(r.Messages)-1].Role == "assistant":
		return "This model does not support assistant message prefill. The conversation must end with a user message."
	case counts:
		return ""
	case newer && (r.Temperature != nil && *r.Temperature != 1 || r.TopP != nil && *r.TopP != 1 || r.TopK != nil):
		return "`temperature`, `top_p` and `top_k` are not supported on this model."
	case r.MaxTokens < 0:
		return "max_tokens: Input should be greater than or equal to 0"
	case r.MaxTokens > spec.MaxOutput:
		return fmt.Sprintf("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", r.MaxTokens, spec.MaxOutput, r.Model)
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 1):
		return "temperature: range: 0..1"
	case r.TopP != nil && (*r.TopP < 0 || *r.TopP > 1):
		return "top_p: range: 0..1"
	case r.Temperature != nil && r.TopP != nil && strings.HasPrefix(r.Model, "claude-") && strings.Contains(r.Model, "-4-"):
		return "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
	}
	return ""
}

func (r *anRequest) checkTools() string {
	pattern := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	key := regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	names := map[string]bool{}
	for i, t := range r.Tools {
		where := fmt.Sprintf("tools.%d.custom.", i)
		if !pattern.MatchString(t.Name) {
			return where + "name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
		}
		if names[t.Name] {
			return "tools: Tool names must be unique."
		}
		names[t.Name] = true
		var schema struct {
			Type                any
			OneOf, AnyOf, AllOf any
			Properties          map[string]any
		}
		_ = json.Unmarshal(t.InputSchema, &schema)
		switch {
		case schema.Type == nil:
			return where + "input_schema.type: Field required"
		case schema.Type != "object":
			return where + "input_schema.type: Input should be 'object'"
		case schema.OneOf != nil || schema.AnyOf != nil || schema.AllOf != nil:
			return where + "input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
		}
		for name := range schema.Properties {
			if !key.MatchString(name) {
				return where + "input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
			}
		}
	}
	var choice struct{ Type, Name string }
	_ = json.Unmarshal(r.ToolChoice, &choice)
	switch {
	case choice.Type == "tool" && !names[choice.Name]:
		return fmt.Sprintf("Tool '%s' not found in provided tools", choice.Name)
	case (choice.Type == "any" || choice.Type == "auto") && len(names) == 0:
		return "tool_choice: may only be specified while providing tools"
	case (choice.Type == "any" || choice.Type == "tool") && r.thinking():
		return "Thinking may not be enabled when tool_choice forces tool use."
	}
	return ""
}

func (r *anRequest) checkCache() string {
	n, short := 0, false
	message := ""
	see := func(c *cacheControl) {
		if c == nil {
			return
		}
		n++
		if c.TTL == "1h" && short {
			message = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
		}
		short = short || c.TTL != "1h"
	}
	for i := range r.Tools {
		see(r.Tools[i].CacheControl)
	}
	all := [][]anBlock{r.System}
	for _, m := range r.Messages {
		all = append(all, m.Content)
	}
	for _, b := range slices.Concat(all...) {
		for i := range b.Content {
			see(b.Content[i].CacheControl)
		}
		see(b.CacheControl)
	}
	see(r.CacheControl)
	if n > 4 {
		return fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return message
}
