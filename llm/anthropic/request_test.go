package anthropic_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/anthropic"
)

var update = flag.Bool("update", false, "write the golden files anew")

func thinking(text, signature string) abi.ContentBlock {
	return abi.ContentBlock{Type: abi.BlockThinking, Text: text, Signature: signature}
}

// requests are what is sent for the golden files.
func requests() map[string]llm.Request {
	read := abi.Tool{Name: "fs.read", Description: "Read a file.", Parameters: map[string]any{"properties": map[string]any{"path": map[string]any{"type": "string"}}}}
	return map[string]llm.Request{
		"system": {Model: sonnet, Messages: []abi.Message{
			message("s1", abi.RoleSystem, abi.Text("Be brief.")), message("s2", abi.RoleSystem, abi.Text("Be kind."), abi.Text(" \n")), user("Hi."),
		}},
		"tools": {
			Model: sonnet, Tools: []abi.Tool{read, {Name: "now"}},
			Messages: []abi.Message{
				message("u1", abi.RoleUser, abi.Text("Read both.")),
				{ID: "a1", Role: abi.RoleAssistant, Content: []abi.ContentBlock{thinking("Two files.", "c2ln"), thinking("", "anthropic.redacted:ZGF0YQ"), abi.Text("Reading."), abi.Text("\n")}, ToolCalls: []abi.ToolCall{
					{ID: "call:1", Name: "fs.read", Arguments: map[string]any{"path": "a<b"}}, {ID: "c2", Name: "now"}, {ID: "c3", Name: "now", Arguments: `{"oops`},
				}},
				{ID: "t1", Role: abi.RoleTool, ToolCallID: "call:1", Content: []abi.ContentBlock{abi.Text("A picture:"), {Type: abi.BlockImage, MediaType: "image/png", Data: "aW1n"}}},
				{ID: "t2", Role: abi.RoleTool, ToolCallID: "c2", Content: []abi.ContentBlock{abi.Text("no clock")}, Metadata: map[string]any{"is_error": true}},
				{ID: "t3", Role: abi.RoleTool, ToolCallID: "c3", Content: []abi.ContentBlock{abi.Text("")}},
				message("n1", abi.RoleSystem, abi.Text("A task is done.")),
				message("u2", abi.RoleUser, abi.Text("Go on.")),
			},
		},
		"order": {Model: "claude-opus-4-8", Messages: []abi.Message{
			user("Go."),
			{ID: "a1", Role: abi.RoleAssistant, Content: []abi.ContentBlock{thinking("One.", "czE="), abi.Text("First."), thinking("Two.", "anthropic.after:1:czI="), thinking("", "anthropic.after:2:anthropic.redacted:czM=")}, ToolCalls: []abi.ToolCall{
				{ID: "c1", Name: "a"}, {ID: "c2", Name: "b"}, {ID: "c3", Name: "c"},
			}},
			{ID: "t1", Role: abi.RoleTool, ToolCallID: "c1", Content: []abi.ContentBlock{abi.Text("1")}},
			{ID: "t2", Role: abi.RoleTool, ToolCallID: "c2", Content: []abi.ContentBlock{abi.Text("2")}},
			{ID: "t3", Role: abi.RoleTool, ToolCallID: "c3", Content: []abi.ContentBlock{abi.Text("3")}},
		}},
		"compacted": {Model: sonnet, Messages: []abi.Message{
			message("s", abi.RoleSystem, abi.Text("Be brief.")),
			message("summary/7", abi.RoleSystem, abi.Text("What was said.")),
			message("context/time", abi.RoleSystem, abi.Text("It is noon.")),
			message("a1", abi.RoleAssistant, abi.Text("Done.")),
			message("u1", abi.RoleUser, abi.Text("More.")),
			message("a2", abi.RoleAssistant, abi.Text("Here.")),
			message("u2", abi.RoleUser, abi.Text("And more.")),
			message("context/step", abi.RoleSystem, abi.Text("Step 4.")),
		}},
		"answers": {Model: sonnet, Messages: []abi.Message{ // begins and ends with one
			message("a1", abi.RoleAssistant, abi.Text("Hello."), thinking("unsigned", ""), thinking("of another", "openai.reasoning:e30=")),
			message("u1", abi.RoleUser, abi.Text("")),
			message("a2", abi.RoleAssistant, abi.Text("Still here. ")),
		}},
		"repeated": {Model: sonnet, Tools: []abi.Tool{{Name: "t", Parameters: map[string]any{"type": []string{"object", "null"}, "anyOf": []any{map[string]any{}}}}}, Messages: []abi.Message{
			user("Go."),
			{ID: "a1", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "0", Name: "t"}}},
			{ID: "t1", Role: abi.RoleTool, ToolCallID: "0", Content: []abi.ContentBlock{abi.Text("1")}},
			{ID: "a2", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "0", Name: "t"}}},
			{ID: "t2", Role: abi.RoleTool, ToolCallID: "0", Metadata: map[string]any{"is_error": true}, Content: []abi.ContentBlock{abi.Text("2"), {Type: abi.BlockImage, URL: "https://example.com/a.png"}}},
			message("a3", abi.RoleAssistant, abi.Text("Well."), thinking("cut", "c2ln")),
			message("a4", abi.RoleAssistant, thinking("cut", "c2ln")),
			message("u2", abi.RoleUser, abi.Text("So?")),
		}},
		"media": {Model: sonnet, Messages: []abi.Message{message(
			"u", abi.RoleUser,
			abi.ContentBlock{Type: abi.BlockImage, URL: "https://example.com/a.png"},
			abi.ContentBlock{Type: abi.BlockDocument, MediaType: "application/pdf", Data: "cGRm", Title: "Report"},
			abi.ContentBlock{Type: abi.BlockDocument, MediaType: "text/plain", Data: "bm90ZXM="},
			abi.ContentBlock{Type: abi.BlockDocument, URL: "https://example.com/b.pdf"},
		)}},
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	for name, r := range requests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, w := open(t, answer{body: hello})
			if _, err := m.Infer(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(w.bodies[0], "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", name+".json"), string(got)+"\n")
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s", path, got)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	m, w := open(t, answer{body: hello})
	if _, err := m.Infer(t.Context(), asks("Hi.")); err != nil {
		t.Fatal(err)
	}
	h := w.headers[0]
	if h.Get("User-Agent") != "mortise" || h.Get("X-Api-Key") != key || h.Get("Anthropic-Version") == "" || h.Get("Anthropic-Beta") != "" {
		t.Errorf("headers %v", h)
	}
	if w.paths[0] != "/v1/messages" {
		t.Errorf("path %s", w.paths[0])
	}
}

