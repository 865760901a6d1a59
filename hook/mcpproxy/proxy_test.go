package mcpproxy_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/mcpproxy"
	"github.com/mortise-dev/mortise/phases"
)

type native struct {
	d  abi.Description
	fn func(ctx context.Context, e *abi.Event) (*abi.Reply, error)
}

func (n *native) Describe() abi.Description { return n.d }

func (n *native) OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error) { return n.fn(ctx, e) }

func plugin(name string, mode abi.Mode, at abi.Phase, fn func(ctx context.Context, e *abi.Event) (*abi.Reply, error)) *native {
	return &native{d: abi.Description{Name: name, Version: "1", Hooks: []abi.Hook{{Phase: at, Mode: mode}}}, fn: fn}
}

func input(e *abi.Event) map[string]any {
	args, _ := e.Call.Arguments.(map[string]any)
	in, _ := args["input"].(map[string]any)
	return in
}

// guard denies calls whose word is bad, and waits in those whose word is slow.
func guard() *native {
	return plugin("guard", abi.ModeGate, abi.ToolGate, func(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
		switch input(e)["word"] {
		case "bad":
			return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "bad word"}}, nil
		case "slow":
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return nil, nil
	})
}

// holding makes a gate that holds calls with the word "held" until they are released.
func holding() (p *native, release func()) {
	released := make(chan struct{})
	return plugin("keeper", abi.ModeGate, abi.ToolGate, func(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
		if input(e)["word"] == "held" {
			select {
			case <-released:
			case <-ctx.Done():
			}
		}
		return nil, nil
	}), sync.OnceFunc(func() { close(released) })
}

func rewriter() *native {
	return plugin("writer", abi.ModeTransform, abi.BeforeToolExecute, func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		in := input(e)
		if in["word"] != "before" {
			return nil, nil
		}
		args, _ := e.Call.Arguments.(map[string]any)
		in["word"] = "after"
		args["input"] = in
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectRewriteCall, Arguments: args}}}, nil
	})
}

func redact() *native {
	return plugin("redact", abi.ModeTransform, abi.AfterToolExecute, func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		content, found := make([]abi.ContentBlock, len(e.Result.Content)), false
		for i, c := range e.Result.Content {
			found = found || strings.Contains(c.Text, "hunter2")
			c.Text = strings.ReplaceAll(c.Text, "hunter2", "[redacted]")
			content[i] = c
		}
		if !found {
			return nil, nil
		}
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: content}}}, nil
	})
}

// session is a proxy with a client and a server that the test plays.
type session struct {
	t                *testing.T
	client, server   *bufio.Reader
	toProxy, fromSrv *io.PipeWriter
	fromProxy        *io.PipeReader
	done             chan error
	log              *closer
}

