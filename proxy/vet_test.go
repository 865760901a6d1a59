package proxy_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// answers is a plugin that replaces answers.
func answers(policy abi.FailurePolicy, answer func(r *abi.Response) (*abi.Message, error)) hook {
	return hook{
		name: "editor", hooks: []abi.Hook{{Phase: abi.AfterInference, Mode: abi.ModeTransform, OnFailure: policy}},
		answer: func(e *abi.Event) (*abi.Reply, error) {
			m, err := answer(e.Response)
			if m == nil || err != nil {
				return nil, err
			}
			return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceResponse, Message: m}}}, nil
		},
	}
}

// A plugin replaces the model's answer before the client has any of it: text and calls, a call by another one, a call by a text, and a text
// by a call, which the gates then judge. The client and the provider have one and the same history, and an answer without an opinion is as it
// came.
func TestReplaced(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		const secret = "the secret plan"
		var bodies []string
		up := fake(t, func(q providertest.Query) providertest.Answer {
			bodies = append(bodies, string(q.Body))
			a := providertest.Answer{Content: []abi.ContentBlock{abi.Text("Here is " + secret)}}
			switch q.N {
			case 1:
				a.Calls = []abi.ToolCall{call("c1", "bash", "rm -rf /"), call("c2", "read", "x")}
			case 2:
				a.Calls = []abi.ToolCall{call("c3", "bash", "x")}
			case 4:
				a.Content[0].Text = "nothing of note"
			}
			return a
		})
		n := 0
		s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, answers(abi.FailIgnore, func(r *abi.Response) (*abi.Message, error) {
			text := r.Message.Text()
			if !strings.Contains(text, secret) {
				return nil, nil
			}
			m := abi.Message{Content: []abi.ContentBlock{abi.Text(strings.ReplaceAll(text, secret, "***"))}}
			n++
			switch n {
			case 1:
				m.ToolCalls = []abi.ToolCall{{ID: "c1", Name: "bash", Arguments: map[string]any{"command": "ls"}}}
			case 3:
				m.ToolCalls = []abi.ToolCall{{Name: "read", Arguments: map[string]any{"command": "forbidden"}}, {Name: "read", Arguments: map[string]any{"command": "y"}}}
			}
			return &m, nil
		}), gate(func(c *abi.ToolCall) *abi.Reply {
			if args, _ := c.Arguments.(map[string]any); args["command"] == "forbidden" {
				return block("no")
			}
			return nil
		}))})
		a := newAgent(t, p, s.url, stream, "X-Session-Id", "s1")
		a.say("go")
		ans := a.step()
		if c := ans.Calls(); len(c) != 1 || c[0].ID != "c1" || string(c[0].Args) != `{"command":"ls"}` || ans.Text() != "Here is ***" || contains(a.raw, secret) || contains(a.raw, "rm -rf") || ans.StopReason() != abi.StopToolUse {
			t.Fatalf("the client got %s", a.raw)
		}
		a.answer(ans, func(wire.Out) string { return "ran" })
		ans = a.step()
		if len(ans.Calls()) != 0 || ans.Text() != "Here is ***" || ans.StopReason() != abi.StopEndTurn || contains(a.raw, "tool_use") || contains(a.raw, `"tool_calls":[`) {
			t.Fatalf("the client got %s", a.raw)
		}
		a.say("more")
		ans = a.step()
		if c := ans.Calls(); len(c) != 1 || string(c[0].Args) != `{"command":"y"}` || ans.StopReason() != abi.StopToolUse {
			t.Fatalf("the client got %s", a.raw)
		}
		a.answer(ans, func(wire.Out) string { return "ran" })
		if ans = a.step(); ans.Text() != "nothing of note" {
			t.Errorf("the client got %s", a.raw)
		}
		for i, b := range bodies {
			if strings.Contains(b, secret) || i == 3 && !strings.Contains(b, "forbidden") {
				t.Errorf("request %d has %s", i+1, b)
			}
		}
		if c := s.Report().Counts; c["answers_replaced"] != 3 || c["late_effects"] != 0 {
			t.Errorf("%v", c)
		}
	})
}