// TestRefusedHere: requests that cannot be sent name what is wrong.
func TestRefusedHere(t *testing.T) {
	t.Parallel()
	effort := "enormous"
	for want, r := range map[string]llm.Request{
		"Request.Model is missing":           {Messages: []abi.Message{user("Hi.")}},
		"no message behind":                  {Model: sonnet, Messages: []abi.Message{message("s", abi.RoleSystem, abi.Text("Be brief."))}},
		`message 0 "u", block 1`:             {Model: sonnet, Messages: []abi.Message{message("u", abi.RoleUser, abi.Text("Hear:"), abi.ContentBlock{Type: abi.BlockAudio, Data: "YQ=="})}},
		"takes no video":                     {Model: sonnet, Messages: []abi.Message{message("u", abi.RoleUser, abi.ContentBlock{Type: abi.BlockVideo})}},
		"neither data nor URL":               {Model: sonnet, Messages: []abi.Message{message("u", abi.RoleUser, abi.ContentBlock{Type: abi.BlockImage})}},
		"no image from the assistant":        {Model: sonnet, Messages: []abi.Message{message("a", abi.RoleAssistant, abi.ContentBlock{Type: abi.BlockImage, URL: "u"})}},
		`no document of type "application/x`: {Model: sonnet, Messages: []abi.Message{message("u", abi.RoleUser, abi.ContentBlock{Type: abi.BlockDocument, MediaType: "application/x", Data: "YQ=="})}},
		"a system prompt is text":            {Model: sonnet, Messages: []abi.Message{message("s", abi.RoleSystem, abi.ContentBlock{Type: abi.BlockImage, URL: "u"}), user("Hi.")}},
		`tool "t"`:                           {Model: sonnet, Messages: []abi.Message{user("Hi.")}, Tools: []abi.Tool{{Name: "t", Parameters: []int{1}}}},
		`effort is "enormous"`:               {Model: sonnet, Messages: []abi.Message{user("Hi.")}, Override: &abi.InferenceOverride{ReasoningEffort: &effort}},
	} {
		m, w := open(t, answer{body: hello})
		_, err := m.Infer(t.Context(), r)
		if kind(err) != llm.KindInvalidRequest || !strings.Contains(err.Error(), want) || len(w.bodies) > 0 {
			t.Errorf("%s: got %v after %d requests", want, err, len(w.bodies))
		}
	}
}

