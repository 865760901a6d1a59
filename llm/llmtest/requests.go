package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

func requestCases() []testCase {
	return []testCase{
		{name: "tool_results", run: toolResults},
		{name: "tool_result_with_an_image", run: toolImage, needs: ToolImages},
		{name: "tools", run: declaredTools},
		{name: "system_messages", run: systemMessages},
		{name: "image", run: images},
		{name: "block_that_no_provider_takes", run: audio},
		{name: "foreign_thinking", run: foreignThinking},
		{name: "override", run: override},
		{name: "override_of_thinking", run: overrideThinking},
		{name: "cache", run: cached},
		{name: "count", run: count, needs: Counting},
		{name: "no_count", run: noCount},
	}
}

// answered are calls and their results, one of them failed.
func answered() []abi.Message {
	failed := result("call_2", "no clock")
	failed.Metadata = map[string]any{"is_error": true}
	return []abi.Message{
		user("Add"), {Role: abi.RoleAssistant, ToolCalls: calls()}, result("call_1", "5"), failed, result("call_3", ""), user("Go on"),
	}
}

func toolResults(w *world) {
	r := w.request(answered()...)
	r.Tools = tools()
	w.infer(r)
	got := map[string]string{}
	var called []abi.ToolCall
	for _, m := range w.query(0).Messages {
		if m.Role == abi.RoleTool {
			got[m.ToolCallID] = m.Text()
		}
		called = append(called, m.ToolCalls...)
	}
	if len(got) != 3 || got["call_1"] != "5" || !strings.Contains(got["call_2"], "no clock") {
		w.t.Errorf("the results are %v", got)
	}
	if len(called) != 3 || called[0].ID != "call_1" || called[2].Name != "add" {
		w.t.Errorf("the calls are %+v", called)
	}
}

func toolImage(w *world) {
	m := result("call_1", "A picture:")
	m.Content = append(m.Content, picture())
	r := w.request(user("Draw"), abi.Message{Role: abi.RoleAssistant, ToolCalls: calls()[:1]}, m)
	r.Tools = tools()
	w.infer(r)
	w.has(picture())
}

func declaredTools(w *world) {
	r := w.request(user("Hi"))
	r.Tools = tools()
	w.infer(r)
	got := w.query(0).Tools
	if len(got) != 2 || got[0].Name != "add" || got[0].Description != "Adds." || got[1].Name != "now" {
		w.t.Fatalf("the tools are %+v", got)
	}
	schema, _ := got[0].Parameters.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	if len(properties) != 2 {
		w.t.Errorf("the parameters are %+v", schema)
	}
}

// systemMessages holds that those at the head are the prompt, and the others stay where they are.
func systemMessages(w *world) {
	w.infer(w.request(
		system("Head one."), system("Head two."), user("First"), abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("Second")}},
		system("Between"), user("Third"), system("At the end")))
	q := w.query(0)
	all := q.System
	for _, m := range q.Messages {
		all += "\n" + m.Text()
	}
	at := -1
	for _, want := range []string{"Head one.", "Head two.", "First", "Second", "Between", "Third", "At the end"} {
		next := strings.Index(all, want)
		if next <= at {
			w.t.Errorf("%q is missing or not at its place in %q", want, all)
		}
		at = next
	}
}

// picture is an image.
func picture() abi.ContentBlock {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4))) // a buffer never fails
	return abi.ContentBlock{Type: abi.BlockImage, MediaType: "image/png", Data: base64.StdEncoding.EncodeToString(b.Bytes())}
}

// has holds that a block reached the server.
func (w *world) has(want abi.ContentBlock) {
	w.t.Helper()
	for _, m := range w.query(0).Messages {
		for _, b := range m.Content {
			if b.Type == want.Type && b.Data == want.Data && b.URL == want.URL {
				return
			}
		}
	}
	w.t.Errorf("no %s with the data reached the server: %+v", want.Type, w.query(0).Messages)
}

func images(w *world) {
	linked := abi.ContentBlock{Type: abi.BlockImage, URL: "https://example.com/a.png"}
	m := user("What are these?")
	m.Content = append(m.Content, picture(), linked)
	w.infer(w.request(m))
	w.has(picture())
	w.has(linked)
}

