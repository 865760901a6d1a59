package providertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

func responses() *protocol {
	return &protocol{
		api: OpenAIResponses, idHeader: "X-Request-Id",
		authorize: oaAuthorize, parse: (*Server).rsParse,
		overflow: func(a *ask) *failure {
			if a.prompt.tokens() <= a.spec.Window {
				return nil
			}
			return wrong("context_length_exceeded", "input", "Your input exceeds the context window of this model. Please adjust your input and try again.")
		},
		models: oaModels, count: func(n int64) any { return object{"object": "response.input_tokens", "input_tokens": n} },
		whole: (*Server).rsWhole, events: (*Server).rsEvents, failed: oaFailed,
		errorEvents: func(f *failure) []event {
			e := oaError(f)
			return []event{
				{name: "error", data: object{"type": "error", "sequence_number": 0, "code": e["code"], "message": e["message"], "param": nil}},
				{name: "response.failed", data: object{"type": "response.failed", "sequence_number": 1, "response": object{
					"id": newID("resp_"), "object": "response", "status": "failed", "output": []any{}, "error": object{"code": e["code"], "message": e["message"]},
				}}},
			}
		},
	}
}

// additionalTools is the type of an item that offers tools, as Codex sends its own.
const additionalTools = "additional_tools"

func rsShape(counts bool) fields {
	text := fields{"text!": is("string"), "prompt_cache_breakpoint": nil}
	image := fields{"image_url": is("string"), "detail": one("low", "high", "auto", "original"), "prompt_cache_breakpoint": nil}
	file := fields{"file_data": is("string"), "file_url": is("string"), "filename": is("string"), "prompt_cache_breakpoint": nil}
	input := map[string]fields{"input_text": text, "input_image": image, "input_file": file}
	parts := maps.Clone(input)
	parts["output_text"] = fields{"text!": is("string"), "annotations": nil, "logprobs": nil}
	parts["refusal"] = fields{"refusal!": is("string")}
	status := one("in_progress", "completed", "incomplete")
	items := map[string]fields{
		"message": {"role!": one("user", "assistant", "system", "developer"), "content!": textOr(list(variants(parts, ""))), "id": is("string"), "status": status, "phase": is("string")},
		"function_call": {
			"name!": is("string"), "arguments!": is("string"), "call_id!": is("string"), "id": is("string"), "status": status, "caller": nil, "namespace": nil, "async": nil,
		},
		"function_call_output": {"call_id!": is("string"), "output!": textOr(list(variants(input, ""))), "id": is("string"), "status": status},
		"reasoning": {
			"id!": is("string"), "summary!": list(variants(map[string]fields{"summary_text": {"text!": is("string")}}, "")), "encrypted_content": is("string"), "content": nil, "status": status,
		},
	}
	function := map[string]fields{"function": {
		"name!": is("string"), "description": is("string"), "parameters!": is("object"), "strict": is("boolean"), "defer_loading": nil, "async": nil, "allowed_callers": nil, "output_schema": nil,
	}}
	tools := maps.Clone(function)
	tools["namespace"] = fields{"name!": is("string"), "description": is("string"), "tools!": list(variants(function, ""))}
	items[additionalTools] = fields{"tools!": list(variants(tools, "")), "role": one("developer"), "id": is("string")}
	f := fields{
		"model!": is("string"), "input!": textOr(list(variants(items, "message"))), "instructions": is("string"),
		"tools":       list(variants(tools, "")),
		"tool_choice": nil, "parallel_tool_calls": is("boolean"), "truncation": one("auto", "disabled"), "text": nil, "previous_response_id": is("string"),
		"reasoning": obj(fields{
			"effort": one("none", "minimal", "low", "medium", "high", "xhigh"), "summary": one("auto", "concise", "detailed"), "generate_summary": nil, "context": nil, "mode": nil,
		}),
	}
	if counts {
		return f
	}
	maps.Copy(f, storedShape())
	maps.Copy(f, fields{
		"stream": is("boolean"), "max_output_tokens": is("integer"), "temperature": is("number"), "top_p": is("number"),
		"include": list(one("reasoning.encrypted_content", "message.output_text.logprobs", "message.input_image.image_url")), "metadata": is("object"),
		"user": is("string"), "service_tier": is("string"), "prompt_cache_key": is("string"), "prompt_cache_retention": is("string"), "prompt_cache_options": nil, "safety_identifier": is("string"), "client_metadata": is("object"),
		"stream_options": obj(fields{"include_obfuscation": is("boolean")}), "top_logprobs": is("integer"), "max_tool_calls": is("integer"), "moderation": nil,
	})
	return f
}

type rsRequest struct {
	sampling
	Model, Instructions string
	Input               rsItems
	Stream              bool
	Include             []string
	MaxOutput           *int64 `json:"max_output_tokens"`
	Previous            string `json:"previous_response_id"`
	Conversation        conversationRef
	Store               *bool
	Background          bool
	Tools               []oaTool
	Reasoning           struct{ Effort, Summary string }
}