// TestCacheIsReadAgain: where a step ends its request, the next step's has a breakpoint behind the same blocks.
func TestCacheIsReadAgain(t *testing.T) {
	t.Parallel()
	messages := []abi.Message{message("s", abi.RoleSystem, abi.Text("Be brief.")), message("summary/1", abi.RoleSystem, abi.Text("Before.")), user("Go.")}
	m, w := open(t, answer{body: hello})
	var before []string
	for step := range 6 {
		r := llm.Request{Model: sonnet, Messages: append(slices.Clip(messages), message("context/step", abi.RoleSystem, abi.Text(strings.Repeat("now ", step+1))))}
		if _, err := m.Infer(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		prefixes := breakpoints(w.bodies[step])
		if len(prefixes) > 4 {
			t.Errorf("step %d has %d breakpoints", step, len(prefixes))
		}
		if last := len(before) - 1; last >= 0 && !slices.Contains(prefixes, before[last]) {
			t.Errorf("step %d does not read what step %d wrote", step, step-1)
		}
		before = prefixes
		id := string(rune('a' + step))
		messages = append(messages,
			abi.Message{ID: "a" + id, Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: id, Name: "t"}, {ID: id + id, Name: "t"}}},
			abi.Message{ID: "t" + id, Role: abi.RoleTool, ToolCallID: id, Content: []abi.ContentBlock{abi.Text("1")}},
			abi.Message{ID: "t2" + id, Role: abi.RoleTool, ToolCallID: id + id, Content: []abi.ContentBlock{abi.Text("2")}})
	}
}

// breakpoints are the parts of a request in front of its breakpoints.
func breakpoints(body map[string]any) []string {
	var prefix strings.Builder
	var out []string
	visit := func(list any) {
		blocks, _ := list.([]any)
		for _, b := range blocks {
			block, _ := b.(map[string]any)
			_, marked := block["cache_control"]
			delete(block, "cache_control")
			prefix.WriteString(asJSON(block))
			if marked {
				out = append(out, prefix.String())
			}
		}
	}
	visit(body["tools"])
	visit(body["system"])
	messages, _ := body["messages"].([]any)
	for _, m := range messages {
		message, _ := m.(map[string]any)
		prefix.WriteString(asJSON(message["role"]))
		visit(message["content"])
	}
	return out
}

func TestNoCache(t *testing.T) {
	t.Parallel()
	_, w := open(t, answer{body: hello})
	m, err := anthropic.New(anthropic.Config{BaseURL: "https://claude.example/v1/", HTTP: client(w), NoCache: true, MaxTokens: 77})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Infer(t.Context(), requests()["compacted"]); err != nil {
		t.Fatal(err)
	}
	if body := asJSON(w.bodies[0]); strings.Contains(body, "cache_control") || !strings.Contains(body, `"max_tokens":77`) {
		t.Errorf("sent %s", body)
	}
	if h := w.headers[0]; h.Get("X-Api-Key") != "" || w.paths[0] != "/v1/messages" {
		t.Errorf("path %s, headers %v", w.paths[0], h)
	}
}