// newProxy makes a proxy and its log.
func newProxy(t *testing.T, pins *mcpproxy.Pins, plugins ...phases.Plugin) (*mcpproxy.Proxy, *closer) {
	t.Helper()
	trace := hook.NewTrace()
	r, err := phases.New(phases.Config{Plugins: plugins, Record: trace.Record, HookTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	program := &hook.Program{Runtime: r, Trace: trace}
	for _, p := range plugins {
		program.Plugins = append(program.Plugins, p.Describe())
	}
	e, err := hook.New(hook.Config{Program: program})
	if err != nil {
		t.Fatal(err)
	}
	log := &closer{}
	p, err := mcpproxy.New(mcpproxy.Config{Engine: e, Server: "srv", Session: "s", Pins: pins, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return p, log
}

func start(t *testing.T, pins *mcpproxy.Pins, plugins ...phases.Plugin) *session {
	t.Helper()
	p, log := newProxy(t, pins, plugins...)
	s := &session{t: t, done: make(chan error, 1), log: log}
	clientIn, toProxy := io.Pipe()
	fromProxy, clientOut := io.Pipe()
	serverOut, fromSrv := io.Pipe()
	serverIn, toServer := io.Pipe()
	s.toProxy, s.fromSrv, s.fromProxy = toProxy, fromSrv, fromProxy
	s.client, s.server = bufio.NewReader(fromProxy), bufio.NewReader(serverIn)
	go func() { s.done <- p.Run(context.WithoutCancel(t.Context()), clientIn, clientOut, serverOut, toServer) }()
	t.Cleanup(func() {
		_ = toProxy.Close()
		_ = fromSrv.Close()
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		_ = clientOut.Close()
	})
	return s
}

func (s *session) write(w io.Writer, lines ...string) {
	s.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(w, l+"\n"); err != nil {
			s.t.Error(err)
			return
		}
	}
}

func (s *session) expect(r *bufio.Reader, want string) {
	s.t.Helper()
	got, err := r.ReadString('\n')
	if err != nil || strings.TrimSuffix(got, "\n") != want {
		s.t.Fatalf("%v\ngot  %swant %s", err, got, want)
	}
}

func callLine(id, word string) string {
	return `{"jsonrpc":"2.0", "id":` + id + `,"method":"tools/call","params":{"_meta":{"progressToken":7},"name":"say","arguments":{"word":"` + word + `","n":1.50}},"extra":null}`
}

func TestGate(t *testing.T) {
	t.Parallel()
	s := start(t, nil, guard(), rewriter(), redact())
	s.write(s.toProxy, callLine(`"a"`, "fine"))
	s.expect(s.server, callLine(`"a"`, "fine"))
	s.write(s.toProxy, callLine("1", "bad"))
	s.expect(s.client, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"mortise: bad word"}],"isError":true}}`)
	s.write(s.toProxy, callLine("2", "before"))
	s.expect(s.server, `{"jsonrpc":"2.0", "id":2,"method":"tools/call","params":{"_meta":{"progressToken":7},"name":"say","arguments":{"n":1.50,"word":"after"}},"extra":null}`)
	// Results: structured content, and errors of the tool.
	s.write(s.fromSrv, `{"id":2,"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"hunter2"}],"structuredContent":{"deep":[{"k":"x hunter2"}]},"_meta":{"a":1},"isError":false}}`)
	s.expect(s.client, `{"id":2,"jsonrpc":"2.0","result":{"_meta":{"a":1},"content":[{"text":"[redacted]","type":"text"}],"isError":false,"structuredContent":{"deep":[{"k":"x [redacted]"}]}}}`)
	s.write(s.fromSrv, `{"id":"a","jsonrpc":"2.0","result":{"content":[{"type":"text","text":"hunter2"}],"isError":true}}`)
	s.expect(s.client, `{"id":"a","jsonrpc":"2.0","result":{"content":[{"text":"[redacted]","type":"text"}],"isError":true}}`)
}

// TestHeld: a call that plugins look at holds up nothing else, and one that is cancelled meanwhile never reaches the server.
func TestHeld(t *testing.T) {
	t.Parallel()
	keeps, release := holding()
	s := start(t, nil, keeps)
	defer release()
	go s.write(s.toProxy, callLine("1", "held"), `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	s.expect(s.server, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	s.write(s.fromSrv, `{"jsonrpc":"2.0","id":2,"result":{}}`)
	s.expect(s.client, `{"jsonrpc":"2.0","id":2,"result":{}}`)
	go func() {
		s.write(s.toProxy, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, callLine("3", "fine"))
		release() // the proxy reads a line when it has done what the one before it says
	}()
	s.expect(s.server, callLine("3", "fine"))
	// One that the server has is cancelled there.
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`
	s.write(s.toProxy, cancel)
	s.expect(s.server, cancel)
}

// end closes one side and waits for the end of the proxy.
func (s *session) end(side *io.PipeWriter) {
	s.t.Helper()
	_ = side.Close()
	select {
	case err := <-s.done:
		s.done <- err
	case <-time.After(10 * time.Second):
		s.t.Fatal("the proxy does not end")
	}
}

// TestOrder: calls that plugins look at reach the server in their order, and so do results the client.
func TestOrder(t *testing.T) {
	t.Parallel()
	slow := redact()
	inner, passed := slow.fn, make(chan struct{})
	slow.fn = func(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
		if strings.Contains(e.Result.Content[0].Text, "slow") {
			<-passed
			<-time.After(50 * time.Millisecond) // in which the one behind it could overtake it
		}
		return inner(ctx, e)
	}
	s := start(t, nil, guard(), slow)
	words := []string{"slow", "fine", "slow", "fine"}
	go func() {
		for i, word := range words {
			s.write(s.toProxy, callLine(fmt.Sprint(i), word))
		}
	}()
	for i, word := range words {
		s.expect(s.server, callLine(fmt.Sprint(i), word))
	}
	answer := func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":%q}]}}`, i, words[i])
	}
	go func() {
		for i := range words {
			s.write(s.fromSrv, answer(i))
		}
		s.write(s.fromSrv, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}`)
	}()
	s.expect(s.client, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}`) // is not held up
	close(passed)
	for i := range words {
		s.expect(s.client, answer(i))
	}
}

// TestEnds: calls that a client sent before it closed its side reach the server, and results that a server sent before it ended
// reach the client, as plugins want them.
func TestEnds(t *testing.T) {
	t.Parallel()
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		s := start(t, nil, guard(), redact())
		s.write(s.toProxy, callLine("1", "slow"))
		_ = s.toProxy.Close()
		s.expect(s.server, callLine("1", "slow"))
		s.write(s.fromSrv, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hunter2"}]}}`)
		s.expect(s.client, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"[redacted]","type":"text"}]}}`)
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		late := redact()
		inner := late.fn
		late.fn = func(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return inner(ctx, e)
		}
		s := start(t, nil, guard(), late)
		s.write(s.toProxy, callLine("1", "fine"))
		s.expect(s.server, callLine("1", "fine"))
		s.write(s.fromSrv, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hunter2"}]}}`)
		_ = s.fromSrv.Close()
		s.expect(s.client, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"[redacted]","type":"text"}]}}`)
	})
	t.Run("server in a call", func(t *testing.T) {
		t.Parallel()
		s := start(t, nil, guard(), redact())
		s.write(s.toProxy, callLine("1", "fine"))
		s.expect(s.server, callLine("1", "fine"))
		s.end(s.fromSrv) // although the client's side is open
	})
}

// TestAnswers: no form of an answer gets past the plugins: another spelling of the id, a list, a second answer, the result of a task.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const secret, hidden = `{"content":[{"type":"text","text":"hunter2"}]}`, `{"content":[{"text":"[redacted]","type":"text"}]}`
	s := start(t, nil, redact())
	for sent, back := range map[string]string{"1": "1.0", "20": "2e1", `"a"`: `"\u0061"`, `"é"`: `"\u00e9"`, "-3": "-3", "9007199254740993": "9007199254740993"} {
		s.write(s.toProxy, callLine(sent, "x"))
		s.expect(s.server, callLine(sent, "x"))
		s.write(s.fromSrv, `{"jsonrpc":"2.0","id":`+back+`,"result":`+secret+`}`)
		s.expect(s.client, `{"jsonrpc":"2.0","id":`+back+`,"result":`+hidden+`}`)
	}
	s.write(s.toProxy, callLine("4", "x"))
	s.expect(s.server, callLine("4", "x"))
	one := `{"jsonrpc":"2.0","id":4,"result":` + secret + `}`
	go s.write(s.fromSrv, `[{"jsonrpc":"2.0","method":"notifications/message","params":{}},`+one+`]`)
	s.expect(s.client, `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
	s.expect(s.client, strings.Replace(one, secret, hidden, 1))
	s.write(s.toProxy, callLine("5", "x"))
	s.expect(s.server, callLine("5", "x"))
	twice := `{"jsonrpc":"2.0","id":5,"result":` + secret + `}`
	ping := `{"jsonrpc":"2.0","id":"p","method":"ping"}`
	go s.write(s.fromSrv, twice, twice, ping)
	first, _ := s.client.ReadString('\n')
	second, _ := s.client.ReadString('\n')
	if got := first + second; got != strings.Replace(twice, secret, hidden, 1)+"\n"+ping+"\n" && got != ping+"\n"+strings.Replace(twice, secret, hidden, 1)+"\n" {
		t.Errorf("%s", got)
	}
	s.write(s.toProxy, callLine("6", "x"))
	s.expect(s.server, callLine("6", "x"))
	task := `{"jsonrpc":"2.0","id":6,"result":{"task":{"taskId":"t1","status":"working"}}}`
	s.write(s.fromSrv, task)
	s.expect(s.client, task)
	for _, id := range []string{"t1", "forgotten"} {
		get := `{"jsonrpc":"2.0","id":7,"method":"tasks/result","params":{"taskId":"` + id + `"}}`
		s.write(s.toProxy, get)
		s.expect(s.server, get)
		s.write(s.fromSrv, `{"jsonrpc":"2.0","id":7,"result":`+secret+`}`)
		s.expect(s.client, `{"jsonrpc":"2.0","id":7,"result":`+hidden+`}`)
	}
	wrong := `{"jsonrpc":"2.0","id":8,"error":{"code":-32000,"message":"no key hunter2","data":{"n":1e400,"why":"hunter2"}}}`
	s.write(s.toProxy, callLine("8", "x"))
	s.expect(s.server, callLine("8", "x"))
	s.write(s.fromSrv, strings.Replace(wrong, "1e400", "1", 1))
	s.expect(s.client, `{"jsonrpc":"2.0","id":8,"error":{"code":-32000,"data":{"n":1,"why":"[redacted]"},"message":"no key [redacted]"}}`)
	// An answer that comes before the call, or is spelled as no client would, is to nothing that was asked.
	s.write(s.toProxy, callLine("9007199254740993", "x"))
	s.expect(s.server, callLine("9007199254740993", "x"))
	for _, id := range []string{"10", "9007199254740993.5"} {
		s.write(s.fromSrv, `{"jsonrpc":"2.0","id":`+id+`,"result":`+secret+`}`)
	}
	parse := `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`
	go s.write(s.fromSrv, parse)
	s.expect(s.client, parse)
}

