package e2e_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/providertest"
)

const acpConfig = `
version: 1
models:
  main: {provider: anthropic, name: $MODEL, base_url: "$URL", key: {file: key}, max_tokens: 8000}
agents:
  worker: {model: main, system_prompt: You pay bills., max_tokens: 8000, reasoning_effort: low}
plugins:
  - {name: teller, module: $GUESTS/teller.wasm}
limits: {timeout: 60s}
serve: {lease: 2s, grace: 1s}
`

// payer is the model: it answers in words, pays on the word "pay", and takes its time on the word "hold".
func payer(q providertest.Query) providertest.Answer {
	last := q.Messages[len(q.Messages)-1]
	thought := abi.ContentBlock{Type: abi.BlockThinking, Text: "let me see"}
	what, rest, _ := strings.Cut(strings.TrimSpace(last.Text()), " ")
	switch {
	case last.Role == abi.RoleTool:
		return providertest.Answer{Content: []abi.ContentBlock{thought, abi.Text("It says: " + last.Text())}}
	case what == "pay":
		return providertest.Answer{Content: []abi.ContentBlock{thought}, Calls: []abi.ToolCall{{ID: fmt.Sprintf("toolu_%d", q.N), Name: "pay", Arguments: map[string]any{"to": rest}}}}
	case what == "work":
		return providertest.Answer{Content: []abi.ContentBlock{thought}, Calls: []abi.ToolCall{{ID: fmt.Sprintf("toolu_%d", q.N), Name: "mcp__my-works__work", Arguments: map[string]any{"task": rest}}}}
	case what == "hold":
		return providertest.Answer{Content: []abi.ContentBlock{thought, abi.Text(strings.Repeat("waiting ", 500))}, Pace: 50 * time.Millisecond}
	}
	return providertest.Answer{Content: []abi.ContentBlock{thought, abi.Text("You said " + last.Text())}}
}

// newACP writes a config for mortise acp, and starts the provider.
func newACP(t *testing.T) *world {
	t.Helper()
	provider, err := providertest.New(providertest.Config{Reply: payer})
	must(t, err)
	t.Cleanup(func() { _ = provider.Close() })
	w := &world{provider: provider, dir: t.TempDir()}
	guests, err := filepath.Abs(filepath.Join("..", "..", "testdata", "guests"))
	must(t, err)
	text := strings.NewReplacer("$GUESTS", guests, "$URL", provider.URL(), "$MODEL", model).Replace(acpConfig)
	must(t, os.WriteFile(w.path("mortise.yaml"), []byte(text), 0o600))
	must(t, os.WriteFile(w.path("key"), []byte(provider.Key()), 0o600))
	return w
}

// acpArgs makes this binary mortise acp.
func (w *world) acpArgs() string {
	return commandArgs + "=" + strings.Join([]string{"acp", "--config", w.path("mortise.yaml"), "--store", w.path("mortise.db")}, "\n")
}

// editor is a client with its agent's process.
type editor struct {
	t     *testing.T
	w     *world
	cmd   *exec.Cmd
	in    io.WriteCloser
	conn  *acp.ClientSideConnection
	asked chan acp.RequestPermissionRequest

	mu      sync.Mutex
	option  acp.PermissionOptionId
	updates []acp.SessionUpdate
	changed chan struct{} // has room for one
}

// command starts mortise acp.
func (w *world) command(t *testing.T) (cmd *exec.Cmd, in io.WriteCloser, out io.Reader) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd = exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), w.acpArgs())
	cmd.Stderr = &logged{w}
	in, err = cmd.StdinPipe()
	must(t, err)
	out, err = cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, in, out
}

func (w *world) edit(t *testing.T, option acp.PermissionOptionId) *editor {
	t.Helper()
	e := &editor{t: t, w: w, option: option, asked: make(chan acp.RequestPermissionRequest, 10), changed: make(chan struct{}, 1)}
	var out io.Reader
	e.cmd, e.in, out = w.command(t)
	e.conn = acp.NewClientSideConnection(e, e.in, out)
	r, err := e.conn.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber})
	must(t, err)
	if r.ProtocolVersion != 1 || !r.AgentCapabilities.LoadSession || r.AgentInfo.Name != "mortise" {
		t.Errorf("the agent is %+v", r)
	}
	return e
}

