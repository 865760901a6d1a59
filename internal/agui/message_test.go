package agui_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/agui"
)

// TestMessages: the snapshot of a log has the messages of the protocol, without those of the runtime.
func TestMessages(t *testing.T) {
	t.Parallel()
	log, _ := json.Marshal([]abi.Message{
		{ID: "u", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("what is it?"), {Type: abi.BlockImage, MediaType: "image/png", Data: "AA=="}}},
		{ID: "i", Role: abi.RoleUser, Visibility: abi.VisibilityInternal, Content: []abi.ContentBlock{abi.Text("secret")}},
		{
			ID: "a", Role: abi.RoleAssistant, Content: []abi.ContentBlock{{Type: abi.BlockThinking, Text: "hm", Signature: "sig"}, abi.Text("a cat")},
			ToolCalls: []abi.ToolCall{{ID: "c", Name: "look", Arguments: map[string]any{"x": 1}}},
		},
		{ID: "t", Role: abi.RoleTool, ToolCallID: "c", Content: []abi.ContentBlock{abi.Text("found")}},
	})
	tr := agui.Translator{Thread: "t", Run: "r"}
	list := tr.Events("messages_snapshot", agui.Fields{"messages": log})
	got, _ := json.Marshal(list[len(list)-1]["messages"])
	want := `[{"content":[{"type":"text","text":"what is it?"},{"type":"image","source":{"type":"data","value":"AA==","mimeType":"image/png"}}],"id":"u","role":"user"},` +
		`{"content":"hm","encryptedValue":"sig","id":"a-reasoning","role":"reasoning"},` +
		`{"content":"a cat","id":"a","role":"assistant","toolCalls":[{"function":{"arguments":"{\"x\":1}","name":"look"},"id":"c","type":"function"}]},` +
		`{"content":"found","id":"t","role":"tool","toolCallId":"c"}]`
	if string(got) != want {
		t.Errorf("the messages are\n%s, want\n%s", got, want)
	}
}

// TestMessage: what a user says becomes a message, and what cannot be said is refused.
func TestMessage(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`"hi"`:                          `{"id":"m","role":"user","content":[{"type":"text","text":"hi"}]}`,
		`[{"type":"text","text":"hi"}]`: `{"id":"m","role":"user","content":[{"type":"text","text":"hi"}]}`,
		`[{"type":"image","source":{"type":"url","value":"https://a.b/c.png"}}]`:                   `{"id":"m","role":"user","content":[{"type":"image","url":"https://a.b/c.png"}]}`,
		`[{"type":"document","source":{"type":"data","value":"AA","mimeType":"application/pdf"}}]`: `{"id":"m","role":"user","content":[{"type":"document","media_type":"application/pdf","data":"AA"}]}`,
		`[{"type":"image","source":{"type":"file","value":"f"}}]`:                                  "neither data nor url",
		`[{"type":"image"}]`: "no source",
		`[{"type":"shell"}]`: "none of text",
		`[]`:                 "neither a text nor a list",
		`7`:                  "neither a text nor a list",
	} {
		var v any
		_ = json.Unmarshal([]byte(content), &v)
		m, err := agui.Message{ID: "m", Role: "user", Content: v}.Message()
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", content, err, want)
			}
			continue
		}
		if got, _ := json.Marshal(m); string(got) != want {
			t.Errorf("%s is %s, want %s", content, got, want)
		}
	}
}

// TestLatest: of a conversation, only what the user said last is new.
func TestLatest(t *testing.T) {
	t.Parallel()
	for roles, want := range map[string]int{"": 0, "user": 1, "user assistant": 0, "user assistant user user": 2, "system user": 1, "user tool": 0} {
		var list []agui.Message
		for role := range strings.FieldsSeq(roles) {
			list = append(list, agui.Message{Role: role})
		}
		if got := len(agui.Latest(list)); got != want {
			t.Errorf("%s: %d, want %d", roles, got, want)
		}
	}
}
