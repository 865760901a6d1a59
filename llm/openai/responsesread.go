package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// responses asks over the Responses API.
func (m *Model) responses(ctx context.Context, r llm.Request, stream bool, a *answer) error {
	params, err := m.responsesParams(&r)
	if err != nil {
		return err
	}
	return m.exchange(ctx, r.Model, "responses", params, stream, a, &responsesReader{answer: a, owner: m, items: map[int]*progress{}})
}

// responsesEvent is an event of a stream.
type responsesEvent struct {
	Type         string      `json:"type"`
	Delta        string      `json:"delta"`
	OutputIndex  int         `json:"output_index"`
	SummaryIndex int         `json:"summary_index"`
	Item         *outputItem `json:"item"`
	Response     *response   `json:"response"`
}

// response is a whole answer, or its state.
type response struct {
	Object  string          `json:"object"`
	Model   string          `json:"model"`
	Status  string          `json:"status"`
	Error   json.RawMessage `json:"error"`
	Output  []outputItem    `json:"output"`
	Details struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		InputTokens  int64 `json:"input_tokens"`
		OutputTokens int64 `json:"output_tokens"`
		TotalTokens  int64 `json:"total_tokens"`
		InputDetails struct {
			Cached  int64 `json:"cached_tokens"`
			Written int64 `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

type outputItem struct {
	Type      string     `json:"type"`
	ID        string     `json:"id"`
	CallID    string     `json:"call_id"`
	Name      string     `json:"name"`
	Arguments string     `json:"arguments"`
	Content   []itemPart `json:"content"`
	Summary   []itemPart `json:"summary"`
	Encrypted string     `json:"encrypted_content"`
}

type itemPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// responsesReader reads the Responses API.
type responsesReader struct {
	*answer

	owner *Model
	// items are under way by their index.
	items map[int]*progress
}

// progress is what has come of an item.
type progress struct {
	call *call
	// some means that some of its text was streamed.
	some    bool
	refusal bool
}

func (r *responsesReader) item(index int) *progress {
	if r.items[index] == nil {
		r.items[index] = &progress{}
	}
	return r.items[index]
}

func (r *responsesReader) event(data []byte) error {
	var e responsesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	p := r.item(e.OutputIndex)
	switch e.Type {
	case "response.output_item.added":
		if e.Item != nil && e.Item.Type == "function_call" {
			p.call = r.begin(e.Item.CallID, e.Item.Name)
		}
	case "response.output_text.delta":
		p.some = true
		r.text(e.Delta)
	case "response.refusal.delta":
		p.refusal = true
		r.refusal += e.Delta
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		p.some = true
		r.reasoning(e.Delta)
	case "response.reasoning_summary_part.added":
		if p.some {
			r.reasoning("\n\n")
		}
	case "response.function_call_arguments.delta":
		if p.call != nil {
			r.arguments(p.call, e.Delta)
		}
	case "response.output_item.done":
		if e.Item != nil {
			return r.done(p, e.Item)
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		r.final = true
		if e.Response != nil {
			return r.state(e.Response, strings.TrimPrefix(e.Type, "response."))
		}
		r.over, r.reason = true, strings.TrimPrefix(e.Type, "response.")
	}
	return nil
}

func (r *responsesReader) whole(data []byte) error {
	var whole response
	if err := json.Unmarshal(data, &whole); err != nil {
		return err
	}
	if whole.Status == "" && whole.Output == nil {
		return &llm.Error{Kind: llm.KindProvider, Message: "the answer is no response of the Responses API; use Chat Completions for a server that has only that"}
	}
	for i := range whole.Output {
		if err := r.done(r.item(i), &whole.Output[i]); err != nil {
			return err
		}
	}
	return r.state(&whole, whole.Status)
}

// done takes a whole item, of which some may have been streamed.
func (r *responsesReader) done(p *progress, item *outputItem) error {
	switch item.Type {
	case "message":
		for _, part := range item.Content {
			if !p.some {
				r.text(part.Text)
			}
			if !p.refusal {
				r.refusal += part.Refusal
			}
		}
	case "reasoning":
		return r.reasoned(p, item)
	case "function_call":
		if p.call == nil {
			p.call = r.begin(item.CallID, item.Name)
		}
		if len(p.call.arguments) == 0 {
			r.arguments(p.call, item.Arguments)
		}
		r.endCall(p.call)
	}
	return nil
}

// reasoned ends a reasoning item.
func (r *responsesReader) reasoned(p *progress, item *outputItem) error {
	if !p.some {
		parts := item.Summary
		if len(parts) == 0 {
			parts = item.Content
		}
		for i, part := range parts {
			if i > 0 {
				r.reasoning("\n\n")
			}
			r.reasoning(part.Text)
		}
	}
	if item.Encrypted == "" {
		return nil // It cannot be sent back.
	}
	signature, err := reasoningItem{ID: item.ID, Encrypted: item.Encrypted, Calls: len(r.calls)}.signature()
	r.delta(llm.Delta{Type: llm.DeltaSignature, Text: signature})
	return err
}

// state takes how a response stands at its end.
func (r *responsesReader) state(s *response, status string) error {
	r.model = cmp.Or(r.model, s.Model)
	if u := s.Usage; u != nil {
		r.usage = &abi.Usage{
			PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, TotalTokens: cmp.Or(u.TotalTokens, u.InputTokens+u.OutputTokens),
			CacheReadTokens: u.InputDetails.Cached, CacheCreationTokens: u.InputDetails.Written, ThinkingTokens: u.OutputDetails.Reasoning,
		}
	}
	r.over, r.reason = true, status
	if status == "incomplete" {
		r.reason = s.Details.Reason
	}
	if status == "failed" {
		return r.owner.fail("", 0, readFault(s.Error))
	}
	return nil
}

func (r *responsesReader) end() error {
	stop := abi.StopEndTurn
	switch r.reason {
	case "max_output_tokens":
		stop = abi.StopMaxTokens
	case "content_filter":
		return &llm.Error{Kind: llm.KindContentFiltered, Message: "the provider's filter cut the answer"}
	case "cancelled":
		return &llm.Error{Kind: llm.KindProvider, Message: "the provider cancelled the response"}
	}
	if r.refusal != "" {
		return &llm.Error{Kind: llm.KindContentFiltered, Message: r.owner.line(r.refusal)}
	}
	r.finish(stop)
	return nil
}