// leave closes the agent's input, and waits for its end.
func (e *editor) leave() {
	e.t.Helper()
	must(e.t, e.in.Close())
	ended := make(chan error, 1)
	go func() { ended <- e.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			e.t.Errorf("the agent ended with %v: %s", err, e.w.said())
		}
	case <-time.After(time.Minute):
		_ = e.cmd.Process.Kill()
		e.t.Errorf("the agent does not end: %s", e.w.said())
	}
}

func (e *editor) session() acp.SessionId {
	e.t.Helper()
	r, err := e.conn.NewSession(e.t.Context(), acp.NewSessionRequest{Cwd: e.w.dir, McpServers: []acp.McpServer{}})
	must(e.t, err)
	return r.SessionId
}

func (e *editor) prompt(id acp.SessionId, text string) acp.StopReason {
	e.t.Helper()
	r, err := e.conn.Prompt(e.t.Context(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
	if err != nil {
		e.t.Errorf("prompt %q: %v; the agent: %s", text, err, e.w.said())
	}
	return r.StopReason
}

// seen are the updates since the last time, in a few words.
func (e *editor) seen() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	add := func(kind, text string) {
		if n := len(out) - 1; n >= 0 && strings.HasPrefix(out[n], kind+": ") && kind != "call" {
			out[n] += text
			return
		}
		out = append(out, kind+": "+text)
	}
	for _, u := range e.updates {
		switch {
		case u.UserMessageChunk != nil:
			add("user", u.UserMessageChunk.Content.Text.Text)
		case u.AgentMessageChunk != nil:
			add("agent", u.AgentMessageChunk.Content.Text.Text)
		case u.AgentThoughtChunk != nil:
			add("thought", u.AgentThoughtChunk.Content.Text.Text)
		case u.ToolCall != nil:
			add("call", fmt.Sprint(u.ToolCall.Title, " ", u.ToolCall.Kind, " ", u.ToolCall.Status))
		case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status != nil:
			text := string(*u.ToolCallUpdate.Status)
			for _, c := range u.ToolCallUpdate.Content {
				text += " " + c.Content.Content.Text.Text
			}
			add("call", text)
		}
	}
	e.updates = nil
	return strings.Join(out, "\n")
}

// SessionUpdate implements acp.Client.
func (e *editor) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	e.mu.Lock()
	e.updates = append(e.updates, n.Update)
	e.mu.Unlock()
	select {
	case e.changed <- struct{}{}:
	default:
	}
	return nil
}

// RequestPermission implements acp.Client: it selects an option, or leaves the question open if there is none.
func (e *editor) RequestPermission(ctx context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	e.asked <- r
	option := e.selects(nil)
	if option == "" {
		<-ctx.Done()
		return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(option)}, nil
}

// selects returns the option that is selected, and changes it if next is not nil.
func (e *editor) selects(next *acp.PermissionOptionId) acp.PermissionOptionId {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.option
	if next != nil {
		e.option = *next
	}
	return was
}

func (*editor) unsupported() error { return acp.NewMethodNotFound("it has none") }

func (e *editor) ReadTextFile(context.Context, acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	return acp.ReadTextFileResponse{}, e.unsupported()
}

func (e *editor) WriteTextFile(context.Context, acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	return acp.WriteTextFileResponse{}, e.unsupported()
}

func (e *editor) CreateTerminal(context.Context, acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	return acp.CreateTerminalResponse{}, e.unsupported()
}

func (e *editor) KillTerminal(context.Context, acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	return acp.KillTerminalResponse{}, e.unsupported()
}

func (e *editor) TerminalOutput(context.Context, acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
	return acp.TerminalOutputResponse{}, e.unsupported()
}

func (e *editor) ReleaseTerminal(context.Context, acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error) {
	return acp.ReleaseTerminalResponse{}, e.unsupported()
}

func (e *editor) WaitForTerminalExit(context.Context, acp.WaitForTerminalExitRequest) (acp.WaitForTerminalExitResponse, error) {
	return acp.WaitForTerminalExitResponse{}, e.unsupported()
}

