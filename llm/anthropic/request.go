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
	// opening is what the user says when the conversation begins with an answer, goOn when it ends with one.
	opening = "(The beginning of the conversation is left out.)"
	goOn    = "Continue."
)

// request is a request in the API's form.
type request struct {
	params sdk.MessageNewParams
	// names are those of the tools, by the names that the API knows them under.
	names map[string]string
	// ids are the latest ones of calls, by what they are called here; used are all.
	ids  map[string]string
	used map[string]bool
	// thoughts says that there is thinking among the messages, bound that thinking is bound to its conversation.
	thoughts, bound bool
}

// turn is consecutive messages of one role. The API wants the results of calls first. Tail comes from system messages at
// the very end.
type turn struct {
	role                  sdk.MessageParamRole
	results, blocks, tail []sdk.ContentBlockParamUnion
}

// request turns r into the API's form, with the thinking in it or without.
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

// systemPrompt is how many messages are the system prompt: those of the system in front, up to a summary.
func systemPrompt(messages []abi.Message) int {
	for i := range messages {
		if messages[i].Role != abi.RoleSystem || strings.HasPrefix(messages[i].ID, summaryID) {
			return i
		}
	}
	return len(messages)
}

// turns turns the messages from number head on into turns that begin and end with one of the user. Summary is the block
// of a compaction's summary, if there is one.
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

// tools describes the tools to the API.
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

// objectSchema is a JSON Schema as the API takes it: of an object, without alternatives at its top. The agent checks
// arguments against the tool's own.
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

// counted is the part of a request whose tokens are counted.
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

// invalid is a request that cannot be sent.
func invalid(r *llm.Request, why string) error {
	return &llm.Error{Kind: llm.KindInvalidRequest, Model: r.Model, Message: "anthropic: " + why}
}
