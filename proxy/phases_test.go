package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store/memstore"
)

// hook is a plugin of one function.
type hook struct {
	name   string
	hooks  []abi.Hook
	answer func(e *abi.Event) (*abi.Reply, error)
}

func (h hook) Describe() abi.Description { return abi.Description{Name: h.name, Hooks: h.hooks} }

func (h hook) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) { return h.answer(e) }

func gate(answer func(c *abi.ToolCall) *abi.Reply) hook {
	return hook{
		name: "gate", hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeGate}},
		answer: func(e *abi.Event) (*abi.Reply, error) { return answer(e.Call), nil },
	}
}

func block(reason string) *abi.Reply {
	return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: reason}}
}

func call(id, name, command string) abi.ToolCall {
	return abi.ToolCall{ID: id, Name: name, Arguments: map[string]any{"command": command}}
}

// results are the texts of the results that a model has seen, by call.
func results(q providertest.Query) map[string]string {
	out := map[string]string{}
	for _, m := range q.Messages {
		if m.Role == abi.RoleTool {
			out[m.ToolCallID] = m.Text()
		}
	}
	return out
}

// The only call is blocked: the model learns the reason and answers in the same turn, and the pair is in each later
// request (acceptance 29, 33).
func TestBlockedAlone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		var seen []map[string]string
		up := fake(t, func(q providertest.Query) providertest.Answer {
			seen = append(seen, results(q))
			if q.N == 1 {
				return providertest.Answer{Content: []abi.ContentBlock{abi.Text("I try.")}, Calls: []abi.ToolCall{call("call_1", "bash", "rm -rf /")}}
			}
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("I see.")}}
		})
		db := memstore.New()
		cfg := proxy.Config{Store: db, Runtime: runtimeOf(t, gate(func(*abi.ToolCall) *abi.Reply { return block("never delete") }))}
		s := start(t, up.URL(), cfg)
		a := newAgent(t, p, s.url, stream, "X-Session-Id", "s1")
		a.say("clean up")
		ans := a.step()
		if ans.Text() != "I try.I see." || len(ans.Calls()) != 0 || contains(a.raw, "rm -rf") || ans.StopReason() != abi.StopEndTurn {
			t.Fatalf("the client got %s", a.raw)
		}
		if !strings.Contains(seen[1]["call_1"], "never delete") {
			t.Fatalf("the model saw %v", seen[1])
		}
		a.say("and now?")
		a.step()
		if !strings.Contains(seen[2]["call_1"], "never delete") {
			t.Errorf("the next request has lost the pair: %v", seen[2])
		}
		again := start(t, up.URL(), proxy.Config{Store: db, Runtime: cfg.Runtime}) // a restart
		a.url = again.url
		a.say("and then?")
		a.step()
		if len(seen) != 4 || !strings.Contains(seen[3]["call_1"], "never delete") {
			t.Errorf("after a restart the pair is lost: %v", seen)
		}
	})
}

// A blocked call alone behind an input that is a string: the model gets the words, its call and the reason.
func TestBlockedAlone_string(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{true, false} {
		up := fake(t, func(q providertest.Query) providertest.Answer {
			if text := results(q)["c1"]; q.N == 2 && (len(q.Messages) != 3 || q.Messages[0].Text() != "hi" || !strings.Contains(text, "never")) {
				t.Errorf("the model saw %+v", q.Messages)
			}
			if q.N == 1 {
				return providertest.Answer{Calls: []abi.ToolCall{call("c1", "bash", "rm -rf /")}}
			}
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("I see.")}}
		})
		s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, noRm())})
		a := newAgent(t, wire.Responses, s.url, stream)
		body := strings.Replace(a.body(), `"input":[]`, `"input":"hi"`, 1)
		if _, got := post(t, a.url+a.path(), body); contains(got, "rm -rf") || a.read(got).Text() != "I see." || len(up.Bills()) != 2 {
			t.Errorf("the client got %s", got)
		}
	}
}