// TestACP: an editor prompts, is asked, cancels, and loads the session again from another process.
func TestACP(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	w := newACP(t)
	e := w.edit(t, "allow")
	id := e.session()
	if got := e.prompt(id, "hello"); got != acp.StopReasonEndTurn {
		t.Errorf("the prompt ended with %s", got)
	}
	if got, want := e.seen(), "thought: let me see\nagent: You said hello"; got != want {
		t.Errorf("the updates are\n%s, want\n%s", got, want)
	}
	e.prompt(id, "pay Alice")
	asked := <-e.asked
	if asked.SessionId != id || *asked.ToolCall.Title != "pay" || fmt.Sprint(asked.ToolCall.RawInput) != "map[to:Alice]" || len(asked.Options) != 2 {
		t.Errorf("the question is %+v", asked)
	}
	paid := "paid map[approved:true] with key true"
	if got, want := e.seen(), "thought: let me see\ncall: pay other pending\ncall: in_progress\ncall: in_progress\ncall: completed "+paid+"\nthought: let me see\nagent: It says: "+paid; got != want {
		t.Errorf("the updates are\n%s, want\n%s", got, want)
	}
	e.cancels(id)
	e.leave()

	again := w.edit(t, "reject")
	_, err := again.conn.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: id, Cwd: w.dir, McpServers: []acp.McpServer{}})
	must(t, err)
	history := "user: hello\nthought: let me see\nagent: You said hello\nuser: pay Alice\nthought: let me see\ncall: pay other pending\ncall: completed " + paid +
		"\nthought: let me see\nagent: It says: " + paid + "\nuser: hold"
	if got := again.seen(); !strings.HasPrefix(got, history) {
		t.Errorf("the history is\n%s, want\n%s", got, history)
	}
	again.prompt(id, "pay Bob")
	if got := again.seen(); !strings.Contains(got, "It says: Denied: the user did not allow the call") {
		t.Errorf("the updates are\n%s", got)
	}
	again.leave()
}

// cancels cancels a prompt that streams, and one that asks.
func (e *editor) cancels(id acp.SessionId) {
	e.t.Helper()
	stopped := make(chan acp.StopReason, 1)
	go func() { stopped <- e.prompt(id, "hold") }()
	for got := ""; !strings.Contains(got, "waiting"); got = e.seen() {
		<-e.changed
	}
	_, err := e.conn.Prompt(e.t.Context(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock("and this")}})
	if err == nil || !strings.Contains(err.Error(), "under way") {
		e.t.Errorf("a second prompt is %v", err)
	}
	must(e.t, e.conn.Cancel(e.t.Context(), acp.CancelNotification{SessionId: id}))
	if got := <-stopped; got != acp.StopReasonCancelled {
		e.t.Errorf("the prompt ended with %s", got)
	}
	option := e.selects(new(acp.PermissionOptionId))
	go func() { stopped <- e.prompt(id, "pay Carol") }()
	<-e.asked
	must(e.t, e.conn.Cancel(e.t.Context(), acp.CancelNotification{SessionId: id}))
	if got := <-stopped; got != acp.StopReasonCancelled {
		e.t.Errorf("the prompt ended with %s", got)
	}
	e.selects(&option)
}

// TestACP_leftRun: an editor that leaves during a prompt lets its agent end. The next process resumes the run, until the next
// prompt of the session interrupts it.
func TestACP_leftRun(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	w := newACP(t)
	e := w.edit(t, "allow")
	id := e.session()
	left := make(chan error, 1)
	go func() {
		_, err := e.conn.Prompt(t.Context(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock("hold")}})
		left <- err
	}()
	for got := ""; !strings.Contains(got, "waiting"); got = e.seen() {
		<-e.changed
	}
	e.leave()
	if err := <-left; err == nil {
		t.Error("the prompt ended as if its run had")
	}
	again := w.edit(t, "allow")
	_, err := again.conn.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: id, Cwd: w.dir, McpServers: []acp.McpServer{}})
	must(t, err)
	if got := again.seen(); !strings.HasPrefix(got, "user: hold") {
		t.Errorf("the history is\n%s", got)
	}
	if got := again.prompt(id, "hello"); got != acp.StopReasonEndTurn {
		t.Errorf("the prompt ended with %s", got)
	}
	if got := again.seen(); !strings.HasSuffix(got, "hello") {
		t.Errorf("the updates are\n%s", got)
	}
	again.leave()
}

