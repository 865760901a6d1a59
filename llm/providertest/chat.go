package providertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

func chat() *protocol {
	return &protocol{
		api: OpenAIChat, idHeader: "X-Request-Id",
		authorize: oaAuthorize, parse: (*Server).ccParse,
		overflow: func(a *ask) *failure {
			if a.prompt.tokens() <= a.spec.Window {
				return nil
			}
			return wrong("context_length_exceeded", "messages", "This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. "+
				"Please reduce the length of the messages.", a.spec.Window, a.prompt.tokens())
		},
		models: oaModels, whole: (*Server).ccWhole, events: (*Server).ccEvents, failed: oaFailed,
		errorEvents: func(f *failure) []event { return []event{{data: oaFailed(f, "")}} },
	}
}

func ccShape() fields {
	text := fields{"text!": is("string"), "prompt_cache_breakpoint": nil}
	parts := textOr(list(variants(map[string]fields{
		"text": text, "refusal": {"refusal!": is("string")},
		"image_url": {"image_url!": obj(fields{"url!": is("string"), "detail": one("low", "high", "auto")}), "prompt_cache_breakpoint": nil},
		"file":      {"file!": obj(fields{"file_data": is("string"), "filename": is("string")}), "prompt_cache_breakpoint": nil},
	}, "")))
	function := obj(fields{"name!": is("string"), "arguments!": is("string")})
	call := variants(map[string]fields{"function": {"id!": is("string"), "function!": function}}, "")
	message := fields{
		"role!": one("system", "developer", "user", "assistant", "tool", "function"), "content": parts, "name": is("string"), "refusal": is("string"),
		"tool_calls": list(call), "tool_call_id": is("string"), "function_call": function, "audio": nil,
	}
	definition := fields{"name!": is("string"), "description": is("string"), "parameters": is("object"), "strict": is("boolean")}
	return fields{
		"model!": is("string"), "messages!": list(obj(message)), "stream": is("boolean"),
		"stream_options": obj(fields{"include_usage": is("boolean"), "include_obfuscation": is("boolean")}),
		"max_tokens":     is("integer"), "max_completion_tokens": is("integer"), "temperature": is("number"), "top_p": is("number"),
		"tools":       list(variants(map[string]fields{"function": {"function!": obj(definition)}}, "")),
		"tool_choice": nil, "parallel_tool_calls": is("boolean"), "functions": list(obj(definition)), "function_call": nil,
		"reasoning_effort": one("none", "minimal", "low", "medium", "high", "xhigh"), "verbosity": one("low", "medium", "high"),
		"response_format": nil, "stop": nil, "n": is("integer"), "seed": is("integer"), "logprobs": is("boolean"), "top_logprobs": is("integer"), "logit_bias": is("object"),
		"frequency_penalty": is("number"), "presence_penalty": is("number"), "user": is("string"), "metadata": is("object"), "store": is("boolean"),
		"service_tier": is("string"), "prompt_cache_key": is("string"), "prompt_cache_retention": is("string"), "prompt_cache_options": nil, "safety_identifier": is("string"),
		"modalities": nil, "moderation": nil, "prediction": nil,
	}
}

type ccRequest struct {
	sampling
	Model         string
	Messages      []ccMessage
	Stream        bool
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens  *int64 `json:"max_tokens"`
	MaxOutput  *int64 `json:"max_completion_tokens"`
	Tools      []struct{ Function oaTool }
	ToolChoice json.RawMessage `json:"tool_choice"`
	Parallel   *bool           `json:"parallel_tool_calls"`
	Effort     string          `json:"reasoning_effort"`
}

type ccMessage struct {
	Role    string
	Content oaParts
	Refusal string
	Calls   *[]struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
	CallID       string          `json:"tool_call_id"`
	FunctionCall json.RawMessage `json:"function_call"`
}

func (s *Server) ccParse(body []byte, _ bool) (*ask, *failure) {
	if p := conform(body, ccShape()); p != nil {
		return nil, oaProblem(p)
	}
	var r ccRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, oaProblem(&problem{kind: "syntax"})
	}
	spec, ok := s.cfg.Models[r.Model]
	if !ok {
		return nil, &failure{status: http.StatusNotFound, code: "model_not_found", message: "The model `" + r.Model + "` does not exist or you do not have access to it."}
	}
	tools := make([]oaTool, len(r.Tools))
	for i := range r.Tools {
		tools[i] = r.Tools[i].Function
	}
	for _, check := range []func() *failure{
		func() *failure { return r.checkLimits(spec) }, func() *failure { return checkTools(tools, "function.") }, r.checkMessages, r.checkCalls,
	} {
		if f := check(); f != nil {
			return nil, f
		}
	}
	return r.ask(spec, tools), nil
}

func (r *ccRequest) ask(spec ModelSpec, tools []oaTool) *ask {
	a := &ask{id: newID("chatcmpl-"), model: r.Model, spec: spec, stream: r.Stream, limit: spec.MaxOutput, shows: spec.Thinking != ThinkingNone && r.Effort != "none"}
	for _, limit := range []*int64{r.MaxTokens, r.MaxOutput} {
		if limit != nil {
			a.limit = *limit
		}
	}
	a.usage = r.StreamOptions != nil && r.StreamOptions.IncludeUsage
	a.addTools(tools)
	for i := range r.Messages {
		m := &r.Messages[i]
		out := abi.Message{Role: abi.Role(m.Role), ToolCallID: m.CallID, Content: m.Content.abi()}
		if m.Role == "developer" {
			out.Role = abi.RoleSystem
		}
		a.prompt.add(m.Role, m.CallID, m.Refusal)
		m.Content.render(&a.prompt)
		if m.Calls != nil {
			for _, c := range *m.Calls {
				a.prompt.add(c.ID, c.Function.Name, c.Function.Arguments)
				out.ToolCalls = append(out.ToolCalls, callOf(c.ID, c.Function.Name, c.Function.Arguments))
			}
		}
		if out.Role == abi.RoleSystem && len(a.messages) == 0 {
			a.system += out.Text()
			continue
		}
		a.messages = append(a.messages, out)
	}
	return a
}

