package mcpproxy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/hook/mcpproxy"
	"github.com/mortise-dev/mortise/internal/testskip"
)

type word struct {
	Word string  `json:"word"`
	N    float64 `json:"n"`
}

// official is a server of the official SDK: say says a word again with a key, ask asks the client for its roots, and change changes the list of tools.
func official() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "official", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "say"}, func(ctx context.Context, r *sdk.CallToolRequest, in word) (*sdk.CallToolResult, any, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1})
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Word + " hunter2"}}}, map[string]string{"key": "hunter2"}, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		roots, err := r.Session.ListRoots(ctx, nil) //nolint:staticcheck // servers still use it
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(len(roots.Roots), " roots")}}}, nil, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "change"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		server.RemoveTools("ask")
		return &sdk.CallToolResult{}, nil, nil
	})
	return server
}

// until reads messages until one has some text, and fails where one has a text that may not be.
func (s *session) until(text string) string {
	s.t.Helper()
	for {
		line := s.line()
		if !json.Valid([]byte(line)) || strings.Contains(line, "hunter2") {
			s.t.Errorf("the client got %s", line)
		}
		if strings.Contains(line, text) {
			return line
		}
	}
}

// TestRemote_official: gate, rewrite, results and pins work with the official server in each of its modes, and messages of the server
// reach the client.
func TestRemote_official(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{false, true} {
		for _, jsons := range []bool{false, true} {
			t.Run(fmt.Sprintf("stateless=%v,json=%v", stateless, jsons), func(t *testing.T) {
				t.Parallel()
				server := official()
				handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
					Stateless: stateless, JSONResponse: jsons, EventStore: sdk.NewMemoryEventStore(nil),
				})
				pins, err := mcpproxy.OpenPins(filepath.Join(t.TempDir(), "pins.json"), true, nil)
				if err != nil {
					t.Fatal(err)
				}
				s, r := connect(t, handler, pins, guard(), rewriter(), redact())
				playOfficial(s, r, stateless, jsons)
				s.end(s.toProxy)
				if n := len(r.all(http.MethodDelete)); (n == 1) == stateless {
					t.Errorf("%d times DELETE", n)
				}
			})
		}
	}
}

func playOfficial(s *session, r *recorder, stateless, jsons bool) {
	t := s.t
	t.Helper()
	s.write(s.toProxy, strings.Replace(hello, `"capabilities":{}`, `"capabilities":{"roots":{}}`, 1))
	s.until(`"serverInfo"`)
	s.write(s.toProxy, initialized, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	s.until(`"name":"say"`)
	s.write(s.toProxy, callLine("2", "bad"))
	s.until("bad word")
	s.write(s.toProxy, callLine("3", "before"))
	if !jsons { // whose answer is one message
		s.until(`"progressToken":7`)
	}
	if got := s.until(`"id":3`); !strings.Contains(got, "after [redacted]") || !strings.Contains(got, `"key":"[redacted]"`) {
		t.Error(got)
	}
	if all := strings.Join(r.bodies(), "\n"); strings.Contains(all, `"bad"`) || strings.Contains(all, `"before"`) {
		t.Errorf("the server got %s", all)
	}
	if stateless {
		return
	}
	soon(t, "no stream was opened", func() bool { return len(r.all(http.MethodGet)) > 0 })
	s.write(s.toProxy, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"ask"}}`)
	var request struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal([]byte(s.until("roots/list")), &request); err != nil {
		t.Fatal(err)
	}
	s.write(s.toProxy, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///a"}]}}`, request.ID))
	s.until("1 roots")
	s.write(s.toProxy, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"change"}}`)
	s.until("notifications/tools/list_changed")
}

// TestRemote_cut: when the connection to the official server breaks within the answer, the rest comes over another one, and nothing twice.
func TestRemote_cut(t *testing.T) {
	t.Parallel()
	server := official()
	r := &recorder{next: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{EventStore: sdk.NewMemoryEventStore(nil)})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	behind := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	var cut atomic.Int64
	go func() { _ = behind.Serve(&cutter{listener, "\"progress\":1", &cut}) }()
	t.Cleanup(func() { _ = behind.Close() })
	s := connectTo(t, "http://"+listener.Addr().String()+"/", nil, redact())
	s.write(s.toProxy, hello)
	s.until(`"serverInfo"`)
	s.write(s.toProxy, callLine("3", "x"))
	s.until(`"progress":1`)
	s.until("x [redacted]")
	s.write(s.toProxy, ping(4))
	if got := s.line(); !strings.Contains(got, `"id":4`) {
		t.Errorf("more came: %s", got)
	}
	if gets := r.all(http.MethodGet); cut.Load() != 1 || len(gets) != 1 || gets[0].header.Get("Last-Event-Id") == "" {
		t.Errorf("%d connections were cut, the stream was resumed so: %v", cut.Load(), gets)
	}
}

// cutter closes the first connection that writes some text, behind the event that has it.
type cutter struct {
	net.Listener

	text string
	cut  *atomic.Int64
}

func (c *cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	return &cutConn{conn, c}, err
}

type cutConn struct {
	net.Conn

	by *cutter
}

func (c *cutConn) Write(p []byte) (int, error) {
	if !strings.Contains(string(p), c.by.text) || !c.by.cut.CompareAndSwap(0, 1) {
		return c.Conn.Write(p)
	}
	_, _ = c.Conn.Write(p)
	return 0, errors.Join(errors.New("cut"), c.Conn.Close())
}

// TestRemote_everything: the test server of the protocol's authors works through the proxy over HTTP: progress, structured results, what it
// asks the client, and the stream of its own messages.
func TestRemote_everything(t *testing.T) {
	t.Parallel()
	program := filepath.Join(cmp.Or(os.Getenv("MORTISE_NPM_MCP"), filepath.Join("..", "..", "bin", "npm-mcp")), "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	_, err := os.Stat(program)
	if _, missing := exec.LookPath("node"); err != nil || missing != nil {
		testskip.Skip(t, "node or %s is not there: agent/mcp/testdata/npm/build.sh bin/npm-mcp makes it, with npm", program)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(address)
	child := exec.CommandContext(t.Context(), "node", program, "streamableHttp")
	child.Env = append(os.Environ(), "PORT="+port)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	soon(t, "the server does not listen", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	s := connectTo(t, "http://"+address+"/mcp", nil, guard(), rewriter(), redact())
	s.write(s.toProxy, strings.Replace(hello, `"capabilities":{}`, `"capabilities":{"roots":{}}`, 1))
	s.until(`"serverInfo"`)
	s.write(s.toProxy, initialized)
	s.until(`"roots/list"`) // over the stream of messages that answer nothing
	for id, call := range []string{
		`"name":"echo","arguments":{"message":"the key is hunter2"}`, `"name":"get-structured-content","arguments":{"location":"New York"}`,
		`"name":"trigger-long-running-operation","arguments":{"duration":1,"steps":2},"_meta":{"progressToken":"p"}`,
	} {
		s.write(s.toProxy, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}`, id+1, call))
		if id == 2 {
			s.until(`"progressToken":"p"`)
		}
		want := []string{"the key is [redacted]", `"structuredContent":{`, "completed"}[id]
		if got := s.until(fmt.Sprintf(`"id":%d`, id+1)); !strings.Contains(got, want) {
			t.Errorf("want %q: %s", want, got)
		}
	}
	s.end(s.toProxy)
}
