package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/openai"
)

// shown writes what matters of a response in one line.
func shown(r *abi.Response) string {
	var out strings.Builder
	for _, b := range r.Message.Content {
		fmt.Fprintf(&out, "%s(%s)", b.Type, b.Text)
		if b.Signature != "" {
			out.WriteString("*")
		}
		out.WriteString(" ")
	}
	for _, c := range r.Message.ToolCalls {
		arguments, _ := json.Marshal(c.Arguments)
		id := c.ID
		if strings.HasPrefix(id, "call_") && len(id) > 20 {
			id = "fresh"
		}
		fmt.Fprintf(&out, "%s:%s%s ", id, c.Name, arguments)
	}
	out.WriteString(string(r.StopReason))
	if u := r.Usage; u != nil {
		fmt.Fprintf(&out, " %d+%d=%d", u.PromptTokens, u.CompletionTokens, u.TotalTokens)
		if u.CacheReadTokens+u.CacheCreationTokens+u.ThinkingTokens > 0 {
			fmt.Fprintf(&out, " read %d wrote %d thought %d", u.CacheReadTokens, u.CacheCreationTokens, u.ThinkingTokens)
		}
	}
	return out.String()
}

const usage = `"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25,"prompt_tokens_details":{"cached_tokens":16,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}}`

func delta(s string) string { return `{"model":"m-1","choices":[{"index":0,"delta":` + s + `}]}` }

func finish(s string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + s + `"}]}`
}