// One of three parallel calls is blocked: the others run (acceptance 28, 32).
func TestBlockedBeside(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		var seen []map[string]string
		up := fake(t, func(q providertest.Query) providertest.Answer {
			seen = append(seen, results(q))
			if q.N == 1 {
				return providertest.Answer{Calls: []abi.ToolCall{call("c1", "bash", "ls"), call("c2", "bash", "rm"), call("c3", "read", "x")}}
			}
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done")}}
		})
		s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, gate(func(c *abi.ToolCall) *abi.Reply {
			if c.ID == "c2" {
				return block("no")
			}
			return nil
		}))})
		a := newAgent(t, p, s.url, stream, "X-Session-Id", "s1")
		a.say("go")
		ans := a.step()
		if len(ans.Calls()) != 2 || contains(a.raw, `"rm`) || ans.StopReason() != abi.StopToolUse {
			t.Fatalf("the client got %s", a.raw)
		}
		a.answer(ans, func(c wire.Out) string { return "ran " + c.ID })
		a.step()
		a.say("more")
		a.step()
		for _, r := range seen[1:] {
			if r["c1"] != "ran c1" || !strings.Contains(r["c2"], "no") || r["c3"] != "ran c3" {
				t.Errorf("the model saw %v", r)
			}
		}
	})
}

// Rewritten arguments reach the client, which runs and keeps them (acceptance 30).
func TestRewritten(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		up := fake(t, func(q providertest.Query) providertest.Answer {
			if q.N == 1 {
				return providertest.Answer{Content: []abi.ContentBlock{abi.Text("so")}, Calls: []abi.ToolCall{call("c1", "bash", "ls"), call("c2", "bash", "pwd")}}
			}
			for _, m := range q.Messages {
				for _, c := range m.ToolCalls {
					if args, _ := c.Arguments.(map[string]any); c.ID == "c1" && args["command"] != "ls -l" {
						t.Errorf("the provider has %v", args)
					}
				}
			}
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done")}}
		})
		s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, hook{
			name: "rewrite", hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeTransform}},
			answer: func(e *abi.Event) (*abi.Reply, error) {
				if e.Call.ID != "c1" {
					return nil, nil
				}
				return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectRewriteCall, Arguments: map[string]any{"command": "ls -l"}}}}, nil
			},
		})})
		a := newAgent(t, p, s.url, stream, "X-Session-Id", "s1")
		a.say("go")
		ans := a.step()
		calls := ans.Calls()
		if len(calls) != 2 || string(calls[0].Args) != `{"command":"ls -l"}` || calls[0].ID != "c1" {
			t.Fatalf("the client got %s", a.raw)
		}
		a.answer(ans, func(wire.Out) string { return "ok" })
		a.step()
	})
}

// A plugin that rewrites one argument, at the gate or in the answer, changes no other one, whatever its number (acceptance 30).
func TestRewritten_numbers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		up := fake(t, func(providertest.Query) providertest.Answer {
			c := call("c1", "bash", "ls")
			c.Arguments = json.RawMessage(`{"big":[18446744073709551617,7],"command":"ls","issue":9007199254740993,"part":1.10}`)
			return providertest.Answer{Calls: []abi.ToolCall{c}}
		})
		more := func(args any) any {
			m, _ := args.(map[string]any)
			m = maps.Clone(m)
			big, _ := m["big"].([]any)
			m["command"], m["big"] = "ls -l", []any{big[0], int64(8)}
			return m
		}
		for _, h := range []hook{
			{
				name: "rewrite", hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeTransform}},
				answer: func(e *abi.Event) (*abi.Reply, error) {
					return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectRewriteCall, Arguments: more(e.Call.Arguments)}}}, nil
				},
			},
			answers(abi.FailRun, func(r *abi.Response) (*abi.Message, error) {
				r.Message.ToolCalls[0].Arguments = more(r.Message.ToolCalls[0].Arguments)
				return &r.Message, nil
			}),
		} {
			s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, h)})
			a := newAgent(t, p, s.url, stream)
			a.say("go")
			if calls := a.step().Calls(); len(calls) != 1 || string(calls[0].Args) != `{"big":[18446744073709551617,8],"command":"ls -l","issue":9007199254740993,"part":1.10}` {
				t.Errorf("%s: the client got %s", h.name, a.raw)
			}
		}
	})
}

// offered are tools of a plugin.
type offered struct {
	mu    sync.Mutex
	calls []string
}

func (o *offered) Tools() []abi.Tool {
	return []abi.Tool{{Name: "lookup", Description: "looks up", Parameters: map[string]any{"type": "object"}}}
}