func TestOverride(t *testing.T) {
	t.Parallel()
	effort := func(s string) *abi.InferenceOverride { return &abi.InferenceOverride{ReasoningEffort: &s} }
	warm, top, few := 0.7, 0.9, int64(3000)
	sampled := &abi.InferenceOverride{Temperature: &warm, TopP: &top, MaxTokens: &few}
	hot := effort("high")
	hot.Temperature = &warm
	tight := effort("max")
	tight.MaxTokens = &few
	for _, c := range []struct {
		model string
		o     *abi.InferenceOverride
		want  string // of temperature, top_p, max_tokens, thinking and output_config
	}{
		{sonnet, nil, `[null,null,32000,null,null]`},
		{sonnet, sampled, `[0.7,null,3000,null,null]`},
		{sonnet, &abi.InferenceOverride{TopP: &top}, `[null,0.9,32000,null,null]`},
		{sonnet, effort("none"), `[null,null,32000,null,null]`},
		{sonnet, hot, `[null,null,32000,{"budget_tokens":16000,"type":"enabled"},null]`},
		{sonnet, tight, `[null,null,3000,{"budget_tokens":1500,"type":"enabled"},null]`},
		{"claude-3-7-sonnet-20250219", effort("minimal"), `[null,null,32000,{"budget_tokens":1024,"type":"enabled"},null]`},
		{"kimi-k2", effort("low"), `[null,null,32000,{"budget_tokens":4096,"type":"enabled"},null]`},
		{"claude-opus-4-6", sampled, `[0.7,null,3000,null,null]`},
		{"claude-opus-4-6", effort("xhigh"), `[null,null,32000,{"display":"summarized","type":"adaptive"},{"effort":"high"}]`},
		{"claude-opus-4-7", sampled, `[null,null,3000,null,null]`},
		{"claude-opus-4-8", hot, `[null,null,32000,{"display":"summarized","type":"adaptive"},{"effort":"high"}]`},
		{"claude-sonnet-5", effort("none"), `[null,null,32000,{"type":"disabled"},null]`},
		{"claude-sonnet-5-5", effort("none"), `[null,null,32000,{"type":"between_tools"},null]`},
		{"claude-haiku-5-5", effort("none"), `[null,null,32000,{"display":"summarized","type":"adaptive"},{"effort":"low"}]`},
		{"claude-sonnet-5-5", nil, `[null,null,32000,{"display":"summarized","type":"adaptive"},null]`},
		{"claude-opus-5-5", effort("none"), `[null,null,32000,{"display":"summarized","type":"adaptive"},{"effort":"low"}]`},
		{"anthropic.claude-fable-5-1-v1:0", effort("max"), `[null,null,32000,{"display":"summarized","type":"adaptive"},{"effort":"max"}]`},
		{"claude-mythos-preview", nil, `[null,null,32000,{"display":"summarized","type":"adaptive"},null]`},
	} {
		m, w := open(t, answer{body: hello})
		r := asks("Hi.")
		r.Model, r.Override = c.model, c.o
		if _, err := m.Infer(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		b := w.bodies[0]
		if got := asJSON([]any{b["temperature"], b["top_p"], b["max_tokens"], b["thinking"], b["output_config"]}); got != c.want {
			t.Errorf("%s with %s: got %s, want %s", c.model, asJSON(c.o), got, c.want)
		}
	}
}

// TestBoundThinking: models that tie thinking to its conversation are asked to drop what does not fit any more.
func TestBoundThinking(t *testing.T) {
	t.Parallel()
	m, w := open(t, answer{body: hello})
	r := requests()["order"]
	r.Model = "claude-opus-5-5"
	if _, err := m.Infer(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"type": "adaptive", "display": "summarized", "block_binding": map[string]any{"prefix_mismatch_behavior": "drop_block"}}
	if got := w.bodies[0]["thinking"]; !reflect.DeepEqual(got, want) || w.headers[0].Get("Anthropic-Beta") != "thinking-binding-controls-2026-08-01" {
		t.Errorf("thinking %v, headers %v", got, w.headers[0])
	}
}

// TestThinkingRefused: a request whose thinking the API refuses is sent again without.
func TestThinkingRefused(t *testing.T) {
	t.Parallel()
	for _, why := range []string{
		"messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
		"messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
		"messages.1.content.0.type: Expected `thinking`, but found `text`. A final assistant message must start with a thinking block",
		"thinking.adaptive.block_binding: Extra inputs are not permitted",
		"Unexpected value(s) `thinking-binding-controls-2026-08-01` for the `anthropic-beta` header",
	} {
		refused := failing(400, "invalid_request_error", why)
		m, w := open(t, refused, answer{body: hello})
		if _, err := m.Infer(t.Context(), requests()["order"]); err != nil {
			t.Fatal(err)
		}
		if first, second := asJSON(w.bodies[0]), asJSON(w.bodies[1]); !strings.Contains(first, `"thinking"`) || strings.Contains(second, "thinking") {
			t.Errorf("%s: sent %s, then %s", why, first, second)
		}
		m, w = open(t, refused)
		if _, err := m.Infer(t.Context(), asks("Hi.")); kind(err) != llm.KindInvalidRequest || len(w.bodies) != 1 {
			t.Errorf("%s: without thinking: %v after %d requests", why, err, len(w.bodies))
		}
	}
}

// TestRedirect: the key goes to no other server.
func TestRedirect(t *testing.T) {
	t.Parallel()
	m, w := open(t, answer{status: 307, body: "moved", header: http.Header{"Location": {"https://elsewhere.example/"}}}, answer{body: hello})
	if _, err := m.Infer(t.Context(), asks("Hi.")); kind(err) != llm.KindProvider || len(w.bodies) != 1 {
		t.Errorf("got %v after %d requests", err, len(w.bodies))
	}
}

func TestCountTokens(t *testing.T) {
	t.Parallel()
	m, w := open(t, answer{body: `{"input_tokens":42}`})
	r := requests()["tools"]
	warm := 0.5
	r.Override = &abi.InferenceOverride{Temperature: &warm}
	n, err := m.CountTokens(t.Context(), r)
	if err != nil || n != 42 || w.paths[0] != "/v1/messages/count_tokens" {
		t.Fatalf("counted %d at %v, %v", n, w.paths, err)
	}
	for _, field := range []string{"max_tokens", "temperature", "stream"} {
		if _, ok := w.bodies[0][field]; ok {
			t.Errorf("sent %s, which the endpoint refuses", field)
		}
	}
	tools, _ := w.bodies[0]["tools"].([]any)
	messages, _ := w.bodies[0]["messages"].([]any)
	if len(tools) != 2 || len(messages) != 3 {
		t.Errorf("sent %s", asJSON(w.bodies[0]))
	}
}