// TestACP_servers: a session has the tools of the MCP servers that its client names, and other sessions have not.
func TestACP_servers(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	w := newACP(t)
	e := w.edit(t, "allow")
	self, err := os.Executable()
	must(t, err)
	r, err := e.conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: w.dir, McpServers: []acp.McpServer{{Stdio: &acp.McpServerStdio{
		Name: "my works!", Command: self, Args: []string{}, Env: []acp.EnvVariable{{Name: toolLog, Value: w.toolLog()}},
	}}}})
	must(t, err)
	for id, want := range map[acp.SessionId]string{r.SessionId: "worked on task-1", e.session(): "'mcp__my-works__work' not found"} {
		e.prompt(id, "work task-1")
		if got := e.seen(); !strings.Contains(got, "call: my-works: work") || !strings.Contains(got, want) {
			t.Errorf("the updates are\n%s, want %s", got, want)
		}
	}
	e.leave()
}

// TestACP_badInput: what a client does wrong is an error in its response, and what is no message is answered too.
func TestACP_badInput(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	w := newACP(t)
	cmd, in, out := w.command(t)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for _, c := range []struct {
		line string
		code int
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"session/new"`, -32700},
		{`not JSON`, -32700},
		{`[]`, -32600},
		{`{"jsonrpc":"2.0","id":1}`, -32600},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, -32600},
		{strings.Repeat("x", 9<<20), -32600},
		{`{"jsonrpc":"2.0","id":1,"method":"nothing"}`, -32601},
		{`{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}`, -32601},
		{`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"somewhere","mcpServers":[]}}`, -32602},
		{`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[{"type":"sse","name":"a","url":"http://127.0.0.1:1","headers":[]}]}}`, -32602},
		{`{"jsonrpc":"2.0","id":1,"method":"session/new","params":7}`, -32602},
		{`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"none","prompt":[{"type":"text","text":"hi"}]}}`, -32002},
		{`{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"none","cwd":"/","mcpServers":[]}}`, -32002},
		{`{"jsonrpc":"2.0","id":1,"method":"authenticate","params":{"methodId":"key"}}`, -32602},
	} {
		_, err := io.WriteString(in, c.line+"\n")
		must(t, err)
		if !lines.Scan() {
			t.Fatalf("%.200s: there is no answer: %v; %s", c.line, lines.Err(), w.said())
		}
		var answer struct {
			ID    any
			Error struct{ Code int }
		}
		must(t, json.Unmarshal(lines.Bytes(), &answer))
		if answer.Error.Code != c.code || (answer.ID == nil) != (c.code == -32700 || c.code == -32600) {
			t.Errorf("%.200s: %s, want %d", c.line, lines.Bytes(), c.code)
		}
	}
	must(t, in.Close())
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("at the end there is %s (%v)", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, w.said())
	}
	if text := w.said(); strings.Contains(text, "not JSON") || strings.Contains(text, "xxx") {
		t.Errorf("the log has what the client sent: %s", text)
	}
}

// TestACP_client: the protocol's own client does the same as that of TestACP.
func TestACP_client(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	node, err := exec.LookPath("node")
	dir, _ := filepath.Abs(cmp.Or(os.Getenv("MORTISE_NPM_ACP"), filepath.Join("..", "..", "bin", "npm-acp")))
	if _, missing := os.Stat(filepath.Join(dir, "node_modules")); err != nil || missing != nil {
		testskip.Skip(t, "node or %s is not there: internal/e2e/testdata/npm/build.sh bin/npm-acp makes it, with npm", dir)
	}
	w := newACP(t)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "npm", "client.mjs"), dir, self, w.dir) //nolint:gosec // the test's own script
	cmd.Env = slices.Concat(os.Environ(), []string{w.acpArgs()})
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "ok") {
		t.Errorf("%v\n%s", err, out)
	}
}
