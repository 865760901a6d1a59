package main

import (
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func event(r *mortise.ToolResult) *mortise.Event {
	return &mortise.Event{ABI: 1, Phase: mortise.AfterToolExecute, Result: r, ResultMessageID: "m1"}
}

func secret() string { return "ghp_" + strings.Repeat("a1B2", 9) }

func TestReply(t *testing.T) {
	t.Parallel()
	image := mortise.ContentBlock{Type: mortise.BlockImage, Data: secret()}
	r, err := onPhase(event(&mortise.ToolResult{Content: []mortise.ContentBlock{
		mortise.Text("a " + secret()), image, mortise.Text("DB_PASSWORD=hunter22"),
	}}))
	if err != nil || r == nil || len(r.Effects) != 1 {
		t.Fatalf("reply %+v, error %v", r, err)
	}
	e := r.Effects[0]
	if e.Type != mortise.EffectReplaceMessage || e.MessageID != "m1" || e.Note != "2 credentials: assignment 1, github_token 1" {
		t.Errorf("effect %+v", e)
	}
	if got := e.Content[0].Text + e.Content[2].Text; got != "a [REDACTED:github_token]DB_PASSWORD=[REDACTED:assignment]" {
		t.Errorf("content %q", got)
	}
	if e.Content[1].Data != image.Data {
		t.Error("the image changed")
	}
	for _, u := range r.Updates {
		if u.Op != mortise.OpAdd || u.Value != int64(1) {
			t.Errorf("update %+v", u)
		}
	}
}

func TestDataIsRendered(t *testing.T) {
	t.Parallel()
	r, err := onPhase(event(&mortise.ToolResult{Data: map[string]any{"b": []any{secret()}, "a": int64(1), "password": "hunter22"}}))
	if err != nil || r == nil {
		t.Fatalf("reply %v, error %v", r, err)
	}
	if got := r.Effects[0].Content[0].Text; got != `{"a":1,"b":["[REDACTED:github_token]"],"password":"[REDACTED:assignment]"}` {
		t.Errorf("content %s", got)
	}
}

func TestNoOpinion(t *testing.T) {
	t.Parallel()
	for _, r := range []*mortise.ToolResult{nil, {}, {Message: "fine"}, {Content: []mortise.ContentBlock{mortise.Text("ok")}}} {
		if reply, err := onPhase(event(r)); reply != nil || err != nil {
			t.Errorf("%+v: reply %+v, error %v", r, reply, err)
		}
	}
}

// TestSecretNowhereInReply encodes the whole reply, as a guest does.
func TestSecretNowhereInReply(t *testing.T) {
	t.Parallel()
	in, err := mortise.Marshal(event(&mortise.ToolResult{Message: "x " + secret()}))
	if err != nil {
		t.Fatal(err)
	}
	p := plugin.Plugin{Description: description(), OnPhase: onPhase}
	out, err := p.Call("on_phase", in)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), secret()) || !strings.Contains(string(out), "[REDACTED:github_token]") {
		t.Errorf("reply %q", out)
	}
}
