package providertest_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/mortise-dev/mortise/llm/providertest"
)

const (
	responsesPath = "/v1/responses"
	chatPath      = "/v1/chat/completions"
)

func (w *world) openai() openai.Client {
	return openai.NewClient(option.WithBaseURL(w.URL()+"/v1"), option.WithAPIKey(w.Key()), option.WithHTTPClient(w.client), option.WithMaxRetries(0))
}

var addSchema = map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "integer"}}}

func responseParams(model string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: model, Store: openai.Bool(false), Include: []responses.ResponseIncludable{"reasoning.encrypted_content"},
		Reasoning: shared.ReasoningParam{Effort: "low", Summary: "auto"},
		Tools: []responses.ToolUnionParam{
			responses.ToolParamOfFunction("add", addSchema, false), responses.ToolParamOfFunction("now", addSchema, false),
		},
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
			responses.ResponseInputItemParamOfMessage("2+3?", responses.EasyInputMessageRoleUser),
		}},
	}
}

func item(s string) responses.ResponseInputItemUnionParam {
	return param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(s))
}

// again adds an answer and the results of its calls to the input.
func again(p *responses.ResponseNewParams, answer *responses.Response) {
	items := &p.Input.OfInputItemList
	for _, it := range answer.Output {
		*items = append(*items, item(it.RawJSON()))
	}
	for _, id := range []string{"toolu_1", "toolu_2"} {
		*items = append(*items, item(`{"type":"function_call_output","call_id":"`+id+`","output":"5"}`))
	}
}

func TestResponsesReasonsOverToolUse(t *testing.T) {
	t.Parallel()
	for _, streamed := range []bool{false, true} {
		w := open(t, providertest.Config{Reply: thinker})
		c := w.openai()
		p := responseParams("gpt-5")
		var answer *responses.Response
		for range 2 {
			if streamed {
				answer = nil
				stream := c.Responses.NewStreaming(t.Context(), p)
				for stream.Next() {
					if e := stream.Current(); e.Type == "response.completed" {
						answer = &e.Response
					}
				}
				if err := stream.Err(); err != nil || answer == nil {
					t.Fatal(err, answer)
				}
			} else {
				var err error
				if answer, err = c.Responses.New(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			if text := answer.OutputText(); text == "The sum is 5." {
				break
			}
			if len(answer.Output) != 4 || answer.Output[0].Summary[0].Text != "Two sums are wanted, so I add twice." || answer.Output[2].Arguments.OfString != `{"a":2,"b":3}` {
				t.Fatalf("the answer is %s", answer.RawJSON())
			}
			again(&p, answer)
		}
		bills := w.Bills()
		last := bills[len(bills)-1].Usage
		if len(bills) != 2 || last.PromptTokens != answer.Usage.InputTokens || last.CompletionTokens != answer.Usage.OutputTokens {
			t.Errorf("streamed %v: bills %+v, usage %s", streamed, bills, answer.Usage.RawJSON())
		}
		status, body, _ := w.post(responsesPath+"/input_tokens", `{"model":"gpt-5","input":"hi"}`)
		if status != http.StatusOK || !strings.Contains(body, `"input_tokens":`) {
			t.Errorf("count: %d %s", status, body)
		}
	}
}

// TestResponsesPairsReasoning holds that reasoning and what follows it are sent together.
func TestResponsesPairsReasoning(t *testing.T) {
	t.Parallel()
	w := open(t, providertest.Config{Reply: thinker})
	c := w.openai()
	p := responseParams("gpt-5")
	answer, err := c.Responses.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	again(&p, answer)
	items := p.Input.OfInputItemList
	without := func(i int) responses.ResponseInputParam {
		return append(append(responses.ResponseInputParam{}, items[:i]...), items[i+1:]...)
	}
	changed := append(responses.ResponseInputParam{}, items...)
	changed[1] = item(strings.Replace(answer.Output[0].RawJSON(), `"encrypted_content":"`, `"encrypted_content":"AA`, 1))
	bare := append(responses.ResponseInputParam{}, items...)
	bare[1] = responses.ResponseInputItemParamOfReasoning("rs_1", nil)
	for _, b := range []struct {
		items responses.ResponseInputParam
		want  string
	}{
		{without(1), "was provided without its required 'reasoning' item"},
		{items[:2], "was provided without its required following item"},
		{changed, "could not be verified"},
		{bare, "Missing required parameter: 'input[1].summary'"},
		{without(3), "No tool call found for function call output with call_id toolu_1"},
		{without(len(items) - 1), "No tool output found for function call toolu_2"},
	} {
		p.Input.OfInputItemList = b.items
		_, err := c.Responses.New(t.Context(), p)
		if failure, ok := errors.AsType[*openai.Error](err); !ok || !strings.Contains(failure.Message, b.want) {
			t.Errorf("got %+v, want %s", failure, b.want)
		}
	}
}

func chatParams(model string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Add."), openai.UserMessage("2+3?")},
		Tools: []openai.ChatCompletionToolUnionParam{
			openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "add", Parameters: addSchema}),
			openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "now"}),
		},
	}
}