func (o *offered) CallTool(_ context.Context, c abi.ToolCall) (abi.ToolResult, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, c.ID)
	return abi.ToolResult{Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text("found for " + c.ID)}}, nil
}

// Hidden tools, twice in a row and next to a visible call: no byte of them reaches the client, and the model has their
// results in each later request (acceptance 27, 31, 32; F24).
func TestHidden(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		var seen []map[string]string
		var tools []int
		up := fake(t, func(q providertest.Query) providertest.Answer {
			seen, tools = append(seen, results(q)), append(tools, len(q.Tools))
			switch q.N {
			case 1:
				return providertest.Answer{Content: []abi.ContentBlock{abi.Text("one ")}, Calls: []abi.ToolCall{call("h1", "lookup", "x")}}
			case 2:
				return providertest.Answer{Content: []abi.ContentBlock{abi.Text("two ")}, Calls: []abi.ToolCall{call("h2", "lookup", "y")}}
			case 3:
				return providertest.Answer{Content: []abi.ContentBlock{abi.Text("three")}, Calls: []abi.ToolCall{call("v1", "bash", "ls"), call("h3", "lookup", "z"), call("v2", "read", "x")}}
			}
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done")}}
		})
		o := &offered{}
		s := start(t, up.URL(), proxy.Config{Tools: o, Runtime: runtimeOf(t)})
		a := newAgent(t, p, s.url, stream, "X-Session-Id", "s1")
		a.say("go")
		ans := a.step()
		if c := ans.Calls(); ans.Text() != "one two three" || len(c) != 2 || string(c[0].Args) != `{"command":"ls"}` || string(c[1].Args) != `{"command":"x"}` || contains(a.raw, "lookup") {
			t.Fatalf("the client got %s", a.raw)
		}
		a.answer(ans, func(c wire.Out) string { return "ran " + c.ID })
		a.step()
		a.say("again")
		a.step()
		if want := []string{"h1", "h2", "h3"}; !slices.Equal(o.calls, want) {
			t.Errorf("executed %v", o.calls)
		}
		for _, r := range seen[3:] {
			if r["h1"] != "found for h1" || r["h2"] != "found for h2" || r["h3"] != "found for h3" || r["v1"] != "ran v1" || r["v2"] != "ran v2" {
				t.Errorf("the model saw %v", r)
			}
		}
		for _, n := range tools {
			if n != 3 {
				t.Errorf("tools changed: %v", tools)
			}
		}
	})
}

// A plugin's change of a result is in each later request, in retries and after a restart, and no byte of the original
// goes upstream or to the log (acceptance 34, 52).
func TestRedacted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		const secret = "hunter2-very-secret"
		var bodies [][]byte
		up := fake(t, func(q providertest.Query) providertest.Answer {
			bodies = append(bodies, q.Body)
			if q.N == 1 {
				return providertest.Answer{Calls: []abi.ToolCall{call("c1", "bash", "env")}}
			}
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done")}}
		})
		db := memstore.New()
		fired := 0
		cfg := proxy.Config{Store: db, Runtime: runtimeOf(t, hook{
			name: "redact", hooks: []abi.Hook{{Phase: abi.AfterToolExecute, Mode: abi.ModeTransform, OnFailure: abi.FailRun}},
			answer: func(e *abi.Event) (*abi.Reply, error) {
				fired++
				if e.Call.Name != "bash" {
					return nil, errors.New("the call is not known")
				}
				r := *e.Result
				r.Content = []abi.ContentBlock{abi.Text(strings.ReplaceAll(r.Content[0].Text, secret, "***"))}
				return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceResult, Result: &r}}}, nil
			},
		})}
		s := start(t, up.URL(), cfg)
		a := newAgent(t, p, s.url, stream, "X-Session-Id", "s1")
		a.say("go")
		a.answer(a.step(), func(wire.Out) string { return "PASSWORD=" + secret })
		a.step()
		a.say("more")
		a.step()
		a.url = start(t, up.URL(), cfg).url
		a.say("again")
		a.step()
		for i, b := range bodies[1:] {
			if contains(b, secret) || !contains(b, "PASSWORD=***") {
				t.Errorf("request %d: %s", i+2, b)
			}
		}
		if fired != 1 {
			t.Errorf("fired %d times", fired)
		}
		for _, e := range logged(t, db) {
			if strings.Contains(e, secret) {
				t.Errorf("the log has %s", e)
			}
		}
	})
}