type rsItem struct {
	Type, Role, ID, Name, Arguments string
	CallID                          string  `json:"call_id"`
	Encrypted                       *string `json:"encrypted_content"`
	Content, Output                 oaParts
	Tools                           []oaTool
	stored                          bool // the server has kept it
	Summary                         []struct{ Text string }
}

type rsItems []rsItem

// UnmarshalJSON reads items, or a string in place of a message of the user.
func (r *rsItems) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*r = rsItems{{Type: "message", Role: "user"}}
		return json.Unmarshal(data, &(*r)[0].Content)
	}
	if err := json.Unmarshal(data, (*[]rsItem)(r)); err != nil {
		return err
	}
	for i := range *r {
		if (*r)[i].Type == "" {
			(*r)[i].Type = "message"
		}
	}
	return nil
}

func (s *Server) rsParse(body []byte, counts bool) (*ask, *failure) {
	if p := conform(body, rsShape(counts)); p != nil {
		return nil, oaProblem(p)
	}
	var r rsRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, oaProblem(&problem{kind: "syntax"})
	}
	for i := range r.Input {
		r.Tools = append(r.Tools, r.Input[i].Tools...)
	}
	r.Tools = flattened(r.Tools)
	spec, ok := s.cfg.Models[r.Model]
	if !ok {
		return nil, wrong("model_not_found", "model", "The requested model '%s' does not exist.", r.Model)
	}
	for _, check := range []func() *failure{
		func() *failure { return r.checkLimits(spec) }, func() *failure { return checkTools(r.Tools, "") }, r.checkItems,
		func() (f *failure) {
			var before rsItems
			before, f = r.history(s)
			r.Input = append(slices.Clip(before), r.Input...)
			return f
		}, r.checkCalls, func() *failure { return r.checkReasoning(s) },
	} {
		if f := check(); f != nil {
			return nil, f
		}
	}
	return r.ask(spec), nil
}

func (r *rsRequest) ask(spec ModelSpec) *ask {
	a := &ask{
		id: newID("resp_"), model: r.Model, spec: spec, stream: r.Stream, limit: spec.MaxOutput, system: r.Instructions,
		shows: spec.Thinking != ThinkingNone, keeps: r.Store == nil || *r.Store, background: r.Background, previous: r.Previous,
		conversation: string(r.Conversation), items: r.Input, encrypted: slices.Contains(r.Include, "reasoning.encrypted_content"), summary: r.Reasoning.Summary != "",
	}
	if r.Reasoning.Effort == "none" {
		a.shows = false
	}
	if r.MaxOutput != nil {
		a.limit = *r.MaxOutput
	}
	a.addTools(r.Tools)
	a.prompt.add(r.Instructions)
	for i := range r.Input {
		it := &r.Input[i]
		a.prompt.add(it.Type, it.Role, it.Name, it.Arguments, it.CallID)
		if it.Encrypted != nil {
			a.prompt.add(*it.Encrypted)
		}
		it.Content.render(&a.prompt)
		it.Output.render(&a.prompt)
		r.message(a, it)
	}
	return a
}

// message adds an item to the messages in the project's terms: the items of one answer are
// one message.
func (r *rsRequest) message(a *ask, it *rsItem) {
	switch {
	case it.Type == "function_call_output":
		a.messages = append(a.messages, abi.Message{Role: abi.RoleTool, ToolCallID: it.CallID, Content: it.Output.abi()})
		return
	case it.Type == "message" && it.Role != "assistant":
		role := abi.Role(it.Role)
		if role == "developer" {
			role = abi.RoleSystem
		}
		a.messages = append(a.messages, abi.Message{Role: role, Content: it.Content.abi()})
		return
	}
	if n := len(a.messages); n == 0 || a.messages[n-1].Role != abi.RoleAssistant {
		a.messages = append(a.messages, abi.Message{Role: abi.RoleAssistant})
	}
	m := &a.messages[len(a.messages)-1]
	switch it.Type {
	case "function_call":
		m.ToolCalls = append(m.ToolCalls, callOf(it.CallID, it.Name, it.Arguments))
	case "reasoning":
		b := abi.ContentBlock{Type: abi.BlockThinking}
		for _, s := range it.Summary {
			b.Text += s.Text
		}
		if it.Encrypted != nil {
			b.Signature = *it.Encrypted
		}
		m.Content = append(m.Content, b)
	default:
		m.Content = append(m.Content, it.Content.abi()...)
	}
}

