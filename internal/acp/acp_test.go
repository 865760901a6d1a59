package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/acp"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/serve"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mind is a model: "do" calls the tool work, "again" does so for ever, "fail" fails, and "break" breaks off once.
type mind struct {
	mu    sync.Mutex
	broke bool
	heard []string
}

func (*mind) Infer(context.Context, llm.Request) (*abi.Response, error) { panic("it streams") }

func (m *mind) Stream(_ context.Context, r llm.Request, emit func(llm.Delta) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, first := &r.Messages[len(r.Messages)-1], ""
	for i := range r.Messages {
		if r.Messages[i].Role == abi.RoleUser {
			first = r.Messages[i].Text()
		}
	}
	m.heard = append(m.heard, last.Text())
	switch {
	case first == "fail":
		return &llm.Error{Kind: llm.KindInvalidRequest, Message: "no"}
	case first == "break" && !m.broke:
		m.broke = true
		emit(llm.Delta{Type: llm.DeltaCallStart, CallID: "lost", Name: "work"})
		return &llm.Error{Kind: llm.KindStreamInterrupted, Message: "it broke off"}
	case first == "again" || first == "do" && last.Role != abi.RoleTool:
		id := fmt.Sprintf("call_%d", len(r.Messages))
		emit(llm.Delta{Type: llm.DeltaCallStart, CallID: id, Name: "work"})
		emit(llm.Delta{Type: llm.DeltaCallArguments, CallID: id, Text: `{}`})
	default:
		emit(llm.Delta{Type: llm.DeltaText, Text: "done: " + last.Text()})
	}
	return nil
}

// tools are work.
type tools struct{}

func (tools) Tools() []abi.Tool { return []abi.Tool{{Name: "work", Kind: abi.ToolExecute}} }

func (tools) CallTool(context.Context, abi.ToolCall) (abi.ToolResult, error) {
	return abi.ToolResult{Message: "worked"}, nil
}

// gate asks about each call of a run that came by the protocol.
type gate struct{}

func (gate) Describe() abi.Description {
	return abi.Description{
		Name: "gate", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1},
		Hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeGate}},
	}
}

func (gate) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	if e.Run.Adapter != "acp" || e.Call.Resume != nil {
		return nil, nil
	}
	return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateSuspend, Reason: "it is dangerous", Ticket: &abi.SuspendTicket{ID: "ask_" + e.Call.ID}}}, nil
}

// client is the editor's side. It selects the option answer, or cancels a question if that is empty.
type client struct {
	sdk.Client // methods that no agent may call here

	conn   *sdk.ClientSideConnection
	answer sdk.PermissionOptionId

	mu    sync.Mutex
	seen  []string
	asked []string
}

func (c *client) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	data, err := json.Marshal(n.Update)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, string(data))
	return err
}

func (c *client) RequestPermission(_ context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	data, err := json.Marshal(r.ToolCall)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, string(data))
	if c.answer == "" {
		return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, err
	}
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(c.answer)}, err
}

func (c *client) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := strings.Join(c.seen, "\n")
	c.seen = nil
	return out
}

// connect serves a runtime to a client until the test ends.
func connect(t *testing.T, m *mind, answer sdk.PermissionOptionId) *client {
	t.Helper()
	store := memstore.New()
	a := mortise.Agent{Model: m, Tools: tools{}, MaxRounds: 3}
	a.Retry.BackoffBaseMS = 1
	servers := &acp.Tools{Logger: slog.New(slog.DiscardHandler)}
	runtime, err := mortise.New(t.Context(), mortise.Config{
		Store: store, Agents: map[string]mortise.Agent{"a": a}, Plugins: []phases.Plugin{gate{}}, ThreadTools: servers.Of,
	})
	must(t, err)
	must(t, runtime.Start(t.Context()))
	server, err := serve.New(serve.Config{Runtime: runtime})
	must(t, err)
	in, ours := io.Pipe()
	theirs, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- acp.Serve(t.Context(), acp.Config{
			Server: server, Mailbox: runtime.Mailbox(), Tools: servers, Version: "1", Logger: slog.New(slog.DiscardHandler),
		}, in, out)
	}()
	c := &client{answer: answer}
	c.conn = sdk.NewClientSideConnection(c, ours, theirs)
	t.Cleanup(func() {
		_ = ours.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = server.Close()
		_ = out.Close()
		<-c.conn.Done()
		if err := runtime.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	_, err = c.conn.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: 1})
	must(t, err)
	return c
}