func TestChatRead(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ body, want string }{
		"OpenAI": {
			events(delta(`{"role":"assistant","content":"","refusal":null}`), delta(`{"content":"Hel"}`), delta(`{"content":"lo"}`),
				finish("stop"), `{"choices":[],`+usage+`}`, "[DONE]"),
			"text(Hello) end_turn 20+5=25 read 16 wrote 2 thought 3",
		},
		"parallel calls": {
			events(delta(`{"content":null,"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"a","arguments":""}}]}`),
				delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`),
				delta(`{"tool_calls":[{"index":1,"id":"c1","type":"function","function":{"name":"b","arguments":"{}"}}]}`), finish("tool_calls"), "[DONE]"),
			`c0:a{"x":1} c1:b{} tool_use`,
		},
		"mixed calls": {
			events(delta(`{"tool_calls":[{"index":0,"id":"c0","function":{"name":"a","arguments":"{\"x\":"}}]}`),
				delta(`{"tool_calls":[{"index":1,"id":"c1","function":{"name":"b","arguments":"{\"y\":"}}]}`),
				delta(`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`), delta(`{"tool_calls":[{"index":1,"function":{"arguments":"2}"}}]}`), finish("stop"), "[DONE]"),
			`c0:a{"x":1} c1:b{"y":2} tool_use`,
		},
		"no ids": {
			events(delta(`{"tool_calls":[{"index":0,"function":{"name":"a","arguments":"{}"}},{"index":1,"function":{"name":"b","arguments":""}}]}`), finish("stop")),
			`fresh:a{} fresh:bnull tool_use`,
		},
		"no indexes": {
			events(delta(`{"tool_calls":[{"id":"c0","function":{"name":"a","arguments":"{\"x\""}}]}`), delta(`{"tool_calls":[{"function":{"arguments":":1}"}}]}`),
				delta(`{"tool_calls":[{"id":"c1","function":{"name":"b","arguments":"{}"}}]}`), finish("stop")),
			`c0:a{"x":1} c1:b{} tool_use`,
		},
		"one index for all": {
			events(delta(`{"tool_calls":[{"index":0,"id":"c0","function":{"name":"a","arguments":"{}"}}]}`),
				delta(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"b","arguments":"{}"}}]}`), finish("stop")),
			`c0:a{} c1:b{} tool_use`,
		},
		"one index, no ids": {
			events(delta(`{"tool_calls":[{"index":0,"id":"","function":{"name":"a","arguments":"{}"}}]}`),
				delta(`{"tool_calls":[{"index":0,"id":"","function":{"name":"b","arguments":"{}"}}]}`), finish("stop")),
			`fresh:a{} fresh:b{} tool_use`,
		},
		"repeated id and name": {
			events(delta(`{"tool_calls":[{"index":0,"id":"c0","function":{"name":"a","arguments":"{\"x\""}}]}`),
				delta(`{"tool_calls":[{"index":0,"id":"c0","function":{"name":"a","arguments":":1}"}}]}`), finish("tool_calls")),
			`c0:a{"x":1} tool_use`,
		},
		"name that follows": {
			events(delta(`{"tool_calls":[{"index":0,"id":"c0","function":{}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"name":"a","arguments":"{}"}}]}`), finish("tool_calls")),
			`c0:a{} tool_use`,
		},
		"arguments as an object": {
			events(delta(`{"tool_calls":[{"index":0,"id":"c0","function":{"name":"a","arguments":{"x":1}}}]}`), finish("stop")),
			`c0:a{"x":1} tool_use`,
		},
		"malformed arguments": {
			events(delta(`{"tool_calls":[{"index":0,"id":"c0","function":{"name":"a","arguments":"{oops"}}]}`), finish("tool_calls")),
			`c0:a"{oops" tool_use`,
		},
		"reasoning of vLLM":    {events(delta(`{"reasoning_content":"h"}`), delta(`{"reasoning_content":"m"}`), delta(`{"content":"Hi"}`), finish("stop")), "thinking(hm) text(Hi) end_turn"},
		"reasoning of Ollama":  {events(delta(`{"reasoning":"hm"}`), delta(`{"content":"Hi","reasoning":null}`), finish("stop")), "thinking(hm) text(Hi) end_turn"},
		"parts of Mistral":     {events(delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Hi"}]}`), finish("stop")), "thinking(hm) text(Hi) end_turn"},
		"comments":             {": OPENROUTER PROCESSING\n\n" + events(delta(`{"content":"Hi"}`), finish("stop")) + "data: [DONE]", "text(Hi) end_turn"},
		"error that is null":   {events(`{"error":null,"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}`), "text(Hi) end_turn"},
		"no reason":            {events(delta(`{"content":"Hi"}`), "[DONE]"), "text(Hi) end_turn"},
		"length":               {events(delta(`{"content":"Hi"}`), finish("length"), "[DONE]"), "text(Hi) max_tokens"},
		"usage in every chunk": {events(`{"choices":[{"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`), "text(Hi) end_turn 9+2=11"},
		"not streamed":         {`{"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","tool_calls":[{"id":"c0","function":{"name":"a","arguments":"{}"}},{"id":"c0","function":{"name":"b","arguments":"{}"}}]},"finish_reason":"tool_calls"}],` + usage + `}`, `text(Hi) c0:a{} fresh:b{} tool_use 20+5=25 read 16 wrote 2 thought 3`},
		"old function call":    {`{"choices":[{"message":{"content":null,"function_call":{"name":"a","arguments":"{}"}},"finish_reason":"function_call"}]}`, "fresh:a{} tool_use"},
		"name that was fitted": {`{"choices":[{"message":{"tool_calls":[{"id":"c0","function":{"name":"files_list_all_7f59bd2f","arguments":"{}"}}]},"finish_reason":"stop"}]}`, "c0:files.list/all{} tool_use"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			media := "text/event-stream; charset=utf-8"
			if strings.HasPrefix(c.body, "{") {
				media = "application/json; charset=utf-8"
			}
			m := open(t, &wire{body: c.body, media: media}, openai.Config{API: openai.Chat})
			got, err := streamed(t.Context(), m, conversation())
			if err != nil {
				t.Fatal(err)
			}
			if shown(got) != c.want {
				t.Errorf("got  %s\nwant %s", shown(got), c.want)
			}
			if media == "application/json; charset=utf-8" {
				if got, err = m.Infer(t.Context(), conversation()); err != nil || shown(got) != c.want {
					t.Errorf("Infer: %v, %v", got, err)
				}
			}
		})
	}
}

