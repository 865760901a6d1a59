package openai

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// chat asks over Chat Completions.
func (m *Model) chat(ctx context.Context, r llm.Request, stream bool, a *answer) error {
	params, err := m.chatParams(&r, stream)
	if err != nil {
		return err
	}
	return m.exchange(ctx, r.Model, "chat/completions", params, stream, a, &chatReader{answer: a, owner: m})
}

// chunk is a part of a stream, or a whole completion. It is read by hand since servers
// differ in what they leave out, and in types.
type chunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Index        int        `json:"index"`
		Delta        *chatDelta `json:"delta"`
		Message      *chatDelta `json:"message"`
		FinishReason string     `json:"finish_reason"`
	} `json:"choices"`
	Usage *chatUsage `json:"usage"`
}

type chatDelta struct {
	Content          json.RawMessage `json:"content"`
	ReasoningContent string          `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	Refusal          string          `json:"refusal"`
	ToolCalls        []chatCall      `json:"tool_calls"`
	FunctionCall     *chatFunction   `json:"function_call"`
}

type chatCall struct {
	Index    *int         `json:"index"`
	ID       string       `json:"id"`
	Function chatFunction `json:"function"`
	// Extra is a vendor's own, see extraSignature.
	Extra json.RawMessage `json:"extra_content"`
}

type chatFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type chatUsage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
	PromptDetails    struct {
		Cached  int64 `json:"cached_tokens"`
		Written int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// chatReader reads Chat Completions.
type chatReader struct {
	*answer

	owner *Model
	// separate means that each call comes whole.
	separate bool
	// open are the calls under way by the server's index and id.
	open []openCall
}

type openCall struct {
	index int // -1 if the server gives none
	id    string
	call  *call
}

func (c *chatReader) event(data []byte) error {
	var part chunk
	if err := json.Unmarshal(data, &part); err != nil {
		return err
	}
	c.model = cmp.Or(c.model, part.Model)
	if u := part.Usage; u != nil {
		c.usage = &abi.Usage{
			PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens, TotalTokens: cmp.Or(u.TotalTokens, u.PromptTokens+u.CompletionTokens),
			CacheReadTokens: u.PromptDetails.Cached, CacheCreationTokens: u.PromptDetails.Written, ThinkingTokens: u.CompletionDetails.Reasoning,
		}
	}
	for _, choice := range part.Choices {
		if choice.Index != 0 {
			continue // One is asked for.
		}
		if d := cmp.Or(choice.Delta, choice.Message); d != nil {
			c.delta(d)
		}
		if choice.FinishReason != "" {
			c.reason, c.over = choice.FinishReason, true
		}
	}
	return nil
}

func (c *chatReader) whole(data []byte) error {
	c.separate = true
	if err := c.event(data); err != nil {
		return err
	}
	if !c.over && c.usage == nil && len(c.calls) == 0 && c.model == "" {
		return &llm.Error{Kind: llm.KindProvider, Message: "the answer is no chat completion; is this the URL of a compatible server?"}
	}
	c.over = true
	return nil
}

func (c *chatReader) delta(d *chatDelta) {
	var reasoning string
	_ = json.Unmarshal(d.Reasoning, &reasoning) // Some servers have an object there.
	c.reasoning(cmp.Or(d.ReasoningContent, reasoning))
	c.content(d.Content)
	c.refusal += d.Refusal
	for _, t := range d.ToolCalls {
		c.toolCall(t)
	}
	if f := d.FunctionCall; f != nil { // of old servers, one at most
		first := 0
		c.toolCall(chatCall{Index: &first, Function: *f})
	}
}

// content is a text, or a list of parts as some servers write it.
func (c *chatReader) content(data json.RawMessage) {
	var text string
	if json.Unmarshal(data, &text) == nil {
		c.text(text)
		return
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking []struct {
			Text string `json:"text"`
		} `json:"thinking"`
	}
	_ = json.Unmarshal(data, &parts) // Without parts there is nothing to read.
	for _, p := range parts {
		for _, t := range p.Thinking {
			c.reasoning(t.Text)
		}
		c.text(p.Text)
	}
}

// toolCall begins a call or continues one.
func (c *chatReader) toolCall(t chatCall) {
	call := c.find(&t)
	if call == nil {
		call = c.begin(t.ID, t.Function.Name)
		index := -1
		if t.Index != nil {
			index = *t.Index
		}
		c.open = append(c.open, openCall{index: index, id: t.ID, call: call})
	} else if !call.started {
		call.name = cmp.Or(call.name, t.Function.Name)
	}
	var text string
	if json.Unmarshal(t.Function.Arguments, &text) != nil { // an object, as some servers write it
		text = string(t.Function.Arguments)
	}
	c.arguments(call, text)
	if len(t.Extra) > 0 && string(t.Extra) != "null" {
		call.extra = extra{call.id, t.Extra}.signature()
	}
}

// find returns the call under way that a part belongs to. Some servers give no index, or
// the same one to all calls; some repeat the id, and some give it only once, or never.
func (c *chatReader) find(t *chatCall) *call {
	if c.separate {
		return nil
	}
	for i := len(c.open) - 1; i >= 0; i-- {
		o := &c.open[i]
		switch {
		case t.Index != nil && *t.Index != o.index:
		case t.ID != "" && t.ID == o.id:
			return o.call
		case t.ID != "" && (t.Index == nil || o.id != ""):
		case t.ID == "" && t.Function.Name != "" && (t.Index == nil || complete(o.call.arguments)):
			return nil
		default:
			return o.call
		}
	}
	return nil
}

func (c *chatReader) end() error {
	stop := abi.StopEndTurn
	switch c.reason {
	case "length", "max_tokens":
		stop = abi.StopMaxTokens
	case "tool_calls", "function_call":
		stop = abi.StopToolUse
	case "content_filter":
		return &llm.Error{Kind: llm.KindContentFiltered, Message: "the provider's filter cut the answer"}
	case "error":
		return &llm.Error{Kind: llm.KindProvider, Message: "the provider gave up the answer"}
	}
	if c.refusal != "" {
		return &llm.Error{Kind: llm.KindContentFiltered, Message: c.owner.line(c.refusal)}
	}
	c.finish(stop)
	return nil
}
