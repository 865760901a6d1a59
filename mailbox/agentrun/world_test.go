package agentrun_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter is a model that calls the tool "count" until it has been called rounds times since
// the last user message, and then states the outcome. It goes by the conversation alone, as a
// provider does.
type counter struct {
	mu     sync.Mutex
	rounds int
	// seen are the texts of the latest request.
	seen [][]string
	// fail is asked before each answer.
	fail func(n int) error
}

func (c *counter) Infer(_ context.Context, req llm.Request) (*abi.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var texts []string
	calls := 0
	for i := range req.Messages {
		m := &req.Messages[i]
		texts = append(texts, string(m.Role)+": "+m.Text())
		switch m.Role {
		case abi.RoleTool:
			calls++
		case abi.RoleUser:
			if m.Visibility != abi.VisibilityInternal {
				calls = 0
			}
		default:
		}
	}
	c.seen = append(c.seen, texts)
	if c.fail != nil {
		if err := c.fail(len(c.seen)); err != nil {
			return nil, err
		}
	}
	if calls < c.rounds {
		id := fmt.Sprintf("call_%d_%d", len(req.Messages), calls)
		return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: id, Name: "count", Arguments: map[string]any{"n": int64(calls)}}}}}, nil
	}
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text(fmt.Sprintf("counted to %d", calls))}}}, nil
}

// tools executes "count".
type tools struct {
	mu   sync.Mutex
	keys []string
	// during is called in each call.
	during func(ctx context.Context, call abi.ToolCall)
}

func (*tools) Tools() []abi.Tool { return []abi.Tool{{Name: "count", Kind: abi.ToolRead}} }

func (s *tools) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	s.mu.Lock()
	s.keys = append(s.keys, call.IdempotencyKey)
	s.mu.Unlock()
	if s.during != nil {
		s.during(ctx, call)
	}
	return abi.ToolResult{Message: "ok"}, nil
}

// asks is a gate that asks a person about every call.
type asks struct{}

func (asks) Describe() abi.Description {
	return abi.Description{
		Name: "asks", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1}, Hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeGate}},
	}
}

func (asks) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateSuspend, Ticket: &abi.SuspendTicket{
		ID: "ask_" + e.Call.ID, Action: "confirm", Mode: abi.ResumePassDecision,
	}}}, nil
}

// counts is a plugin with state of its own.
type counts struct{}

func (counts) Describe() abi.Description {
	return abi.Description{
		Name: "counts", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1}, Hooks: []abi.Hook{{Phase: abi.StepEnd, Mode: abi.ModeObserve}},
		State: []abi.StateKey{{Name: "n", Scope: abi.ScopeThread, Merge: abi.MergeCommutative}},
	}
}

func (counts) OnPhase(context.Context, *abi.Event) (*abi.Reply, error) {
	return &abi.Reply{Updates: []abi.Update{{Key: "n", Op: abi.OpAdd, Value: int64(1)}}}, nil
}

// process is a mailbox with agents, as in a process of its own.
type process struct {
	box *mailbox.Mailbox
	run *agentrun.Runtime
}

func newProcess(t *testing.T, mem store.Store, owner string, model llm.Model, s agent.Tools, plugins ...phases.Plugin) *process {
	t.Helper()
	runtime, err := phases.New(phases.Config{Plugins: plugins})
	must(t, err)
	p := &process{}
	p.run, err = agentrun.New(agentrun.Config{
		Agent: func(context.Context, *mailbox.Job) (agent.Config, error) {
			return agent.Config{Profile: agent.Profile{Model: model, Tools: s, Phases: runtime}, Inference: agent.Inference{Retry: llm.Retry{MaxRetries: -1}}}, nil
		},
		Requeue: func(ctx context.Context, r mailbox.Request) (mailbox.Submission, error) {
			return p.box.SubmitBackground(ctx, r)
		},
	})
	must(t, err)
	p.box, err = mailbox.New(t.Context(), mailbox.Config{Store: mem, Runtime: p.run, Owner: owner, Wake: agentrun.Wake})
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		must(t, p.box.Close(ctx))
	})
	must(t, p.box.Start(t.Context()))
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func user(text string) abi.Message {
	return abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text)}}
}

func request(t *testing.T, thread string, list ...abi.Message) mailbox.Request {
	t.Helper()
	inputs, err := agentrun.Inputs(list...)
	must(t, err)
	return mailbox.Request{Thread: thread, Messages: inputs}
}

func (p *process) submit(t *testing.T, r mailbox.Request) mailbox.Submission {
	t.Helper()
	sub, err := p.box.SubmitBackground(t.Context(), r)
	must(t, err)
	return sub
}

func (p *process) await(t *testing.T, sub mailbox.Submission) mailbox.Dispatch {
	t.Helper()
	d, err := p.box.Await(t.Context(), sub.Dispatch)
	must(t, err)
	return d
}

func (p *process) runOf(t *testing.T, id string) mailbox.Run {
	t.Helper()
	r, found, err := p.box.Run(t.Context(), id)
	must(t, err)
	if !found {
		t.Fatalf("run %q is not there", id)
	}
	return r
}

// queueOf reads what a store has.
func queueOf(t *testing.T, s store.Store) *mailbox.Mailbox {
	t.Helper()
	q, err := mailbox.New(t.Context(), mailbox.Config{Store: s})
	must(t, err)
	return q
}

// log reads a thread as another agent would.
func log(t *testing.T, mem store.Store, thread string) (texts []string) {
	t.Helper()
	list, err := queueOf(t, mem).Messages(t.Context(), thread, 1, 1000)
	must(t, err)
	var messages []abi.Message
	for _, m := range list {
		v, err := agentrun.DecodeMessage(m)
		must(t, err)
		messages = append(messages, v)
		texts = append(texts, string(v.Role)+": "+v.Text())
	}
	if err := phases.CheckStructure(messages); err != nil {
		t.Errorf("log of %s: %v", thread, err)
	}
	return texts
}

func wantLog(t *testing.T, mem store.Store, thread string, want ...string) {
	t.Helper()
	if got := log(t, mem, thread); !slices.Equal(got, want) {
		t.Errorf("log of %s is\n%q, want\n%q", thread, got, want)
	}
}

func emptyPhases(t *testing.T) *phases.Runtime {
	t.Helper()
	r, err := phases.New(phases.Config{})
	must(t, err)
	return r
}

// slow is a tool that takes until its context ends.
type slow struct{ tools }

func (*slow) CallTool(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
	<-ctx.Done()
	return abi.ToolResult{}, ctx.Err()
}

// asked is a model that remembers what it was asked with.
type asked struct{ out *seen }

func (a *asked) Infer(_ context.Context, req llm.Request) (*abi.Response, error) {
	for _, tool := range req.Tools {
		a.out.tools = append(a.out.tools, tool.Name)
	}
	if req.Override != nil && req.Override.Model != nil {
		a.out.model = *req.Override.Model
	}
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("ok")}}}, nil
}

// atEnd holds the first run up at its end.
type atEnd struct {
	once           sync.Once
	entered, leave chan struct{}
}

func (*atEnd) Describe() abi.Description {
	return abi.Description{
		Name: "at-end", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1}, Hooks: []abi.Hook{{Phase: abi.RunEnd, Mode: abi.ModeObserve}},
	}
}

func (p *atEnd) OnPhase(context.Context, *abi.Event) (*abi.Reply, error) {
	p.once.Do(func() {
		close(p.entered)
		<-p.leave
	})
	return nil, nil
}