// A plugin that stops the run at an answer keeps it from the client, and one that must not fail and does so refuses the answer in the shape of
// the protocol (acceptance 35).
func TestReplaced_refused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		up := fake(t, func(q providertest.Query) providertest.Answer {
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("dangerous")}, Calls: []abi.ToolCall{call(fmt.Sprint("c", q.N), "bash", "x")}}
		})
		s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, hook{
			name: "stopper", hooks: []abi.Hook{{Phase: abi.AfterInference, Mode: abi.ModeGate}},
			answer: func(*abi.Event) (*abi.Reply, error) {
				return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectStop, Code: "no", Detail: "this goes too far"}}}, nil
			},
		})})
		a := newAgent(t, p, s.url, stream)
		a.say("go")
		if ans := a.step(); len(ans.Calls()) != 0 || !strings.Contains(ans.Text(), "this goes too far") || contains(a.raw, "dangerous") {
			t.Errorf("the client got %s", a.raw)
		}
		for policy, refused := range map[abi.FailurePolicy]bool{abi.FailRun: true, abi.FailIgnore: false} {
			s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, answers(policy, func(*abi.Response) (*abi.Message, error) {
				return nil, errors.New("out of order")
			}))})
			a := newAgent(t, p, s.url, stream)
			a.say("go")
			resp, raw := post(t, a.url+a.path(), a.body())
			switch {
			case !refused:
				if resp.StatusCode != http.StatusOK || !contains(raw, "dangerous") {
					t.Errorf("the client got %s", raw)
				}
			case contains(raw, "dangerous") || !contains(raw, "editor"):
				t.Errorf("the client got %s", raw)
			case stream && !a.read(raw).Failed || !stream && resp.StatusCode != http.StatusForbidden:
				t.Errorf("it is no refusal: %s %s", resp.Status, raw)
			}
		}
	})
}

// What a plugin at after_inference that fails closed has not seen the client does not get, however the answer comes: text before or without the
// beginning, text at the end alone or behind it, before an error, too much of it, and bytes that cannot be read.
func TestReplaced_unseen(t *testing.T) {
	t.Parallel()
	const secret = "the secret plan"
	text := func(s string) string {
		return events(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+s+`"}}`, `{"type":"content_block_stop","index":0}`)
	}
	end := events(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`)
	chat := func(s string) string {
		return `{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"` + s + `"},"finish_reason":null}]}`
	}
	const item = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + secret + `"}]}`
	const stop = `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	for name, c := range map[string]struct {
		path, ask, answer, encoding string
		refused                     bool
	}{
		"messages":                   {"/v1/messages", hello, events(begunMessage) + text(secret) + end, "", false},
		"messages, no beginning":     {"/v1/messages", hello, text(secret) + end, "", false},
		"messages, in the beginning": {"/v1/messages", hello, events(strings.Replace(begunMessage, `"content":[]`, `"content":[{"type":"text","text":"`+secret+`"}]`, 1)) + end, "", true},
		"messages, behind the end":   {"/v1/messages", hello, events(begunMessage) + end + text(secret), "", false},
		"messages, an error":         {"/v1/messages", hello, events(begunMessage) + text(secret) + events(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`) + text(secret) + end, "", true},
		"messages, too much":         {"/v1/messages", hello, events(begunMessage) + strings.Repeat(text(secret+strings.Repeat("x", 64<<10)), 130) + end, "", true},
		"messages, an encoding":      {"/v1/messages", hello, text(secret), "unknown", true},
		"responses, only the end":    {"/v1/responses", respHello, events(`{"type":"response.created","response":{"id":"r"}}`, `{"type":"response.completed","response":{"id":"r","status":"completed","output":[`+item+`]}}`), "", true},
		"chat, in the first chunk":   {"/v1/chat/completions", chatHello, events(chat(secret), stop, "[DONE]"), "", false},
		"chat, no beginning":         {"/v1/chat/completions", chatHello, strings.ReplaceAll(events(chat(secret), chat(secret), stop, "[DONE]"), `"id":"c",`, ""), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", sseType)
				if c.encoding != "" {
					w.Header().Set("Content-Encoding", c.encoding)
				}
				_, _ = w.Write([]byte(c.answer))
			})
			s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, answers(abi.FailRun, func(r *abi.Response) (*abi.Message, error) {
				if text := r.Message.Text(); strings.Contains(text, secret) {
					return &abi.Message{Content: []abi.ContentBlock{abi.Text(strings.ReplaceAll(text, secret, "***"))}}, nil
				}
				return nil, nil
			}))})
			resp, got := post(t, s.url+c.path, c.ask)
			if contains(got, secret) || len(got) == 0 {
				t.Errorf("the client got %s %.2000s", resp.Status, got)
			}
			if refused := contains(got, "error") || contains(got, "failed"); refused != c.refused {
				t.Errorf("refused is %t: %.2000s", refused, got)
			}
		})
	}
}