// A plugin that fails and must not refuses the request in the shape of the protocol; one that may is passed over
// (acceptance 35, 36).
func TestFailing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		up := fake(t, nil)
		for policy, status := range map[abi.FailurePolicy]int{abi.FailRun: 403, abi.FailIgnore: 200} {
			s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, hook{
				name: "broken", hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeTransform, OnFailure: policy}},
				answer: func(*abi.Event) (*abi.Reply, error) { return nil, errors.New("out of order") },
			})})
			a := newAgent(t, p, s.url, stream)
			a.say("hello")
			resp, body := post(t, a.url+a.path(), a.body())
			if resp.StatusCode != status || status == 403 && !contains(body, "broken refuses the request") {
				t.Errorf("%s: status %d: %s", policy, resp.StatusCode, body)
			}
			if status == 403 {
				e, _ := decode(t, body)["error"].(map[string]any)
				if e["message"] == nil || e["type"] == nil {
					t.Errorf("%s", body)
				}
			}
		}
		if n := len(up.Bills()); n != 1 {
			t.Errorf("%d requests went up", n)
		}
	})
}

// Phases fire once: not again for a retry, streamed or not, and run_start at the user's turns (acceptance 21, 22).
func TestRetry(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var fired []abi.Phase
	h := hook{name: "watch", answer: func(e *abi.Event) (*abi.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		fired = append(fired, e.Phase)
		if e.Phase == abi.RunStart {
			return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectAddContext, Context: &abi.ContextMessage{Key: "k", Content: []abi.ContentBlock{abi.Text("CONTEXT")}}}}}, nil
		}
		return nil, nil
	}}
	for _, p := range []abi.Phase{abi.RunStart, abi.BeforeInference, abi.AfterInference, abi.AfterToolExecute, abi.RunEnd} {
		h.hooks = append(h.hooks, abi.Hook{Phase: p, Mode: abi.ModeTransform})
	}
	var bodies []string
	up := fake(t, func(q providertest.Query) providertest.Answer {
		bodies = append(bodies, string(q.Body))
		switch q.N {
		case 1:
			return providertest.Answer{Fault: &providertest.Fault{Status: 529, Type: "overloaded_error", Message: "Overloaded"}}
		case 2:
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("a b c d")}, Fault: &providertest.Fault{ErrorEventAfter: 1, Type: "overloaded_error", Message: "Overloaded"}}
		case 3:
			return providertest.Answer{Calls: []abi.ToolCall{call("c1", "bash", "ls")}}
		}
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done")}}
	})
	s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, h)})
	a := newAgent(t, wire.Messages, s.url, true)
	a.say("go")
	post(t, a.url+a.path(), a.body())
	post(t, a.url+a.path(), a.body())
	a.stream = false
	a.answer(a.step(), func(wire.Out) string { return "x" })
	a.step()
	a.say("next")
	a.step()
	want := []abi.Phase{
		abi.RunStart, abi.BeforeInference, abi.AfterInference, abi.AfterToolExecute, abi.BeforeInference, abi.AfterInference, abi.RunEnd,
		abi.RunStart, abi.BeforeInference, abi.AfterInference, abi.RunEnd,
	}
	if !slices.Equal(fired, want) {
		t.Errorf("fired %v", fired)
	}
	if bodies[0] != bodies[1] || strings.Replace(bodies[1], `"stream":true`, `"stream":false`, 1) != bodies[2] {
		t.Errorf("a retry has other bytes:\n%s\n%s\n%s", bodies[0], bodies[1], bodies[2])
	}
	for i, b := range bodies {
		if want := 1 + i/4; strings.Count(b, "CONTEXT") != want {
			t.Errorf("request %d has the context %d times: %s", i+1, strings.Count(b, "CONTEXT"), b)
		}
	}
}