func TestChatUsesTools(t *testing.T) {
	t.Parallel()
	for _, streamed := range []bool{false, true} {
		w := open(t, providertest.Config{Reply: thinker})
		c := w.openai()
		p := chatParams("gpt-4.1")
		var usage openai.CompletionUsage
		for range 2 {
			var m openai.ChatCompletionMessage
			if streamed {
				p.StreamOptions.IncludeUsage = openai.Bool(true)
				var acc openai.ChatCompletionAccumulator
				stream := c.Chat.Completions.NewStreaming(t.Context(), p)
				for stream.Next() {
					acc.AddChunk(stream.Current())
				}
				if err := stream.Err(); err != nil {
					t.Fatal(err)
				}
				m, usage = acc.Choices[0].Message, acc.Usage
			} else {
				answer, err := c.Chat.Completions.New(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				m, usage = answer.Choices[0].Message, answer.Usage
			}
			if len(m.ToolCalls) == 0 {
				if m.Content != "The sum is 5." {
					t.Errorf("streamed %v: the answer is %q", streamed, m.Content)
				}
				break
			}
			if len(m.ToolCalls) != 2 || m.ToolCalls[0].Function.Arguments != `{"a":2,"b":3}` {
				t.Fatalf("the calls are %+v", m.ToolCalls)
			}
			p.Messages = append(p.Messages, m.ToParam(), openai.ToolMessage("5", "toolu_1"), openai.ToolMessage("6", "toolu_2"))
		}
		bills := w.Bills()
		if last := bills[len(bills)-1].Usage; len(bills) != 2 || last.PromptTokens != usage.PromptTokens || last.TotalTokens != usage.TotalTokens {
			t.Errorf("streamed %v: bills %+v, usage %s", streamed, bills, usage.RawJSON())
		}
	}
}

func TestOpenAIHeaders(t *testing.T) {
	t.Parallel()
	w := open(t, providertest.Config{})
	for path, body := range map[string]string{
		responsesPath: `{"model":"gpt-5","input":"hi"}`, chatPath: `{"model":"gpt-5","messages":[{"role":"user","content":"hi"}]}`,
	} {
		if status, answer, _ := w.post(path, body, "Authorization", ""); status != 401 || !strings.Contains(answer, "Missing bearer") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
		status, answer, _ := w.post(path, body, "Authorization", "Bearer sk-wrong-and-long-1234")
		if _, _, code := message(t, answer); status != 401 || code != "invalid_api_key" || strings.Contains(answer, "wrong-and-long") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
		if status, answer, _ := w.post(path, body); status != 200 {
			t.Errorf("%s: %d %s", path, status, answer)
		}
		if status, answer, _ := w.post(path, `{"x":"`+strings.Repeat("a", 33<<20)+`"}`); status != http.StatusRequestEntityTooLarge {
			t.Errorf("a large body: %d %s", status, answer)
		}
	}
	c := w.openai()
	models, err := c.Models.List(t.Context())
	if err != nil || len(models.Data) != 4 {
		t.Errorf("models: %v %v", models, err)
	}
}

func TestResponsesRejects(t *testing.T) {
	t.Parallel()
	w := open(t, providertest.Config{Models: map[string]providertest.ModelSpec{
		"gpt-5": {Window: 10_000}, "gpt-4.1": {Thinking: providertest.ThinkingNone},
	}})
	rs := func(items, rest string) string { return `{"model":"gpt-5","input":[` + items + `]` + rest + `}` }
	const (
		hi   = `{"role":"user","content":"hi"}`
		call = `,{"type":"function_call","call_id":"c1","name":"add","arguments":"{}"}`
		out  = `,{"type":"function_call_output","call_id":"c1","output":"5"}`
	)
	tool := func(schema string) string {
		return rs(hi, `,"tools":[{"type":"function","name":"a","strict":true,"parameters":`+schema+`}]`)
	}
	part := func(s string) string { return rs(`{"role":"user","content":[`+s+`]}`, "") }
	w.rejects(responsesPath, []rejection{
		{"syntax", `{`, 0, "could not parse the JSON body"},
		{"unknown", rs(hi, `,"foo":1`), 0, "Unknown parameter: 'foo'."},
		{"unknown within", rs(`{"role":"user","content":"hi","foo":1}`, ""), 0, "Unknown parameter: 'input[0].foo'."},
		{"no model", `{"input":"hi"}`, 0, "Missing required parameter: 'model'."},
		{"model", `{"model":"nope","input":"hi"}`, 0, "The requested model 'nope' does not exist."},
		{"type", rs(hi, `,"stream":1`), 0, "Invalid type for 'stream': expected boolean, but got integer instead."},
		{"no input", rs("", ""), 0, "must be provided"},
		{"role", rs(`{"role":"tool","content":"a"}`, ""), 0, "Invalid value: 'tool'"},
		{"limit", rs(hi, `,"max_output_tokens":15`), 0, "Expected a value >= 16, but got 15 instead."},
		{"limit of the model", rs(hi, `,"max_output_tokens":64001`), 0, "Expected a value <= 64000"},
		{"previous", rs(hi, `,"previous_response_id":"resp_1"`), 0, "Previous response with id 'resp_1' not found."},
		{"temperature", rs(hi, `,"temperature":0.5`), 0, "'temperature' is not supported with this model"},
		{"temperature range", `{"model":"gpt-4.1","input":"a","temperature":3}`, 0, "Expected a value <= 2"},
		{"effort", `{"model":"gpt-4.1","input":"a","reasoning":{"effort":"low"}}`, 0, "'reasoning.effort' is not supported with this model"},
		{"summary", `{"model":"gpt-4.1","input":"a","reasoning":{"summary":"auto"}}`, 0, "'reasoning.summary' is not supported with this model"},
		{"encrypted", `{"model":"gpt-4.1","input":"a","include":["reasoning.encrypted_content"]}`, 0, "Encrypted content is not supported with this model."},
		{"output without call", rs(hi+out, ""), 0, "No tool call found for function call output with call_id c1."},
		{"call without output", rs(hi+call, ""), 0, "No tool output found for function call c1."},
		{"call twice", rs(hi+call+call+out, ""), 0, "Duplicate function call"},
		{"call id", rs(hi+strings.Replace(call, "c1", strings.Repeat("c", 65), 1), ""), 0, "Expected a string with maximum length 64, but got a string with length 65"},
		{"call name", rs(hi+strings.Replace(call, "add", "a.b", 1), ""), 0, "Invalid 'input[1].name': string does not match pattern"},
		{"item id", rs(hi+strings.Replace(call, `"name"`, `"id":"x","name"`, 1), ""), 0, "Expected an ID that begins with 'fc'"},
		{"item twice", rs(`{"type":"message","id":"msg_1","role":"user","content":"a"},{"type":"message","id":"msg_1","role":"user","content":"a"}`, ""), 0, "Duplicate item found with id msg_1"},
		{"reasoning of another", rs(hi+`,{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"abc"}`+call+out, ""), 0, "could not be verified"},
		{"reasoning by id", rs(hi+`,{"type":"reasoning","id":"rs_1","summary":[]}`+call+out, ""), 404, "Items are not persisted when `store` is set to false."},
		{"part of the user", part(`{"type":"output_text","text":"a"}`), 0, "Invalid value: 'output_text'. Supported values are: 'input_text'"},
		{"part of the model", rs(`{"role":"assistant","content":[{"type":"input_text","text":"a"}]}`, ""), 0, "Supported values are: 'output_text' and 'refusal'"},
		{"tool name", rs(hi, `,"tools":[{"type":"function","name":"a b","parameters":{}}]`), 0, "Invalid 'tools[0].name': string does not match pattern"},
		{"no parameters", rs(hi, `,"tools":[{"type":"function","name":"a"}]`), 0, "Missing required parameter: 'tools[0].parameters'."},
		{"schema type", tool(`{}`), 0, `got 'type: "None"'`},
		{"schema properties", tool(`{"type":"object"}`), 0, "object schema missing properties"},
		{"schema items", tool(`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"array"}},"required":["a"]}`), 0, "array schema missing items"},
		{"strict", tool(`{"type":"object","properties":{}}`), 0, "'additionalProperties' is required to be supplied and to be false"},
		{"strict required", tool(`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}`), 0, "Missing 'a'"},
		{"tools", rs(hi, `,"tools":[`+strings.Repeat(`{"type":"function","name":"a","parameters":null},`, 128)+`{"type":"function","name":"a","parameters":null}]`), 0, "Invalid"},
		{"image", part(`{"type":"input_image","image_url":"data:image/bmp;base64,AAAA"}`), 0, "unsupported image"},
		{"image data", part(`{"type":"input_image","image_url":"data:image/png;base64,!"}`), 0, "Invalid base64"},
		{"image URL", part(`{"type":"input_image","image_url":"nothing"}`), 0, "Expected a valid URL"},
		{"file", part(`{"type":"input_file","filename":"a.pdf","file_data":"AAAA"}`), 0, "Expected a base64-encoded data URL"},
		{"file name", part(`{"type":"input_file","file_data":"data:application/pdf;base64,AAAA"}`), 0, "filename'"},
		{"PDF", part(`{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}`), 0, "could not be parsed as a PDF"},
		{"window", rs(`{"role":"user","content":"`+strings.Repeat("word ", 9000)+`"}`, ""), 0, "exceeds the context window"},
	})
	_, body, _ := w.post(responsesPath, rs(`{"role":"user","content":"`+strings.Repeat("word ", 9000)+`"}`, ""))
	if _, kind, code := message(t, body); kind != "invalid_request_error" || code != "context_length_exceeded" {
		t.Errorf("overflow: %s", body)
	}
}

func TestChatRejects(t *testing.T) {
	t.Parallel()
	w := open(t, providertest.Config{Models: map[string]providertest.ModelSpec{
		"gpt-5": {}, "gpt-4.1": {Window: 10_000, Thinking: providertest.ThinkingNone},
	}})
	cc := func(messages, rest string) string {
		return `{"model":"gpt-4.1","messages":[` + messages + `]` + rest + `}`
	}
	const (
		hi   = `{"role":"user","content":"hi"}`
		call = `,{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{}"}}]}`
		out  = `,{"role":"tool","tool_call_id":"c1","content":"5"}`
	)
	w.rejects(chatPath, []rejection{
		{"unknown", cc(hi, `,"foo":1`), 0, "Unknown parameter: 'foo'."},
		{"model", `{"model":"nope","messages":[` + hi + `]}`, 404, "The model `nope` does not exist"},
		{"no messages", `{"model":"gpt-5"}`, 0, "Missing required parameter: 'messages'."},
		{"empty", cc("", ""), 0, "Invalid 'messages': empty array"},
		{"no content", cc(`{"role":"user"}`, ""), 0, "expected a string, got null"},
		{"empty content", cc(`{"role":"user","content":[]}`, ""), 0, "Invalid 'messages[0].content': empty array"},
		{"tool first", cc(hi+out, ""), 0, "must be a response to a preceeding message with 'tool_calls'"},
		{"tool of another", cc(hi+call+strings.Replace(out, "c1", "c2", 1), ""), 0, "'tool_call_id' of 'c2' not found"},
		{"tool twice", cc(hi+call+out+out, ""), 0, "Duplicate value for 'tool_call_id' of 'c1'"},
		{"not answered", cc(hi+call+`,`+hi, ""), 0, "did not have response messages: c1"},
		{"not answered at the end", cc(hi+call, ""), 0, "did not have response messages: c1"},
		{"no calls", cc(hi+`,{"role":"assistant","content":"a","tool_calls":[]}`, ""), 0, "Invalid 'messages[1].tool_calls': empty array"},
		{"calls of the user", cc(`{"role":"user","content":"a","tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{}"}}]}`, ""), 0, "Unknown parameter: 'messages[0].tool_calls'"},
		{"no call id", cc(hi+call+`,{"role":"tool","content":"a"}`, ""), 0, "Missing required parameter: 'messages[2].tool_call_id'"},
		{"call id of the user", cc(`{"role":"user","content":"a","tool_call_id":"c1"}`, ""), 0, "Unknown parameter: 'messages[0].tool_call_id'"},
		{"call id", cc(hi+strings.Replace(call, "c1", strings.Repeat("c", 41), 1)+out, ""), 0, "Expected a string with maximum length 40"},
		{"call name", cc(hi+strings.Replace(call, "add", "a b", 1)+out, ""), 0, "string does not match pattern"},
		{"max_tokens", `{"model":"gpt-5","max_tokens":10,"messages":[` + hi + `]}`, 0, "Use 'max_completion_tokens' instead"},
		{"limit", cc(hi, `,"max_tokens":64001`), 0, "max_tokens is too large: 64001"},
		{"limit below", cc(hi, `,"max_completion_tokens":0`), 0, "Expected a value >= 1"},
		{"effort", cc(hi, `,"reasoning_effort":"low"`), 0, "'reasoning_effort' is not supported"},
		{"temperature", `{"model":"gpt-5","temperature":0.5,"messages":[` + hi + `]}`, 0, "'temperature' does not support this value"},
		{"stream options", cc(hi, `,"stream_options":{"include_usage":true}`), 0, "only allowed when 'stream' is enabled"},
		{"choice", cc(hi, `,"tool_choice":"auto"`), 0, "only allowed when 'tools' are specified"},
		{"parallel", cc(hi, `,"parallel_tool_calls":true`), 0, "only allowed when 'tools' are specified"},
		{"no tools", cc(hi, `,"tools":[]`), 0, "Invalid 'tools': empty array"},
		{"many tools", cc(hi, `,"tools":[`+strings.Repeat(`{"type":"function","function":{"name":"a"}},`, 128)+`{"type":"function","function":{"name":"a"}}]`), 0, "maximum length 128"},
		{"tool name", cc(hi, `,"tools":[{"type":"function","function":{"name":""}}]`), 0, "empty string"},
		{"image of the tool", cc(hi+call+`,{"role":"tool","tool_call_id":"c1","content":[{"type":"image_url","image_url":{"url":"https://a"}}]}`, ""), 0, "Image URLs are only allowed for messages with role 'user'"},
		{"image", cc(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`, ""), 0, "unsupported image"},
		{"file", cc(`{"role":"user","content":[{"type":"file","file":{"file_data":"AAAA"}}]}`, ""), 0, "Expected a base64-encoded data URL"},
		{"window", cc(`{"role":"user","content":"`+strings.Repeat("word ", 9000)+`"}`, ""), 0, "maximum context length is 10000 tokens"},
	})
}

// TestOpenAICache holds that a prefix is read from the cache in steps of 128 tokens, from 1,024 on.
func TestOpenAICache(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := open(t, providertest.Config{Now: func() time.Time { return now }, Models: map[string]providertest.ModelSpec{"gpt-5": {Input: 10, Cached: 1}}})
	for i, c := range []struct {
		words  int
		after  time.Duration
		cached bool
	}{{700, 0, false}, {700, 0, false}, {2000, 0, false}, {2000, 9 * time.Minute, true}, {2000, 10 * time.Minute, false}} {
		now = now.Add(c.after)
		w.post(chatPath, `{"model":"gpt-5","messages":[{"role":"user","content":"`+strings.Repeat("word ", c.words)+`"},{"role":"user","content":"x"}]}`)
		b := w.Bills()[i]
		if u := b.Usage; (u.CacheReadTokens > 0) != c.cached || u.CacheReadTokens%128 != 0 || u.CacheCreationTokens != 0 || u.PromptTokens-u.CacheReadTokens < 0 {
			t.Errorf("request %d: %+v", i, u)
		}
		if want := float64(10*(b.Usage.PromptTokens-b.Usage.CacheReadTokens)+b.Usage.CacheReadTokens) / 1e6; b.Cost < want*0.999 || b.Cost > want*1.001 {
			t.Errorf("request %d cost %v, want %v", i, b.Cost, want)
		}
	}
}
