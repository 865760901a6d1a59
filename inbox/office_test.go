package inbox_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// office is an agent with tasks and an outbox, wired as an embedder does.
type office struct {
	*background.Manager

	out   *inbox.Inbox
	agent *agent.Agent
	model *model
}

// parts of an office that a test brings.
type officeParts struct {
	model  *model
	agent  agent.Config
	tasks  background.Config
	out    inbox.Config
	plugin []phases.Plugin
	// dies lets writes fail, compact makes a compactor.
	dies    bool
	compact func(*office) agent.Compactor
}

func newOffice(t *testing.T, p officeParts) *office {
	t.Helper()
	f := &office{model: p.model}
	p.out.Acknowledged = func(ctx context.Context, thread string, ids ...string) { f.Acknowledge(ctx, thread, ids...) }
	f.out = newInbox(t, p.out)
	p.tasks.Ledger = f.out
	if p.tasks.NewID == nil {
		p.tasks.NewID = sequence()
	}
	var err error
	if f.Manager, err = background.New(p.tasks); err != nil {
		t.Fatal(err)
	}
	if p.agent.Phases, err = phases.New(phases.Config{Plugins: append(p.plugin, f.Plugin())}); err != nil {
		t.Fatal(err)
	}
	if p.compact != nil {
		p.agent.Compactor = p.compact(f)
	}
	p.agent.Model, p.agent.Pending, p.agent.ToolContext = p.model, f.HasBlocking, background.ToolContext
	p.agent.Take = func(ctx context.Context, thread string) (agent.Delivery, error) { return f.out.Take(ctx, thread) }
	if f.agent, err = agent.New(p.agent); err != nil {
		t.Fatal(err)
	}
	if err := f.Recover(t.Context()); err != nil && !p.dies {
		t.Fatal(err)
	}
	f.out.Start(f.agent.Wake)
	return f
}

// close ends the tasks and then the inbox.
func (f *office) close(t *testing.T) {
	t.Helper()
	if err := f.Manager.Close(t.Context()); err != nil {
		t.Error(err)
	}
	closeInbox(t, f.out)
}

// start starts a task of the thread that ends with a result, at once or when end is
// closed.
func (f *office) start(t *testing.T, result any, end <-chan struct{}) string {
	t.Helper()
	id, err := f.Spawn(t.Context(), background.Spec{Thread: "a", Type: "task", Description: "builds", Body: func(ctx context.Context, _ *background.Task) (any, error) {
		if end != nil {
			select {
			case <-end:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if err, ok := result.(error); ok {
			return nil, err
		}
		return result, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// log is the conversation, a line for each message.
func (f *office) log() string {
	var b strings.Builder
	for _, m := range f.agent.Thread("a").Messages() {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Text())
	}
	return b.String()
}

// model answers as its script says, "seen" after its end, and remembers what it was
// asked.
type model struct {
	mu     sync.Mutex
	script []any // an error, a text, or calls
	asked  []llm.Request
	// before is called before each answer.
	before func()
}

func (m *model) Infer(ctx context.Context, r llm.Request) (*abi.Response, error) {
	if m.before != nil {
		m.before()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, r)
	answer := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("seen")}}
	if len(m.script) > 0 {
		next := m.script[0]
		m.script = m.script[1:]
		switch x := next.(type) {
		case error:
			return nil, x
		case string:
			answer.Content[0] = abi.Text(x)
		case []abi.ToolCall:
			answer.Content, answer.ToolCalls = nil, x
		}
	}
	return &abi.Response{Message: answer, StopReason: abi.StopEndTurn}, nil
}

func (m *model) times() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked)
}

// shown is all that a request shows.
func shown(r llm.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(m.Text() + "\n")
	}
	return b.String()
}

// tools are made of functions by name.
type tools map[string]func(ctx context.Context, call abi.ToolCall) (string, error)

func (s tools) Tools() (out []abi.Tool) {
	for name := range s {
		out = append(out, abi.Tool{Name: name, Parameters: map[string]any{"type": "object"}})
	}
	slices.SortFunc(out, func(a, b abi.Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (s tools) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	text, err := s[call.Name](ctx, call)
	return abi.ToolResult{Content: []abi.ContentBlock{abi.Text(text)}}, err
}

func calls(names ...string) []abi.ToolCall {
	var out []abi.ToolCall
	for i, name := range names {
		out = append(out, abi.ToolCall{ID: fmt.Sprint(name, i), Name: name, Arguments: map[string]any{}})
	}
	return out
}

func asked(text string) agent.Request {
	return agent.Request{ThreadID: "a", Messages: []abi.Message{{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text)}}}}
}