// TestLists: a page of tools keeps its cursor when tools are excluded, also when none is left.
func TestLists(t *testing.T) {
	t.Parallel()
	exclude := plugin("shy", abi.ModeTransform, abi.RunStart, func(context.Context, *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectExcludeTools, Tools: []string{"say"}}}}, nil
	})
	s := start(t, nil, exclude)
	hello := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`
	s.write(s.toProxy, hello)
	s.expect(s.server, hello)
	for cursor, page := range map[string][2]string{
		"a": {`[{"name":"say"},{"name":"sing","x":1.0}]`, `[{"name":"sing","x":1.0}]`},
		"b": {`[{"name":"say"}]`, `[]`},
	} {
		ask := `{"jsonrpc":"2.0","id":"` + cursor + `","method":"tools/list","params":{"cursor":"` + cursor + `"}}`
		s.write(s.toProxy, ask)
		s.expect(s.server, ask)
		s.write(s.fromSrv, `{"jsonrpc":"2.0","id":"`+cursor+`","result":{"tools":`+page[0]+`,"nextCursor":"n"}}`)
		s.expect(s.client, `{"jsonrpc":"2.0","id":"`+cursor+`","result":{"tools":`+page[1]+`,"nextCursor":"n"}}`)
	}
	s.write(s.toProxy, callLine("9", "x"))
	if line, err := s.client.ReadString('\n'); err != nil || !strings.Contains(line, "not available") {
		t.Errorf("%v %s", err, line)
	}
}

// TestLarge: a large result passes the plugins. One that is too large for a plugin that fails closed is withheld, and the session continues.
func TestLarge(t *testing.T) {
	t.Parallel()
	strict := redact()
	strict.d.Hooks[0].OnFailure = abi.FailRun
	s := start(t, nil, strict)
	for id, n := range []int{900 << 10, 20 << 20, 10} {
		s.write(s.toProxy, callLine(fmt.Sprint(id), "x"))
		s.expect(s.server, callLine(fmt.Sprint(id), "x"))
		text := strings.Repeat("a", n)
		go s.write(s.fromSrv, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%shunter2"}],"structuredContent":{"key":7}}}`, id, text))
		got, err := s.client.ReadString('\n')
		switch {
		case err != nil || strings.Contains(got, "hunter2"):
			t.Errorf("%d: %v, %.200s", n, err, got)
		case n > 1<<20 && (!strings.Contains(got, "withheld") || !strings.Contains(got, `"isError":true`) || strings.Contains(got, `"key":7`)):
			t.Errorf("%d is not withheld: %.200s", n, got)
		case n < 1<<20 && !strings.Contains(got, text+"[redacted]"):
			t.Errorf("%d: %.200s", n, got)
		}
	}
}