func (r *ccRequest) checkLimits(spec ModelSpec) *failure {
	reasons := spec.Thinking != ThinkingNone
	switch {
	case reasons && r.MaxTokens != nil:
		return wrong("unsupported_parameter", "max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	case !reasons && r.Effort != "":
		return wrong("unsupported_parameter", "reasoning_effort", "Unsupported parameter: 'reasoning_effort' is not supported with this model.")
	case r.StreamOptions != nil && !r.Stream:
		return wrong("", "stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case len(r.ToolChoice) > 0 && string(r.ToolChoice) != "null" && len(r.Tools) == 0:
		return wrong("", "tool_choice", "'tool_choice' is only allowed when 'tools' are specified.")
	case r.Parallel != nil && len(r.Tools) == 0:
		return wrong("", "parallel_tool_calls", "'parallel_tool_calls' is only allowed when 'tools' are specified.")
	case r.Tools != nil && len(r.Tools) == 0:
		return emptyArray("tools")
	case len(r.Messages) == 0:
		return emptyArray("messages")
	}
	for name, n := range map[string]*int64{"max_tokens": r.MaxTokens, "max_completion_tokens": r.MaxOutput} {
		switch {
		case n == nil:
		case *n < 1:
			return wrong("integer_below_min_value", name, "Invalid '%s': integer below minimum value. Expected a value >= 1, but got %d instead.", name, *n)
		case *n > spec.MaxOutput:
			return wrong("invalid_value", name, "%s is too large: %d. This model supports at most %d completion tokens, whereas you provided %d.", name, *n, spec.MaxOutput, *n)
		}
	}
	return r.sampling.check(spec, "Unsupported value: '%s' does not support this value with this model. Only the default (1) value is supported.")
}

func (r *ccRequest) checkMessages() *failure {
	for i := range r.Messages {
		m := &r.Messages[i]
		where := fmt.Sprintf("messages[%d]", i)
		switch {
		case m.Calls != nil && m.Role != "assistant":
			return wrong("unknown_parameter", where+".tool_calls", "Unknown parameter: '%s.tool_calls'.", where)
		case m.Calls != nil && len(*m.Calls) == 0:
			return emptyArray(where + ".tool_calls")
		case m.Role == "tool" && m.CallID == "":
			return wrong("missing_required_parameter", where+".tool_call_id", "Missing required parameter: '%s.tool_call_id'.", where)
		case m.Role != "tool" && m.CallID != "":
			return wrong("unknown_parameter", where+".tool_call_id", "Unknown parameter: '%s.tool_call_id'.", where)
		case m.Content == nil && m.Calls == nil && m.FunctionCall == nil && m.Refusal == "":
			return wrong("invalid_type", where+".content", "Invalid value for 'content': expected a string, got null.")
		case m.Content != nil && len(m.Content) == 0:
			return emptyArray(where + ".content")
		}
		for j, p := range m.Content {
			if m.Role != "user" && p.Type != "" && p.Type != "text" && p.Type != "refusal" {
				return wrong("", where, "Invalid 'messages[%d]'. Image URLs are only allowed for messages with role 'user', but this message with role '%s' contains an image URL (part %d).", i, m.Role, j)
			}
		}
		if f := m.Content.check(where + ".content"); f != nil {
			return f
		}
		if f := m.checkNames(where); f != nil {
			return f
		}
	}
	return nil
}

func (m *ccMessage) checkNames(where string) *failure {
	if m.Calls == nil {
		return nil
	}
	for j, c := range *m.Calls {
		at := fmt.Sprintf("%s.tool_calls[%d]", where, j)
		if len(c.ID) > 40 {
			return tooLong(at+".id", c.ID, 40)
		}
		if f := checkName(at+".function.name", c.Function.Name, 64); f != nil {
			return f
		}
	}
	return nil
}

// checkCalls holds that tool messages follow the calls that they answer, and answer all of them.
func (r *ccRequest) checkCalls() *failure {
	var open, answered []string
	for i, m := range append(r.Messages, ccMessage{Role: "end"}) {
		if m.Role == "tool" {
			at := slices.Index(open, m.CallID)
			switch {
			case slices.Contains(answered, m.CallID):
				return wrong("", fmt.Sprintf("messages.[%d].tool_call_id", i), "Invalid parameter: Duplicate value for 'tool_call_id' of '%s' in message[%d]", m.CallID, i)
			case len(open)+len(answered) == 0:
				return wrong("", fmt.Sprintf("messages.[%d].role", i), "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
			case at < 0:
				return wrong("", fmt.Sprintf("messages.[%d].tool_call_id", i), "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", m.CallID)
			}
			open, answered = slices.Delete(open, at, at+1), append(answered, m.CallID)
			continue
		}
		if len(open) > 0 {
			return wrong("", fmt.Sprintf("messages.[%d].role", i), "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "+
				"The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
		}
		open, answered = nil, nil
		if m.Calls == nil {
			continue
		}
		for _, c := range *m.Calls {
			if slices.Contains(open, c.ID) {
				return wrong("", fmt.Sprintf("messages.[%d].tool_calls", i), "Invalid parameter: Duplicate value for 'tool_call_id' of '%s' in message[%d]", c.ID, i)
			}
			open = append(open, c.ID)
		}
	}
	return nil
}