// A request with an integrity value or an OAuth credential is only observed (acceptance 51).
func TestObserved(t *testing.T) {
	t.Parallel()
	up := newTape(t, nothing)
	s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, gate(func(*abi.ToolCall) *abi.Reply { return block("no") })), Tools: &offered{}})
	body := `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"hi"}],"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cch=12ab3;"}],"tools":[{"name":"bash","input_schema":{"type":"object"}}],"max_tokens":9}`
	post(t, s.url+"/v1/messages", body, "User-Agent", "claude-cli/2.1.330 (external, cli)")
	if sent, _ := up.last(); string(sent) != body {
		t.Errorf("sent %s", sent)
	}
	body = strings.Replace(body, " cch=12ab3;", "", 1)
	post(t, s.url+"/v1/messages", body, "Anthropic-Beta", "a,oauth-2025-04-20", "X-Api-Key", "")
	if sent, _ := up.last(); string(sent) != body {
		t.Errorf("sent %s", sent)
	}
	post(t, s.url+"/v1/messages", body)
	if sent, _ := up.last(); !contains(sent, "lookup") {
		t.Errorf("sent %s", sent)
	}
	body = `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"bash"}}]}`
	post(t, s.url+"/v1/chat/completions", body, "Authorization", "Bearer sk-ant-oat01-x")
	if sent, _ := up.last(); string(sent) != body {
		t.Errorf("sent %s", sent)
	}
	if n := s.Report().Counts["observed_only"]; n != 3 {
		t.Errorf("%d were observed only", n)
	}
}

// Nothing that a project can bring switches plugins off: words in its instructions, a prompt of its own for another agent, or headers beside the
// API key.
func TestObserved_project(t *testing.T) {
	t.Parallel()
	const value = "x-anthropic-billing-header: cc_version=2.1; cch=12ab3;"
	const code, key = "claude-cli/2.1.330 (external, cli)", "sk-ant-api03-x"
	up := newTape(t, nothing)
	s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, gate(func(*abi.ToolCall) *abi.Reply { return block("no") })), Tools: &offered{}})
	for name, c := range map[string]struct {
		system string
		header []string
	}{
		"AGENTS.md":    {`[{"type":"text","text":"You are an agent.\n\n## AGENTS.md\n\n` + value + `"}]`, []string{"User-Agent", code}},
		"the second":   {`[{"type":"text","text":"You are an agent."},{"type":"text","text":"` + value + `"}]`, []string{"User-Agent", code}},
		"another":      {`"` + value + `"`, []string{"User-Agent", "Anthropic/JS 0.91"}},
		"a beta":       {`"You"`, []string{"X-Api-Key", key, "Anthropic-Beta", "oauth-2025-04-20"}},
		"a credential": {`"You"`, []string{"X-Api-Key", key, "Authorization", "Bearer sk-ant-oat01-x"}},
	} {
		post(t, s.url+"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"system":`+c.system+`,"tools":[{"name":"bash","input_schema":{"type":"object"}}]}`, c.header...)
		if sent, _ := up.last(); !contains(sent, "lookup") {
			t.Errorf("%s: sent %s", name, sent)
		}
	}
}

// Two rewriting plugins have one result whichever is faster (acceptance 53: package phases has it for 1,000 latencies).
var _ phases.Plugin = hook{}

// TestScope: a proxy with a gate logs at the start, and after a reload, that it cannot gate tools which run at the provider. Without a gate it
// logs nothing.
func TestScope(t *testing.T) {
	t.Parallel()
	const line = "proxy_provider_tools_not_gated"
	var log strings.Builder
	cfg := proxy.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s := start(t, "http://127.0.0.1:1", cfg)
	if strings.Contains(log.String(), line) {
		t.Error("logged without a gate")
	}
	watch := hook{name: "watch", hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeObserve}}, answer: nothingToSay}
	cfg.Anthropic.URL, cfg.OpenAI.URL, cfg.ChatGPT.URL = "http://127.0.0.1:1", "http://127.0.0.1:1", "http://127.0.0.1:1"
	rewrite := hook{name: "rewrite", hooks: []abi.Hook{{Phase: abi.BeforeToolExecute, Mode: abi.ModeTransform}}, answer: nothingToSay}
	for n, h := range []hook{watch, rewrite} {
		cfg.Runtime = runtimeOf(t, h)
		if _, err := s.With(cfg); err != nil {
			t.Fatal(err)
		}
		if strings.Count(log.String(), line) != n {
			t.Errorf("%s: logged %s", h.name, log.String())
		}
	}
	start(t, "http://127.0.0.1:1", cfg)
	if n := strings.Count(log.String(), line); n != 2 {
		t.Errorf("logged %d times, want 2", n)
	}
}