// items are the output of a response: reasoning and calls take turns, and one reasoning has
// no summary.
const items = `[
	{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e1"},
	{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Let me look.","annotations":[]}]},
	{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"One"},{"type":"summary_text","text":"two"}],"encrypted_content":"e2"},
	{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{\"path\":\"a\"}"},
	{"type":"reasoning","id":"rs_3","summary":[],"encrypted_content":"e3"},
	{"type":"function_call","id":"fc_2","call_id":"c2","name":"files_list_all_7f59bd2f","arguments":"{}"}]`

const billed = `"usage":{"input_tokens":20,"input_tokens_details":{"cached_tokens":16},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":25}`

// streamOf streams items as the API does.
func streamOf(t *testing.T) string {
	t.Helper()
	var list []map[string]any
	if err := json.Unmarshal([]byte(items), &list); err != nil {
		t.Fatal(err)
	}
	event := func(e map[string]any) string {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	out := []string{`{"type":"response.created","response":{"object":"response","status":"in_progress","error":null}}`}
	for i, item := range list {
		add := func(typ string, more map[string]any) {
			more["type"], more["output_index"] = "response."+typ, i
			out = append(out, event(more))
		}
		begun := map[string]any{"type": item["type"], "id": item["id"], "call_id": item["call_id"], "name": item["name"], "arguments": ""}
		if item["call_id"] == nil {
			begun = map[string]any{"type": item["type"], "id": item["id"]}
		}
		add("output_item.added", map[string]any{"item": begun})
		switch item["id"] {
		case "msg_1":
			add("output_text.delta", map[string]any{"delta": "Let me "})
			add("output_text.delta", map[string]any{"delta": "look."})
		case "rs_2":
			for n, text := range []string{"One", "two"} {
				add("reasoning_summary_part.added", map[string]any{"summary_index": n})
				add("reasoning_summary_text.delta", map[string]any{"summary_index": n, "delta": text})
			}
		case "fc_1":
			add("function_call_arguments.delta", map[string]any{"delta": `{"path":`})
			add("function_call_arguments.delta", map[string]any{"delta": `"a"}`})
		}
		add("output_item.done", map[string]any{"item": item})
	}
	out = append(out, `{"type":"response.completed","response":{"object":"response","status":"completed","model":"gpt-5-2025","error":null,`+billed+`}}`)
	return events(out...)
}

// TestResponsesRead: whole and streamed, an answer is the same, and the next request has
// its items in their order.
func TestResponsesRead(t *testing.T) {
	t.Parallel()
	whole := &wire{body: `{"object":"response","status":"completed","model":"gpt-5-2025","error":null,"output":` + items + `,` + billed + `}`}
	got, err := open(t, whole, openai.Config{}).Infer(t.Context(), conversation())
	if err != nil {
		t.Fatal(err)
	}
	want := `thinking()* text(Let me look.) thinking(One` + "\n\n" + `two)* thinking()* c1:read{"path":"a"} c2:files.list/all{} tool_use 20+5=25 read 16 wrote 0 thought 3`
	if shown(got) != want {
		t.Errorf("got  %s\nwant %s", shown(got), want)
	}
	w := &wire{body: streamOf(t)}
	m := open(t, w, openai.Config{})
	live, err := streamed(t.Context(), m, conversation())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := fmt.Sprintf("%+v", got.Message), fmt.Sprintf("%+v", live.Message); a != b || live.Model != "gpt-5-2025" {
		t.Errorf("whole    %s\nstreamed %s", a, b)
	}
	next := conversation()
	next.Messages = append(next.Messages, live.Message)
	_, _ = m.Infer(t.Context(), next)
	var sent struct {
		Input []struct {
			Type, Role, ID string
			CallID         string `json:"call_id"`
		}
	}
	if err := json.Unmarshal([]byte(w.sent), &sent); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, item := range sent.Input[len(sent.Input)-6:] {
		order = append(order, item.Type+item.Role+item.ID+item.CallID)
	}
	if got := strings.Join(order, " "); got != "reasoningrs_1 assistant reasoningrs_2 function_callc1 reasoningrs_3 function_callc2" {
		t.Errorf("items %s", got)
	}
}

func TestResponsesStops(t *testing.T) {
	t.Parallel()
	text := `{"type":"response.output_text.delta","output_index":0,"delta":"Hi"}`
	cases := map[string]struct{ body, want string }{
		"max tokens": {events(text, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},`+billed+`}}`), "text(Hi) max_tokens 20+5=25 read 16 wrote 0 thought 3"},
		"no deltas":  {events(`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}`, `{"type":"response.completed"}`), "text(Hi) end_turn"},
		"open model": {events(`{"type":"response.reasoning_text.delta","output_index":0,"delta":"hm"}`, `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}}`,
			`{"type":"response.output_text.delta","output_index":1,"delta":"Hi"}`, `{"type":"response.completed","response":{"status":"completed"}}`), "thinking(hm) text(Hi) end_turn"},
		"unknown events": {events(`{"type":"response.web_search_call.searching"}`, text, `{"type":"response.queued"}`, `{"type":"response.completed","response":{"status":"completed"}}`), "text(Hi) end_turn"},
		"cut arguments": {events(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c1","name":"read","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"pa"}`,
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`), `c1:read"{\"pa" max_tokens`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := streamed(t.Context(), open(t, &wire{body: c.body}, openai.Config{}), question("Hi"))
			if err != nil {
				t.Fatal(err)
			}
			if shown(got) != c.want {
				t.Errorf("got  %s\nwant %s", shown(got), c.want)
			}
		})
	}
}

// TestClientRecovers: a stream that broke off is continued from its text, without reasoning
// that nothing would follow.
func TestClientRecovers(t *testing.T) {
	t.Parallel()
	w := &wire{body: events(`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","encrypted_content":"e1"}}`,
		`{"type":"response.output_text.delta","output_index":1,"delta":"Hel"}`)}
	var requests int
	client, err := llm.NewClient(llm.ClientConfig{
		Model: open(t, w, openai.Config{}), Retry: llm.Retry{BackoffBaseMS: 1},
		Observe: func(ctx context.Context, _ llm.Call) (context.Context, func(llm.Call)) {
			requests++
			if requests == 2 {
				w.body = events(`{"type":"response.output_text.delta","output_index":0,"delta":"lo"}`, `{"type":"response.completed","response":{"status":"completed"}}`)
			}
			return ctx, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Ask(t.Context(), question("Hi"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(answer.Response); got != "thinking()* text(Hello) end_turn" || answer.Requests != 2 {
		t.Errorf("got %s after %d requests", got, answer.Requests)
	}
	if !strings.Contains(w.sent, `{"content":"Hel","role":"assistant"},{"content":[{"text":"Your answer was interrupted`) {
		t.Errorf("sent %s", w.sent)
	}
}

// TestChatExtraContent: what Gemini sends with a call goes back with it.
func TestChatExtraContent(t *testing.T) {
	t.Parallel()
	const extra = `"extra_content":{"google":{"thought_signature":"c2ln"}}`
	w := &wire{body: events(delta(`{"content":"Hm."}`), delta(`{"tool_calls":[{"index":0,"id":"c0","function":{"name":"a","arguments":"{}"},`+extra+`}]}`), finish("stop"))}
	m := open(t, w, openai.Config{API: openai.Chat})
	got, err := streamed(t.Context(), m, conversation())
	if err != nil {
		t.Fatal(err)
	}
	if shown(got) != "text(Hm.) thinking()* c0:a{} tool_use" {
		t.Errorf("got %s", shown(got))
	}
	next := conversation()
	next.Messages = append(next.Messages, got.Message)
	_, _ = streamed(t.Context(), m, next)
	if !strings.Contains(w.sent, extra) {
		t.Errorf("sent %s", w.sent)
	}
	_, _ = open(t, w, openai.Config{}).Infer(t.Context(), next)
	if strings.Contains(w.sent, "c2ln") || strings.Contains(w.sent, "openai.extra") {
		t.Errorf("the Responses API gets it too: %s", w.sent)
	}
}
