package providertest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
)

const messagesPath = "/v1/messages"

func (w *world) anthropic() anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(w.URL()), option.WithAPIKey(w.Key()), option.WithHTTPClient(w.client), option.WithMaxRetries(0))
}

func asked(text string) []anthropic.MessageParam {
	return []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))}
}

// thinker answers with thinking, text and two calls, then with text.
func thinker(q providertest.Query) providertest.Answer {
	for _, m := range q.Messages {
		if m.Role == abi.RoleTool {
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("The sum is 5.")}}
		}
	}
	return providertest.Answer{
		Content: []abi.ContentBlock{{Type: abi.BlockThinking, Text: "Two sums are wanted, so I add twice."}, abi.Text("I add these numbers now.")},
		Calls: []abi.ToolCall{
			{ID: "toolu_1", Name: "add", Arguments: map[string]any{"a": int64(2), "b": int64(3)}},
			{ID: "toolu_2", Name: "now"},
		},
	}
}

func addTools() []anthropic.ToolUnionParam {
	add := anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: map[string]any{"a": map[string]any{"type": "integer"}}}, "add")
	now := anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: map[string]any{}}, "now")
	return []anthropic.ToolUnionParam{add, now}
}

func TestAnthropicThinksOverToolUse(t *testing.T) {
	t.Parallel()
	for _, streamed := range []bool{false, true} {
		w := open(t, providertest.Config{Reply: thinker})
		c := w.anthropic()
		p := anthropic.MessageNewParams{
			Model: "claude-sonnet-4-5", MaxTokens: 4000, Messages: asked("2+3?"), Tools: addTools(),
			Thinking: anthropic.ThinkingConfigParamOfEnabled(1024),
		}
		var usage anthropic.Usage
		for range 2 {
			m := &anthropic.Message{}
			if streamed {
				stream := c.Messages.NewStreaming(t.Context(), p)
				for stream.Next() {
					if err := m.Accumulate(stream.Current()); err != nil {
						t.Fatal(err)
					}
				}
				if err := stream.Err(); err != nil {
					t.Fatal(err)
				}
			} else {
				var err error
				if m, err = c.Messages.New(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			usage = m.Usage
			if m.StopReason != anthropic.StopReasonToolUse {
				if got := m.Content[len(m.Content)-1].Text; got != "The sum is 5." {
					t.Errorf("streamed %v: the answer is %q", streamed, got)
				}
				break
			}
			if len(m.Content) != 4 || m.Content[0].Type != "thinking" || string(m.Content[2].Input) != `{"a":2,"b":3}` {
				t.Fatalf("streamed %v: the answer is %s", streamed, m.RawJSON())
			}
			p.Messages = append(p.Messages, m.ToParam(), anthropic.NewUserMessage(
				anthropic.NewToolResultBlock("toolu_1", "5", false), anthropic.NewToolResultBlock("toolu_2", "no clock", true)))
		}
		bills := w.Bills()
		last := bills[len(bills)-1].Usage
		if len(bills) != 2 || last.PromptTokens != usage.InputTokens || last.CompletionTokens != usage.OutputTokens {
			t.Errorf("streamed %v: bills are %+v, the last usage is %s", streamed, bills, usage.RawJSON())
		}
		n, err := c.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{
			Model: p.Model, Messages: p.Messages, Thinking: p.Thinking,
			Tools: []anthropic.MessageCountTokensToolUnionParam{{OfTool: p.Tools[0].OfTool}, {OfTool: p.Tools[1].OfTool}},
		})
		if err != nil || n.InputTokens != last.PromptTokens {
			t.Errorf("counted %v tokens, billed %d: %v", n, last.PromptTokens, err)
		}
	}
}

func TestAnthropicHeaders(t *testing.T) {
	t.Parallel()
	w := open(t, providertest.Config{})
	body := `{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`
	for _, c := range []struct {
		headers    []string
		status     int
		kind, want string
	}{
		{[]string{"X-Api-Key", ""}, 401, "authentication_error", "x-api-key header is required"},
		{[]string{"X-Api-Key", "other"}, 401, "authentication_error", "invalid x-api-key"},
		{[]string{"Anthropic-Version", ""}, 400, "invalid_request_error", "anthropic-version: header is required"},
		{[]string{"Anthropic-Version", "1"}, 400, "invalid_request_error", "is not a valid version"},
		{nil, 200, "", ""},
	} {
		status, answer, h := w.post(messagesPath, body, c.headers...)
		text, kind, _ := message(t, answer)
		if status != c.status || kind != c.kind || !strings.Contains(text, c.want) || h.Get("Request-Id") == "" {
			t.Errorf("%v: %d %s", c.headers, status, answer)
		}
	}
	if status, answer, _ := w.post(messagesPath, `{"x":"`+strings.Repeat("a", 33<<20)+`"}`); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d %s", status, answer)
	}
	models, err := new(w.anthropic()).Models.List(t.Context(), anthropic.ModelListParams{})
	if err != nil || len(models.Data) != 4 {
		t.Errorf("models: %v %v", models, err)
	}
}