func audio(w *world) {
	m := user("Listen")
	m.Content = append(m.Content, abi.ContentBlock{Type: abi.BlockVideo, MediaType: "video/mp4", Data: "AAAA"})
	_, err := w.m.Infer(w.ctx(), w.request(m))
	if failure := w.failed(err); failure.Kind != llm.KindInvalidRequest || !strings.Contains(err.Error(), "video") {
		w.t.Errorf("the error is %+v", failure)
	}
	if n := len(w.s.Bills()); n != 0 {
		w.t.Errorf("%d requests were sent", n)
	}
}

// foreignThinking holds that thinking which is not the provider's own is left out.
func foreignThinking(w *world) {
	r := w.thinks(w.request(user("Hi"), abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{
		{Type: abi.BlockThinking, Text: "unsigned"}, abi.Text("Hm."),
	}}, user("Go on")))
	w.infer(r)
	if q := w.query(0); bytes.Contains(q.Body, []byte("unsigned")) {
		w.t.Errorf("unsigned thinking was sent: %s", q.Body)
	}
}

// body returns the fields of the last request.
func (w *world) body() map[string]any {
	w.t.Helper()
	var out map[string]any
	if err := json.Unmarshal(w.lastQuery().Body, &out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

func override(w *world) {
	half, model := 0.5, w.o.Model
	for field, o := range map[string]*abi.InferenceOverride{"temperature": {Temperature: &half}, "top_p": {TopP: &half}} {
		r := w.request(user("Hi"))
		r.Override = o
		w.both(func(name string, ask func(llm.Request) *abi.Response) {
			ask(r)
			if got := w.body()[field]; got != half {
				w.t.Errorf("%s: %s is %v, want %v", name, field, got, half)
			}
		})
	}
	r := w.request(user("Hi"))
	r.Model, r.Override = "no such model", &abi.InferenceOverride{Model: &model}
	w.ask(r)
	if got := w.lastQuery().Model; got != model {
		w.t.Errorf("the model is %q, want %q", got, model)
	}
}

// overrideThinking holds that effort turns thinking on, and that a temperature, which
// thinking models do not take, does not make the provider refuse the request.
func overrideThinking(w *world) {
	half := 0.5
	for _, level := range []string{"low", "medium", "high"} {
		r := w.thinks(w.request(user("Hi")))
		r.Override = effort(level)
		r.Override.Temperature = &half
		w.infer(r)
		body := w.body()
		if body["thinking"] == nil && body["reasoning"] == nil && body["reasoning_effort"] == nil {
			w.t.Errorf("effort %s: the request is %v", level, body)
		}
	}
	if !slices.Contains([]any{nil, 1.0}, w.body()["temperature"]) {
		w.t.Errorf("the temperature is %v", w.body()["temperature"])
	}
}

// cached holds that usage has what the cache gave, and that requests are made so that it gives something.
func cached(w *world) {
	r := w.request(system(strings.Repeat("Answer shortly and politely. ", 400)), user("Hi"))
	r.Tools = tools()
	w.infer(r)
	r.Messages = append(slices.Clone(r.Messages), abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("Hello.")}}, user("And now?"))
	w.both(func(name string, ask func(llm.Request) *abi.Response) {
		got := ask(r)
		w.billed(got.Usage)
		if u := got.Usage; u.CacheReadTokens < 2000 || u.CacheReadTokens > u.PromptTokens {
			w.t.Errorf("%s: usage is %+v", name, u)
		}
	})
}

func count(w *world) {
	c, ok := w.m.(llm.Counter)
	if !ok {
		w.t.Fatal("the model is no llm.Counter")
	}
	r := w.request(append([]abi.Message{system("Be short.")}, answered()...)...)
	r.Tools = tools()
	n, err := c.CountTokens(w.ctx(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	if got := w.infer(r).Usage.PromptTokens; n != got {
		w.t.Errorf("counted %d tokens, billed %d", n, got)
	}
	r.Model = "no-such-model"
	_, err = c.CountTokens(w.ctx(), r)
	if failure := w.failed(err); failure.Kind != llm.KindModelNotFound {
		w.t.Errorf("the error is %+v", failure)
	}
}

func noCount(w *world) {
	c, ok := w.m.(llm.Counter)
	if !ok || !slices.Contains(w.o.Without, Counting) {
		return
	}
	if _, err := c.CountTokens(w.ctx(), w.request(user("Hi"))); !errors.Is(err, llm.ErrNoCount) {
		w.t.Errorf("the error is %v, want %v", err, llm.ErrNoCount)
	}
}