// recorded are messages of sessions with five servers, each with something of its own.
func recorded() map[string][2][]string {
	return map[string][2][]string{
		"files": {{
			`{"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"c","version":"1"}},"jsonrpc":"2.0","id":0}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"path":"/a"}}}`, `{"jsonrpc":"2.0","id":"r","result":{"roots":[]}}`,
		}, {
			`{"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}},"jsonrpc":"2.0","id":0}`,
			`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","inputSchema":{"type":"object"}}]}}`, `{"method":"roots/list","jsonrpc":"2.0","id":"r"}`,
			`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"é\u00e9\ud83d\ude00"}]}}`,
		}},
		"progress": {{
			`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"long","_meta":{"progressToken":"p"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"x"}}`,
		}, {
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":0.10000000000000001}}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"n":12345678901234567890}}}`,
		}},
		"elicitation": {
			{`{"jsonrpc":"2.0","id":"e1","result":{"action":"accept","content":{"a":1.0}}}`},
			{`{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}`},
		},
		"sampling": {
			{`{"jsonrpc":"2.0","id":7,"result":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}}`},
			{`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`},
		},
		"odd": {
			{`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`, `not json`, ``, `{"jsonrpc":"2.0","id":null,"method":"x/unknown"}`, "  {\"a\" : 1 }\r"},
			{`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":{"k":[1e5]}}}`, `log line`, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`},
		},
	}
}

// TestBytes: where no plugin has a part, both ways are byte for byte the same, in whatever pieces they come.
func TestBytes(t *testing.T) {
	t.Parallel()
	observer := plugin("observer", abi.ModeObserve, abi.StepStart, func(context.Context, *abi.Event) (*abi.Reply, error) { return nil, nil })
	for name, both := range recorded() {
		for round := range 20 {
			t.Run(fmt.Sprint(name, round), func(t *testing.T) {
				t.Parallel()
				p, _ := newProxy(t, nil, observer)
				up, down := strings.Join(both[0], "\n")+"\n", strings.Join(both[1], "\n")+"\n"
				toClient, toServer := &bytes.Buffer{}, &closer{}
				random := rand.New(rand.NewPCG(uint64(round), 1)) //nolint:gosec // a test
				client := &pieces{[]byte(up), random}
				// The server's side stays open until the client's is over.
				server := io.MultiReader(&pieces{[]byte(down), random}, iotest.DataErrReader(&until{toServer, len(up)}))
				if err := p.Run(t.Context(), client, toClient, server, toServer); err != nil {
					t.Fatal(err)
				}
				if got := toServer.String(); got != up {
					t.Errorf("to the server:\n%s\nnot\n%s", got, up)
				}
				if got := toClient.String(); got != down {
					t.Errorf("to the client:\n%s\nnot\n%s", got, down)
				}
			})
		}
	}
}

type pieces struct {
	left   []byte
	random *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[:min(len(p.left), 7)])
	p.left = p.left[n:]
	return n, nil
}

type closer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (c *closer) Close() error { return nil }

func (c *closer) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.Write(b)
}

func (c *closer) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.String()
}

// until ends when so many bytes were written.
type until struct {
	c *closer
	n int
}

func (u *until) Read([]byte) (int, error) {
	for range 5000 {
		if len(u.c.String()) >= u.n {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return 0, io.EOF
}
