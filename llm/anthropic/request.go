package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

const (
	// summaryID begins the id of a compaction's summary.
	summaryID = "summary/"
	// opening is the user message before a leading assistant message, goOn the one after a trailing one.
	opening = "(The beginning of the conversation is left out.)"
	goOn    = "Continue."
)

// request is an llm.Request in the API's form.
type request struct {
	params sdk.MessageNewParams
	// names maps tool names as sent to the tools' own.
	names map[string]string
	// ids maps a call's id to the latest one sent for it; used holds all that were sent.
	ids  map[string]string
	used map[string]bool
	// thoughts is true if the messages have thinking blocks, bound if the API shall drop those that do not fit.
	thoughts, bound bool
}

// turn is a run of messages of the same role. The API requires tool results first. tail is from trailing system messages.
type turn struct {
	role                  sdk.MessageParamRole
	results, blocks, tail []sdk.ContentBlockParamUnion
}

// request converts r, with or without its thinking blocks.
func (m *Model) request(r *llm.Request, thinking bool) (*request, error) {
	if r.Model == "" {
		return nil, invalid(r, "Request.Model is missing")
	}
	q := &request{
		params: sdk.MessageNewParams{Model: r.Model, MaxTokens: m.cfg.MaxTokens},
		names:  make(map[string]string, len(r.Tools)), ids: make(map[string]string), used: make(map[string]bool),
	}
	if err := q.tools(r.Tools); err != nil {
		return nil, invalid(r, err.Error())
	}
	head := systemPrompt(r.Messages)
	for i := range r.Messages[:head] {
		blocks, err := texts(i, &r.Messages[i])
		if err != nil {
			return nil, invalid(r, err.Error())
		}
		q.params.System = append(q.params.System, blocks...)
	}
	turns, summary, err := q.turns(r.Messages, head, thinking)
	if err != nil {
		return nil, invalid(r, err.Error())
	}
	if len(turns) == 0 {
		return nil, invalid(r, "there is no message behind the system prompt")
	}
	if !m.cfg.NoCache {
		q.breakpoints(turns, summary)
	}
	for i := range turns {
		t := &turns[i]
		q.params.Messages = append(q.params.Messages, sdk.MessageParam{Role: t.role, Content: slices.Concat(t.results, t.blocks, t.tail)})
	}
	if err := q.override(r.Override, thinking); err != nil {
		return nil, invalid(r, err.Error())
	}
	return q, nil
}

// systemPrompt counts the messages of the system prompt: leading system messages, up to a summary.
func systemPrompt(messages []abi.Message) int {
	for i := range messages {
		if messages[i].Role != abi.RoleSystem || strings.HasPrefix(messages[i].ID, summaryID) {
			return i
		}
	}
	return len(messages)
}

// turns converts messages[head:] into turns; the first and the last are the user's. Summary is the block of a
// compaction's summary, or nil.
func (q *request) turns(messages []abi.Message, head int, thinking bool) (turns []turn, summary *sdk.ContentBlockParamUnion, err error) {
	tail := len(messages)
	for tail > head && messages[tail-1].Role == abi.RoleSystem && !strings.HasPrefix(messages[tail-1].ID, summaryID) {
		tail--
	}
	last := func(role sdk.MessageParamRole) *turn {
		if n := len(turns); n == 0 || turns[n-1].role != role {
			turns = append(turns, turn{role: role})
		}
		return &turns[len(turns)-1]
	}
	for i := head; i < len(messages); i++ {
		msg := &messages[i]
		role, blocks, err := q.content(i, msg, thinking)
		if err != nil {
			return nil, nil, err
		}
		if len(blocks) == 0 {
			continue
		}
		if len(turns) == 0 && role == sdk.MessageParamRoleAssistant {
			last(sdk.MessageParamRoleUser).tail = []sdk.ContentBlockParamUnion{sdk.NewTextBlock(opening)}
		}
		t := last(role)
		switch {
		case msg.Role == abi.RoleTool:
			t.results = append(t.results, blocks...)
		case i >= tail:
			t.tail = append(t.tail, blocks...)
		default:
			t.blocks = append(t.blocks, blocks...)
		}
		if strings.HasPrefix(msg.ID, summaryID) {
			summary = &blocks[len(blocks)-1]
		}
	}
	if n := len(turns); n > 0 && turns[n-1].role == sdk.MessageParamRoleAssistant {
		last(sdk.MessageParamRoleUser).tail = []sdk.ContentBlockParamUnion{sdk.NewTextBlock(goOn)}
	}
	return turns, summary, nil
}

// tools adds the tool definitions.
func (q *request) tools(tools []abi.Tool) error {
	for i := range tools {
		t := &tools[i]
		schema, err := objectSchema(t.Parameters)
		if err != nil {
			return fmt.Errorf("tool %.80q: its parameters are not a JSON Schema of an object: %w", t.Name, err)
		}
		tool := sdk.ToolParam{Name: fit(t.Name), InputSchema: param.Override[sdk.ToolInputSchemaParam](schema)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		q.names[tool.Name] = t.Name
		q.params.Tools = append(q.params.Tools, sdk.ToolUnionParam{OfTool: &tool})
	}
	return nil
}

// objectSchema returns a JSON Schema that the API accepts: of type object, without alternatives at the top level. The
// agent validates arguments against the tool's own schema.
func objectSchema(parameters any) (json.RawMessage, error) {
	raw, err := json.Marshal(parameters)
	if err != nil {
		return nil, err
	}
	schema := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, err
	}
	if len(schema) == 0 {
		schema = map[string]json.RawMessage{"properties": json.RawMessage("{}")}
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		delete(schema, key)
	}
	schema["type"] = json.RawMessage(`"object"`)
	return json.Marshal(schema)
}

// counted returns the parameters that the count endpoint accepts.
func (q *request) counted() sdk.MessageCountTokensParams {
	p := &q.params
	out := sdk.MessageCountTokensParams{
		Model: p.Model, Messages: p.Messages, Thinking: p.Thinking, OutputConfig: p.OutputConfig,
		System: sdk.MessageCountTokensParamsSystemUnion{OfTextBlockArray: p.System},
	}
	for _, t := range p.Tools {
		out.Tools = append(out.Tools, sdk.MessageCountTokensToolUnionParam{OfTool: t.OfTool})
	}
	return out
}

// invalid returns the error of a request that cannot be sent.
func invalid(r *llm.Request, why string) error {
	return &llm.Error{Kind: llm.KindInvalidRequest, Model: r.Model, Message: "anthropic: " + why}
}