// an makes a body of messages and other fields.
func an(messages, rest string) string {
	return `{"model":"claude-sonnet-4-5","max_tokens":4000,"messages":[` + messages + `]` + rest + `}`
}

func TestAnthropicRejects(t *testing.T) {
	t.Parallel()
	w := open(t, providertest.Config{Reply: thinker})
	const (
		hi    = `{"role":"user","content":"hi"}`
		use   = `,{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"add","input":{}}]}`
		res   = `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"5"}]}`
		think = `,"thinking":{"type":"enabled","budget_tokens":1024}`
		cache = `"cache_control":{"type":"ephemeral"}`
	)
	tool := func(s string) string { return an(hi, `,"tools":[`+s+`]`) }
	block := func(s string) string { return an(`{"role":"user","content":[`+s+`]}`, "") }
	image := func(media, data string) string {
		return block(`{"type":"image","source":{"type":"base64","media_type":"` + media + `","data":"` + data + `"}}`)
	}
	newer := func(s string) string { return strings.Replace(s, "sonnet-4-5", "opus-4-8", 1) }
	w.rejects(messagesPath, []rejection{
		{"syntax", `{`, 0, "not valid JSON"},
		{"unknown field", an(hi, `,"foo":1`), 0, "foo: Extra inputs are not permitted"},
		{"unknown field in a block", block(`{"type":"text","text":"a","foo":1}`), 0, "messages.0.content.0.text.foo: Extra inputs are not permitted"},
		{"unknown block", block(`{"type":"audio"}`), 0, "Input tag 'audio' found using 'type' does not match"},
		{"model", `{"model":"nope","max_tokens":1,"messages":[` + hi + `]}`, 404, "model: nope"},
		{"no max_tokens", `{"model":"claude-sonnet-4-5","messages":[` + hi + `]}`, 0, "max_tokens: Field required"},
		{"max_tokens", `{"model":"claude-sonnet-4-5","max_tokens":64001,"messages":[` + hi + `]}`, 0, "64001 > 64000, which is the maximum"},
		{"type", an(hi, `,"stream":"yes"`), 0, "stream: Input should be a valid boolean"},
		{"no message", an("", ""), 0, "at least one message is required"},
		{"first role", an(`{"role":"assistant","content":"a"}`, ""), 0, `first message must use the "user" role`},
		{"system role", an(hi+`,{"role":"system","content":"a"}`, ""), 0, "top-level 'system' parameter"},
		{"system first", newer(an(`{"role":"system","content":"a"},`+hi, "")), 0, "top-level 'system' parameter"},
		{"system after an answer", newer(an(hi+`,{"role":"assistant","content":"a"},{"role":"system","content":"a"},`+hi, "")), 0, "messages.2: a message with role 'system' must follow a 'user' message"},
		{"system before the user", newer(an(hi+`,{"role":"system","content":"a"},`+hi, "")), 0, "must precede an 'assistant' message or end the array"},
		{"system between call and result", newer(an(hi+use+`,{"role":"system","content":"a"}`+res, "")), 0, "must follow a 'user' message"},
		{"system without text", newer(an(hi+`,{"role":"system","content":[]}`, "")), 0, "system messages must have non-empty text"},
		{"other role", an(hi+`,{"role":"tool","content":"a"}`, ""), 0, "Unexpected role"},
		{"empty message", an(`{"role":"user","content":[]}`, ""), 0, "user messages must have non-empty content"},
		{"empty answer", an(hi+`,{"role":"assistant","content":[]},`+hi, ""), 0, "all messages must have non-empty content"},
		{"empty text", an(`{"role":"user","content":""}`, ""), 0, "text content blocks must be non-empty"},
		{"blank text", block(`{"type":"text","text":" "}`), 0, "must contain non-whitespace text"},
		{"empty system", an(hi, `,"system":""`), 0, "system: text content blocks must be non-empty"},
		{"prefill", an(hi+`,{"role":"assistant","content":"a "}`, ""), 0, "cannot end with trailing whitespace"},
		{"no result", an(hi+use+`,{"role":"user","content":"b"}`, ""), 0, "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1"},
		{"no result at the end", an(hi+use, ""), 0, "without `tool_result` blocks immediately after: t1"},
		{"text before the result", an(hi+use+`,{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"t1"}]}`, ""), 0, "immediately after: t1"},
		{"result without call", an(hi+`,{"role":"assistant","content":"a"}`+res, ""), 0, "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1"},
		{"two results", an(hi+use+res+res, ""), 0, "each tool_use must have a single result"},
		{"duplicate call", an(hi+use+res+use+res, ""), 0, "`tool_use` ids must be unique"},
		{"call id", an(hi+strings.Replace(use, `"t1"`, `"t:1"`, 1), ""), 0, "tool_use.id: String should match pattern"},
		{"call input", an(hi+strings.Replace(use, `"input":{}`, `"input":"x"`, 1), ""), 0, "tool_use.input: Input should be a valid dictionary"},
		{"call of the user", block(`{"type":"tool_use","id":"t1","name":"add","input":{}}`), 0, "can only be in `assistant` messages"},
		{"failed with an image", an(hi+use+`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"image","source":{"type":"url","url":"https://a/b"}}]}]}`, ""), 0, "all content must be type `text` if `is_error` is true"},
		{"tool name", tool(`{"name":"a.b","input_schema":{"type":"object"}}`), 0, "tools.0.custom.name: String should match pattern"},
		{"tool twice", tool(`{"name":"a","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"}}`), 0, "Tool names must be unique"},
		{"no schema", tool(`{"name":"a"}`), 0, "input_schema: Field required"},
		{"schema type", tool(`{"name":"a","input_schema":{}}`), 0, "input_schema.type: Field required"},
		{"schema of an array", tool(`{"name":"a","input_schema":{"type":"array"}}`), 0, "Input should be 'object'"},
		{"schema union", tool(`{"name":"a","input_schema":{"type":"object","anyOf":[]}}`), 0, "does not support oneOf, allOf, or anyOf"},
		{"schema key", tool(`{"name":"a","input_schema":{"type":"object","properties":{"a b":{}}}}`), 0, "Property keys should match"},
		{"choice", an(hi, `,"tools":[{"name":"a","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"b"}`), 0, "Tool 'b' not found"},
		{"choice without tools", an(hi, `,"tool_choice":{"type":"any"}`), 0, "only be specified while providing tools"},
		{"breakpoints", block(strings.Repeat(`{"type":"text","text":"a",`+cache+`},`, 4) + `{"type":"text","text":"a",` + cache + `}`), 0, "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"cached thinking", an(hi+`,{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"b",`+cache+`}]}`, ""), 0, "thinking.cache_control: Extra inputs are not permitted"},
		{"lifetime", block(`{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"2h"}}`), 0, "Input should be '5m' or '1h'"},
		{"lifetime order", block(`{"type":"text","text":"a",` + cache + `},{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}`), 0, "must not come after a ttl='5m'"},
		{"signature", an(hi+`,{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"b"},{"type":"text","text":"a"}]},`+hi, ""), 0, "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{"redacted", an(hi+`,{"role":"assistant","content":[{"type":"redacted_thinking","data":"b"},{"type":"text","text":"a"}]},`+hi, ""), 0, "Invalid `data` in `redacted_thinking` block"},
		{"thinking of the user", block(`{"type":"thinking","thinking":"a","signature":"b"}`), 0, "can only be in `assistant`"},
		{"no thinking before the call", an(hi+use+res, think), 0, "Expected `thinking` or `redacted_thinking`, but found `tool_use`"},
		{"budget", an(hi, `,"thinking":{"type":"enabled","budget_tokens":10}`), 0, "greater than or equal to 1024"},
		{"budget and limit", an(hi, `,"thinking":{"type":"enabled","budget_tokens":4000}`), 0, "`max_tokens` must be greater than"},
		{"temperature", an(hi, think+`,"temperature":0.5`), 0, "`temperature` may only be set to 1 when thinking is enabled"},
		{"top_p", an(hi, think+`,"top_p":0.5`), 0, "`top_p` must be greater than or equal to 0.95"},
		{"top_k", an(hi, think+`,"top_k":5`), 0, "`top_k` must be unset"},
		{"forced", an(hi, think+`,"tools":[{"name":"a","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}`), 0, "Thinking may not be enabled when tool_choice forces tool use"},
		{"adaptive", an(hi, `,"thinking":{"type":"adaptive"}`), 0, "adaptive thinking is not supported on this model"},
		{"manual", strings.Replace(an(hi, think), "sonnet-4-5", "opus-4-8", 1), 0, "is not supported for this model"},
		{"effort", an(hi, `,"output_config":{"effort":"low"}`), 0, "does not support the effort parameter"},
		{"both", an(hi, `,"temperature":0.5,"top_p":0.5`), 0, "cannot both be specified"},
		{"range", an(hi, `,"temperature":1.5`), 0, "temperature: range: 0..1"},
		{"sampling", strings.Replace(an(hi, `,"top_p":0.5`), "sonnet-4-5", "opus-4-8", 1), 0, "are not supported on this model"},
		{"prefill", strings.Replace(an(hi+`,{"role":"assistant","content":"The"}`, ""), "sonnet-4-5", "opus-4-8", 1), 0, "does not support assistant message prefill"},
		{"image type", image("image/bmp", ""), 0, "Input should be 'image/jpeg'"},
		{"image data", image("image/png", "!"), 0, "invalid base64"},
		{"image", image("image/png", "AAAA"), 0, "Could not process image"},
		{"image of another type", image("image/jpeg", "iVBORw0KGgoAAAANSUhEUg=="), 0, "appears to be a image/png image"},
		{"image size", image("image/png", strings.Repeat("A", 5<<20+4)), 0, "image exceeds 5 MB maximum"},
		{"image URL", block(`{"type":"image","source":{"type":"url","url":"http://a/b"}}`), 0, "Only HTTPS URLs are supported"},
		{"document", block(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}`), 0, "PDF specified was not valid"},
		{"window", an(`{"role":"user","content":"`+strings.Repeat("word ", 170_000)+`"}`, ""), 0, "tokens > 200000 maximum"},
		{"window and limit", an(`{"role":"user","content":"`+strings.Repeat("word ", 158_000)+`"}`, ""), 0, "exceed context limit"},
	})
	for _, b := range w.Bills() {
		if !b.Failed || b.Usage != (abi.Usage{}) || b.Cost != 0 {
			t.Errorf("a rejected request cost %+v", b)
		}
	}
	if status, answer, _ := w.post("/v1/nothing", "{}"); status != http.StatusNotFound {
		t.Errorf("no endpoint: %d %s", status, answer)
	}
}

// TestAnthropicKeepsThinking holds that thinking which a turn needs can neither be changed nor dropped.
func TestAnthropicKeepsThinking(t *testing.T) {
	t.Parallel()
	w := open(t, providertest.Config{Reply: func(q providertest.Query) providertest.Answer {
		a := thinker(q)
		if len(a.Calls) > 0 {
			a.Content = append(a.Content, abi.ContentBlock{Type: abi.BlockThinking, Text: "Both at once."})
		}
		return a
	}})
	c := w.anthropic()
	p := anthropic.MessageNewParams{
		Model: "claude-opus-4-8", MaxTokens: 4000, Messages: asked("2+3?"), Tools: addTools(),
		Thinking: anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{}},
	}
	m, err := c.Messages.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	results := anthropic.NewUserMessage(anthropic.NewToolResultBlock("toolu_1", "5", false), anthropic.NewToolResultBlock("toolu_2", "6", false))
	dropped := m.ToParam()
	dropped.Content = dropped.Content[1:]
	second := m.ToParam()
	second.Content = slices.Delete(slices.Clone(second.Content), 2, 3)
	changed := m.ToParam()
	changed.Content[0].OfThinking.Thinking += "!"
	for _, b := range []struct {
		answer anthropic.MessageParam
		want   string
	}{
		{dropped, "Expected `thinking` or `redacted_thinking`, but found `text`"},
		{second, "blocks in the latest assistant message cannot be modified"},
		{changed, "Invalid `signature` in `thinking` block"},
	} {
		p.Messages = append(asked("2+3?"), b.answer, results)
		if _, err := c.Messages.New(t.Context(), p); err == nil || !strings.Contains(err.Error(), b.want) {
			t.Errorf("got %v, want %s", err, b.want)
		}
	}
	p.Messages = append(asked("2+3?"), m.ToParam(), results)
	if _, err := c.Messages.New(t.Context(), p); err != nil {
		t.Error(err)
	}
}

func TestAnthropicCache(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := open(t, providertest.Config{Now: func() time.Time { return now }})
	c := w.anthropic()
	long := strings.Repeat("The system prompt goes on and on. ", 300)
	ask := func(ttl anthropic.CacheControlEphemeralTTL, fill int) anthropic.Usage {
		t.Helper()
		system := anthropic.TextBlockParam{Text: long, CacheControl: anthropic.CacheControlEphemeralParam{TTL: ttl}}
		var blocks []anthropic.ContentBlockParamUnion
		for range fill {
			blocks = append(blocks, anthropic.NewTextBlock("x"))
		}
		m, err := c.Messages.New(t.Context(), anthropic.MessageNewParams{
			Model: "claude-sonnet-4-5", MaxTokens: 100, System: []anthropic.TextBlockParam{system}, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(blocks...)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return m.Usage
	}
	first := ask("5m", 1)
	if first.CacheCreationInputTokens < 2000 || first.CacheReadInputTokens != 0 || first.InputTokens > 20 {
		t.Errorf("the first request: %s", first.RawJSON())
	}
	for range 3 { // each read begins the lifetime anew
		now = now.Add(4 * time.Minute)
		if u := ask("5m", 2); u.CacheReadInputTokens != first.CacheCreationInputTokens || u.CacheCreationInputTokens != 0 {
			t.Errorf("a read: %s", u.RawJSON())
		}
	}
	now = now.Add(5 * time.Minute)
	if u := ask("1h", 1); u.CacheReadInputTokens != 0 || u.CacheCreation.Ephemeral1hInputTokens != first.CacheCreationInputTokens {
		t.Errorf("after the lifetime: %s", u.RawJSON())
	}
	now = now.Add(50 * time.Minute)
	if u := ask("1h", 1); u.CacheReadInputTokens != first.CacheCreationInputTokens {
		t.Errorf("within the hour: %s", u.RawJSON())
	}
	bills := w.Bills()
	want := (float64(first.InputTokens) + 1.25*float64(first.CacheCreationInputTokens)) * 3 / 1e6
	want += float64(first.OutputTokens) * 15 / 1e6
	if d := bills[0].Cost - want; d > 1e-9 || d < -1e-9 {
		t.Errorf("the first request cost %v, want %v", bills[0].Cost, want)
	}
}

// TestAnthropicLooksBack holds that a breakpoint finds a prefix at most 20 blocks before it.
func TestAnthropicLooksBack(t *testing.T) {
	t.Parallel()
	for added, found := range map[int]bool{18: true, 19: true, 20: false} {
		w := open(t, providertest.Config{})
		body := func(n int) string {
			return `{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":[{"type":"text","text":"` +
				strings.Repeat("word ", 1000) + `"}` + strings.Repeat(`,{"type":"text","text":"x"}`, n) + `]}],"cache_control":{"type":"ephemeral"}}`
		}
		w.post(messagesPath, body(0))
		w.post(messagesPath, body(added))
		if u := w.Bills()[1].Usage; (u.CacheReadTokens > 0) != found {
			t.Errorf("%d blocks later: %+v", added, u)
		}
	}
}

// TestAnthropicSystemTurns: newer models take system messages in the list, which clients send after what the user says.
func TestAnthropicSystemTurns(t *testing.T) {
	t.Parallel()
	var got []abi.Role
	w := open(t, providertest.Config{Reply: func(q providertest.Query) providertest.Answer {
		for _, m := range q.Messages {
			got = append(got, m.Role)
		}
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("ok")}}
	}})
	const use = `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"add","input":{}}]}`
	body := an(`{"role":"user","content":"hi"},{"role":"system","content":"Be brief."},`+use+
		`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"5"}]},{"role":"system","content":[{"type":"text","text":"Hurry."}]}`, "")
	w.post(messagesPath, strings.Replace(body, "sonnet-4-5", "opus-4-8", 1))
	if want := []abi.Role{abi.RoleUser, abi.RoleSystem, abi.RoleAssistant, abi.RoleTool, abi.RoleSystem}; !slices.Equal(got, want) {
		t.Errorf("the model reads %v, want %v", got, want)
	}
}
