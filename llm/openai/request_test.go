package openai_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/openai"
)

var update = flag.Bool("update", false, "write the golden files")

func own(item string) string {
	return "openai.reasoning:" + base64.StdEncoding.EncodeToString([]byte(item))
}

func thought(text, signature string) abi.ContentBlock {
	return abi.ContentBlock{Type: abi.BlockThinking, Text: text, Signature: signature}
}

// conversation has all that a request may hold.
func conversation() llm.Request {
	text := func(s string) []abi.ContentBlock { return []abi.ContentBlock{abi.Text(s)} }
	temperature, topP, effort, limit := 0.5, 0.9, "low", int64(9)
	return llm.Request{
		ThreadID: "thread-1", RunID: "run-1", Step: 2, Model: "gpt-5-mini",
		Override: &abi.InferenceOverride{Temperature: &temperature, TopP: &topP, ReasoningEffort: &effort, MaxTokens: &limit},
		Tools: []abi.Tool{
			{Name: "read", Description: "Reads a file.", Parameters: map[string]any{
				"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []any{"path"},
			}},
			{Name: "files.list/all", Parameters: map[string]any{"type": "object", "additionalProperties": false}},
		},
		Messages: []abi.Message{
			{ID: "system", Role: abi.RoleSystem, Content: text("You are careful.")},
			{ID: "context/a", Role: abi.RoleSystem, Content: text("It is late.")},
			{ID: "m1", Role: abi.RoleUser, Content: []abi.ContentBlock{
				abi.Text("What is in these?"),
				{Type: abi.BlockImage, MediaType: "image/png", Data: "aW1hZ2U="},
				{Type: abi.BlockImage, URL: "https://example.org/a.jpg"},
				{Type: abi.BlockDocument, MediaType: "application/pdf", Data: "cGRm", Title: "a.pdf"},
			}},
			{
				ID: "m2", Role: abi.RoleAssistant,
				Content: []abi.ContentBlock{
					thought("of another vendor", "EqMB"),
					thought("", own(`{"id":"rs_1","encrypted_content":"e1"}`)),
					abi.Text("Let me look."),
					thought("a summary", own(`{"id":"rs_2","encrypted_content":"e2","calls":1}`)),
					thought("unsigned", ""),
				},
				ToolCalls: []abi.ToolCall{
					{ID: "call_1", Name: "read", Arguments: map[string]any{"path": "<a>", "n": int64(12345678901234567)}},
					{ID: "toolu_" + strings.Repeat("x", 60), Name: "files.list/all"},
					{ID: "call_3", Name: "read", Arguments: `{"path": "a`},
				},
			},
			{ID: "m3", Role: abi.RoleTool, ToolCallID: "call_1", Content: []abi.ContentBlock{
				abi.Text("a picture"), {Type: abi.BlockImage, MediaType: "image/png", Data: "aW1hZ2U="},
			}},
			{ID: "m4", Role: abi.RoleTool, ToolCallID: "toolu_" + strings.Repeat("x", 60), Content: text("Execution failed: no such folder")},
			{ID: "m5", Role: abi.RoleTool, ToolCallID: "call_3", Content: text("")},
			{ID: "note", Role: abi.RoleSystem, Content: text("A task ended.")},
			{ID: "m6", Role: abi.RoleAssistant, Content: []abi.ContentBlock{thought("left over", own(`{"id":"rs_3","encrypted_content":"e3"}`))}},
			{ID: "m7", Role: abi.RoleUser, Content: text("Go on.")},
		},
	}
}

