package agent_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a model that answers from a list.
type script struct {
	mu       sync.Mutex
	answers  []abi.Message
	requests []llm.Request
	err      error
	during   func()
}

func (s *script) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if s.during != nil {
		s.during()
	}
	if s.err != nil {
		return nil, s.err
	}
	if len(s.answers) == 0 {
		return nil, &llm.Error{Kind: llm.KindProvider, Message: "the script is over"}
	}
	m := s.answers[0]
	s.answers = s.answers[1:]
	return &abi.Response{Model: "script", Message: m, Usage: &abi.Usage{PromptTokens: 10}}, nil
}

// echo is a tool runner that answers with its arguments.
type echo struct {
	mu    sync.Mutex
	calls []string
	list  func() []abi.Tool
	do    func(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error)
}

func (e *echo) Tools() []abi.Tool {
	if e.list != nil {
		return e.list()
	}
	return []abi.Tool{{Name: "echo", Kind: abi.ToolRead}, {Name: "shell", Kind: abi.ToolExecute}}
}

func (e *echo) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	e.mu.Lock()
	e.calls = append(e.calls, call.ID)
	e.mu.Unlock()
	if e.do != nil {
		return e.do(ctx, call)
	}
	return abi.ToolResult{Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text(fmt.Sprint(call.Arguments))}}, nil
}

// hook is a native plugin of one hook.
type hook struct {
	name  string
	phase abi.Phase
	mode  abi.Mode
	view  abi.View
	fail  abi.FailurePolicy
	do    func(ctx context.Context, e *abi.Event) (*abi.Reply, error)
}

func (h *hook) Describe() abi.Description {
	return abi.Description{
		Name: h.name, Version: "1", ABI: abi.VersionRange{Min: 1, Max: 1},
		Hooks: []abi.Hook{{Phase: h.phase, Mode: h.mode, Messages: h.view, OnFailure: h.fail}},
	}
}

func (h *hook) OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error) { return h.do(ctx, e) }

type bench struct {
	agent  *agent.Agent
	model  *script
	tools  *echo
	listen func(agent.Event)
	mu     sync.Mutex
	events []agent.Event
}

func newBench(t *testing.T, model *script, cfg agent.Config, plugins ...phases.Plugin) *bench {
	t.Helper()
	if model == nil {
		model = &script{} // cfg.Model is asked
	}
	b := &bench{model: model, tools: &echo{}}
	rt, err := phases.New(phases.Config{Plugins: plugins, HookTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Model == nil {
		cfg.Model = model
	}
	if cfg.Retry.MaxRetries == 0 {
		cfg.Retry.MaxRetries = -1
	}
	cfg.Phases, cfg.Tools = rt, b.tools
	cfg.Listen = func(_ context.Context, e agent.Event) {
		b.mu.Lock()
		b.events = append(b.events, e)
		b.mu.Unlock()
		if b.listen != nil {
			b.listen(e)
		}
	}
	if b.agent, err = agent.New(cfg); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) count(typ agent.EventType) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, e := range b.events {
		if e.Type == typ {
			n++
		}
	}
	return n
}

func (b *bench) phases() []abi.Phase {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []abi.Phase
	for _, e := range b.events {
		if e.Type == agent.EventPhase {
			out = append(out, e.Phase)
		}
	}
	return out
}

func user(text string) abi.Message {
	return abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text)}}
}

func says(text string, calls ...abi.ToolCall) abi.Message {
	m := abi.Message{Role: abi.RoleAssistant, ToolCalls: calls}
	if text != "" {
		m.Content = []abi.ContentBlock{abi.Text(text)}
	}
	return m
}

func calls(id, name, argument string) abi.ToolCall {
	return abi.ToolCall{ID: id, Name: name, Arguments: argument}
}

func request(messages ...abi.Message) agent.Request {
	return agent.Request{ThreadID: "t", Messages: messages}
}

func texts(messages []abi.Message) []string {
	var out []string
	for i := range messages {
		out = append(out, string(messages[i].Role)+": "+messages[i].Text())
	}
	return out
}