func (r *rsRequest) checkLimits(spec ModelSpec) *failure {
	if r.MaxOutput != nil {
		switch n := *r.MaxOutput; {
		case n < 16:
			return wrong("integer_below_min_value", "max_output_tokens", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", n)
		case n > spec.MaxOutput:
			return wrong("integer_above_max_value", "max_output_tokens", "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= %d, but got %d instead.", spec.MaxOutput, n)
		}
	}
	if spec.Thinking == ThinkingNone {
		switch {
		case r.Reasoning.Effort != "":
			return wrong("unsupported_parameter", "reasoning.effort", "Unsupported parameter: 'reasoning.effort' is not supported with this model.")
		case r.Reasoning.Summary != "":
			return wrong("unsupported_parameter", "reasoning.summary", "Unsupported parameter: 'reasoning.summary' is not supported with this model.")
		case slices.Contains(r.Include, "reasoning.encrypted_content"):
			return wrong("", "include", "Encrypted content is not supported with this model.")
		}
	}
	return r.sampling.check(spec, "Unsupported parameter: '%s' is not supported with this model.")
}

func (r *rsRequest) checkItems() *failure {
	if len(r.Input) == 0 {
		return wrong("missing_required_parameter", "input", "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.")
	}
	ids := map[string]bool{}
	for i := range r.Input {
		it := &r.Input[i]
		where := fmt.Sprintf("input[%d]", i)
		prefix := map[string]string{"message": "msg", "function_call": "fc", "reasoning": "rs", "function_call_output": "fc", additionalTools: "at"}[it.Type]
		switch {
		case it.ID != "" && !strings.HasPrefix(it.ID, prefix):
			return wrong("invalid_value", where+".id", "Invalid '%s.id': '%s'. Expected an ID that begins with '%s'.", where, it.ID, prefix)
		case it.ID != "" && ids[it.ID]:
			return wrong("", "input", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", it.ID)
		case len(it.CallID) > 64:
			return tooLong(where+".call_id", it.CallID, 64)
		}
		ids[it.ID] = true
		if it.Type == "function_call" {
			if f := checkName(where+".name", it.Name, 128); f != nil {
				return f
			}
		}
		if f := it.checkParts(where); f != nil {
			return f
		}
	}
	return nil
}

func (it *rsItem) checkParts(where string) *failure {
	if f := it.Output.check(where + ".output"); f != nil {
		return f
	}
	for j, p := range it.Content {
		output := p.Type == "output_text" || p.Type == "refusal"
		want := "'input_text', 'input_image', 'input_file'"
		if it.Role == "assistant" {
			want = "'output_text' and 'refusal'"
		}
		if p.Type != "" && output != (it.Role == "assistant") {
			return wrong("invalid_value", fmt.Sprintf("%s.content[%d]", where, j), "Invalid value: '%s'. Supported values are: %s.", p.Type, want)
		}
	}
	return it.Content.check(where + ".content")
}

// checkCalls holds that calls have outputs and outputs have calls.
func (r *rsRequest) checkCalls() *failure {
	open := map[string]bool{}
	for i := range r.Input {
		switch it := &r.Input[i]; it.Type {
		case "function_call":
			if open[it.CallID] {
				return wrong("", "input", "Duplicate function call found with call_id %s.", it.CallID)
			}
			open[it.CallID] = true
		case "function_call_output":
			if !open[it.CallID] {
				return wrong("", "input", "No tool call found for function call output with call_id %s.", it.CallID)
			}
			delete(open, it.CallID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(open)) {
		return wrong("", "input", "No tool output found for function call %s.", id)
	}
	return nil
}

// checkReasoning holds that reasoning items are the server's and are where they were.
func (r *rsRequest) checkReasoning(s *Server) *failure {
	before := "" // the reasoning item of the answer that the item is part of
	for i := range r.Input {
		it := &r.Input[i]
		if it.Type != "reasoning" {
			if needs := s.paired(it.ID); it.ID != "" && needs != "" && needs != before {
				return wrong("", "input", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", it.ID, it.Type, needs)
			}
			if it.Type == "function_call_output" || it.Role == "user" {
				before = ""
			}
			continue
		}
		before = it.ID
		if it.stored {
			continue
		}
		if it.Encrypted == nil || *it.Encrypted == "" {
			return &failure{status: http.StatusNotFound, param: "input", message: fmt.Sprintf(
				"Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", it.ID)}
		}
		if text, ok := s.signed(*it.Encrypted); !ok || !strings.HasPrefix(text, it.ID+"\n") {
			return wrong("invalid_encrypted_content", "", "The encrypted content %.4s... could not be verified. Reason: Encrypted content could not be decrypted or parsed.", *it.Encrypted)
		}
		if i+1 == len(r.Input) || !r.Input[i+1].output() {
			return wrong("", "input", "Item '%s' of type 'reasoning' was provided without its required following item.", it.ID)
		}
	}
	return nil
}

// output reports whether a model wrote the item.
func (it *rsItem) output() bool {
	return it.Type == "reasoning" || it.Type == "function_call" || it.Type == "message" && it.Role == "assistant"
}