func TestRequestBodies(t *testing.T) {
	t.Parallel()
	gpt4 := conversation()
	gpt4.Model = "gpt-4o"
	plain := conversation()
	plain.Model = "qwen3"
	cases := map[string]struct {
		cfg     openai.Config
		request llm.Request
		stream  bool
	}{
		"responses":        {openai.Config{Summary: "auto"}, conversation(), false},
		"responses_gpt-4o": {openai.Config{}, gpt4, true},
		"chat":             {openai.Config{API: openai.Chat}, conversation(), true},
		"chat_plain":       {openai.Config{API: openai.Chat, Plain: true}, plain, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wire{body: `{}`}
			m := open(t, w, c.cfg)
			if c.stream {
				_, _ = streamed(t.Context(), m, c.request) // Only the request matters.
			} else {
				_, _ = m.Infer(t.Context(), c.request)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, []byte(w.sent), "", "  "); err != nil {
				t.Fatalf("%v: %s", err, w.sent)
			}
			golden(t, name+".json", got.Bytes())
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and look at the change. Got:\n%s", name, got)
	}
}

func TestRequestHeader(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-of-the-environment")
	t.Setenv("OPENAI_ORG_ID", "org-of-the-environment")
	w := &wire{body: `{}`}
	_, _ = open(t, w, openai.Config{BaseURL: "https://example.org/v1", API: openai.Chat}).Infer(t.Context(), question("Hi"))
	if got := w.request.URL.String(); got != "https://example.org/v1/chat/completions" {
		t.Errorf("URL %s", got)
	}
	if got := w.request.Header.Get("Authorization"); got != "Bearer "+secret {
		t.Errorf("Authorization %q", got)
	}
	if got := w.request.Header.Get("Openai-Organization"); got != "" {
		t.Errorf("the environment was read: %q", got)
	}
	m, err := openai.New(openai.Config{HTTP: &http.Client{Transport: w}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = m.Infer(t.Context(), question("Hi"))
	if got, ok := w.request.Header["Authorization"]; ok {
		t.Errorf("without a key: %q", got)
	}
}

func TestCountTokens(t *testing.T) {
	t.Parallel()
	w := &wire{body: `{"object":"response.input_tokens","input_tokens":123}`}
	n, err := open(t, w, openai.Config{}).CountTokens(t.Context(), conversation())
	if err != nil || n != 123 || w.request.URL.Path != "/v1/responses/input_tokens" {
		t.Errorf("counted %d at %s, %v", n, w.request.URL.Path, err)
	}
	for _, field := range []string{`"max_output_tokens"`, `"store"`, `"include"`, `"prompt_cache_key"`} {
		if strings.Contains(w.sent, field) {
			t.Errorf("the endpoint knows no %s: %s", field, w.sent)
		}
	}
	if _, err := open(t, w, openai.Config{API: openai.Chat}).CountTokens(t.Context(), conversation()); err != llm.ErrNoCount { //nolint:errorlint // it is that very error
		t.Errorf("chat: %v", err)
	}
	w.body = `{}`
	_, err = open(t, w, openai.Config{}).CountTokens(t.Context(), conversation())
	wantKind(t, err, llm.KindProvider, "no input_tokens")
}

func TestBlocksThatAreRefused(t *testing.T) {
	t.Parallel()
	image := abi.ContentBlock{Type: abi.BlockImage, MediaType: "image/png", Data: "aQ=="}
	cases := []struct {
		api  openai.API
		role abi.Role
		b    abi.ContentBlock
		want string
	}{
		{openai.Responses, abi.RoleUser, abi.ContentBlock{Type: abi.BlockAudio, Data: "aQ==", MediaType: "audio/wav"}, `message 1 (id "bad", user), block 1: audio: the Responses API takes`},
		{openai.Chat, abi.RoleUser, abi.ContentBlock{Type: abi.BlockVideo, URL: "https://example.org"}, `message 1 (id "bad", user), block 1: video: Chat Completions takes`},
		{openai.Chat, abi.RoleUser, abi.ContentBlock{Type: abi.BlockDocument, URL: "https://example.org/a.pdf"}, "document: Chat Completions takes the data"},
		{openai.Chat, abi.RoleUser, abi.ContentBlock{Type: abi.BlockImage, Data: "aQ=="}, "image: it has neither"},
		{openai.Responses, abi.RoleUser, abi.ContentBlock{Type: abi.BlockImage}, "image: it has neither"},
		{openai.Responses, abi.RoleAssistant, image, "(id \"bad\", assistant), block 1: image: the message may hold texts only"},
		{openai.Chat, abi.RoleAssistant, image, "block 1: image"},
		{openai.Chat, abi.RoleSystem, image, "block 1: image"},
		{openai.Responses, abi.RoleSystem, image, "block 1: image"},
		{openai.Responses, abi.RoleTool, abi.ContentBlock{Type: abi.BlockAudio}, "(id \"bad\", tool), block 1: audio"},
	}
	for _, c := range cases {
		r := question("Hi")
		r.Messages = append(r.Messages, abi.Message{ID: "bad", Role: c.role, Content: []abi.ContentBlock{abi.Text("a"), c.b}})
		_, err := open(t, &wire{body: "{}"}, openai.Config{API: c.api}).Infer(t.Context(), r)
		wantKind(t, err, llm.KindInvalidRequest, c.want)
	}
	r := question("Hi")
	r.Tools = []abi.Tool{{Name: "odd", Parameters: []any{1}}}
	for _, api := range []openai.API{openai.Chat, openai.Responses} {
		_, err := open(t, &wire{body: "{}"}, openai.Config{API: api}).Infer(t.Context(), r)
		wantKind(t, err, llm.KindInvalidRequest, `tool "odd"`)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]openai.Config{
		"Config.BaseURL":   {BaseURL: "example.org/v1"},
		"Config.API":       {API: "completions"},
		"Config.MaxTokens": {MaxTokens: -1},
	} {
		if _, err := openai.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}