func (c *client) session(t *testing.T) sdk.SessionId {
	t.Helper()
	r, err := c.conn.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: t.TempDir(), McpServers: []sdk.McpServer{}})
	must(t, err)
	return r.SessionId
}

func (c *client) prompt(t *testing.T, id sdk.SessionId, blocks ...sdk.ContentBlock) (sdk.StopReason, error) {
	t.Helper()
	r, err := c.conn.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: blocks})
	return r.StopReason, err
}

// TestPrompt_gate: a call that a plugin's gate suspends becomes a question, and is executed only if the client allows it.
func TestPrompt_gate(t *testing.T) {
	t.Parallel()
	for answer, want := range map[sdk.PermissionOptionId]string{"allow": "done: worked", "reject": "done: Denied: the user did not allow the call", "": ""} {
		c := connect(t, &mind{}, answer)
		reason, err := c.prompt(t, c.session(t), sdk.TextBlock("do"))
		must(t, err)
		stop := sdk.StopReasonEndTurn
		if answer == "" {
			stop = sdk.StopReasonCancelled
		}
		if reason != stop || len(c.asked) != 1 || !strings.Contains(c.asked[0], "it is dangerous") {
			t.Errorf("%q: the prompt ended with %s, after the questions %q", answer, reason, c.asked)
		}
		if seen := c.all(); !strings.Contains(seen, want) || strings.Contains(seen, "worked") != (answer == "allow") {
			t.Errorf("%q: the updates are\n%s", answer, seen)
		}
	}
}

// TestPrompt_end: how a run ends is how its prompt does.
func TestPrompt_end(t *testing.T) {
	t.Parallel()
	c := connect(t, &mind{}, "allow")
	id := c.session(t)
	if reason, err := c.prompt(t, id, sdk.TextBlock("again")); reason != sdk.StopReasonMaxTurnRequests {
		t.Errorf("a run with too many rounds ended with %s (%v)", reason, err)
	}
	if _, err := c.prompt(t, id, sdk.TextBlock("fail")); err == nil || !strings.Contains(err.Error(), "-32603") {
		t.Errorf("a run that failed ended with %v", err)
	}
	c.all()
	reason, err := c.prompt(t, id, sdk.TextBlock("break"))
	if seen := c.all(); err != nil || reason != sdk.StopReasonEndTurn || strings.Count(seen, `"toolCallId":"lost"`) != 2 || !strings.Contains(seen, `"status":"failed"`) {
		t.Errorf("a run whose answer broke off ended with %s (%v) and\n%s", reason, err, seen)
	}
}

// TestPrompt_content: the model gets what a prompt says; one that says nothing is refused.
func TestPrompt_content(t *testing.T) {
	t.Parallel()
	m := &mind{}
	c := connect(t, m, "allow")
	id := c.session(t)
	_, err := c.prompt(t, id, sdk.TextBlock("look at "), sdk.ResourceLinkBlock("main.go", "file:///main.go"),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file:///a.txt", Text: "the text"}}))
	must(t, err)
	if want := "look at [main.go](file:///main.go)<resource uri=\"file:///a.txt\">\nthe text\n</resource>"; m.heard[0] != want {
		t.Errorf("the model has received %q, want %q", m.heard[0], want)
	}
	if _, err := c.prompt(t, id); err == nil || !strings.Contains(err.Error(), "-32602") {
		t.Errorf("an empty prompt is %v", err)
	}
}

// TestCloseSession: a session that was closed is gone, until it is loaded again.
func TestCloseSession(t *testing.T) {
	t.Parallel()
	c := connect(t, &mind{}, "allow")
	id := c.session(t)
	_, err := c.prompt(t, id, sdk.TextBlock("hello"))
	must(t, err)
	_, err = c.conn.CloseSession(t.Context(), sdk.CloseSessionRequest{SessionId: id})
	must(t, err)
	if _, err := c.prompt(t, id, sdk.TextBlock("hello")); err == nil || !strings.Contains(err.Error(), "-32002") {
		t.Errorf("a prompt of a closed session is %v", err)
	}
	c.all()
	_, err = c.conn.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: t.TempDir(), McpServers: []sdk.McpServer{}})
	must(t, err)
	if seen := c.all(); strings.Count(seen, "\n") != 1 || !strings.Contains(seen, "user_message_chunk") || !strings.Contains(seen, "done: hello") {
		t.Errorf("the history is\n%s", seen)
	}
}
