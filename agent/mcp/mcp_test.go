package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/agent/mcp"
)

// patience bounds what should take milliseconds, on a busy machine.
const patience = 30 * time.Second

var _ agent.Tools = (*mcp.Servers)(nil)

// log is a log that tests can read.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *log) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// child configures the test binary as a server.
func child(tb testing.TB, mode string) mcp.ServerConfig {
	tb.Helper()
	return mcp.ServerConfig{Name: "helper", Command: self(tb), Env: map[string]string{modeKey: mode}}
}

func open(tb testing.TB, cfg mcp.Config) *mcp.Servers {
	tb.Helper()
	cfg.Backoff, cfg.MaxBackoff = 10*time.Millisecond, 50*time.Millisecond
	if cfg.Grace == 0 {
		cfg.Grace = patience
	}
	s, err := mcp.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func openOne(tb testing.TB, cfg mcp.ServerConfig) *mcp.Servers {
	tb.Helper()
	return open(tb, mcp.Config{Servers: []mcp.ServerConfig{cfg}})
}

func call(tb testing.TB, s *mcp.Servers, tool string, args any) abi.ToolResult {
	tb.Helper()
	result, err := s.CallTool(tb.Context(), abi.ToolCall{ID: "c1", Name: "mcp__helper__" + tool, Arguments: args})
	if err != nil {
		tb.Fatal(err)
	}
	return result
}

func said(r abi.ToolResult) string {
	out := r.Message
	for _, b := range r.Content {
		out += b.Text
	}
	return out
}

// eventually waits until a condition holds.
func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("never happened: %s", what)
		}
	}
}

func wantEcho(tb testing.TB, s *mcp.Servers) {
	tb.Helper()
	if r := call(tb, s, "echo", map[string]any{"text": "hello"}); r.Status != abi.ToolSuccess || said(r) != "hello" || r.CallID != "c1" || r.ToolName != "mcp__helper__echo" {
		tb.Fatalf("echo answered %+v", r)
	}
}

func find(s *mcp.Servers, tool string) *abi.Tool {
	list := s.Tools()
	i := slices.IndexFunc(list, func(t abi.Tool) bool { return t.Name == "mcp__helper__"+tool })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func TestTools_list(t *testing.T) {
	t.Parallel()
	cfg := child(t, "tools")
	cfg.Kinds = map[string]abi.ToolKind{"hang": abi.ToolSearch}
	cfg.Exclude = []string{"die"}
	s := openOne(t, cfg)
	for tool, kind := range map[string]abi.ToolKind{"echo": abi.ToolRead, "sum": abi.ToolEdit, "fail": abi.ToolOther, "hang": abi.ToolSearch} {
		if got := find(s, tool); got == nil || got.Kind != kind {
			t.Errorf("%s is listed as %+v, want kind %s", tool, got, kind)
		}
	}
	if find(s, "die") != nil {
		t.Error("an excluded tool is listed")
	}
	if got := find(s, "echo"); got.Description != "Says it again." || !strings.Contains(fmt.Sprint(got.Parameters), "text:map[") {
		t.Errorf("echo is %+v", got)
	}
	status := s.Health()
	if len(status) != 1 || status[0].State != mcp.StateReady || status[0].Tools != len(s.Tools()) || status[0].Restarts != 0 || status[0].LastError != "" {
		t.Errorf("health is %+v", status)
	}
}

func TestTools_includeAndMax(t *testing.T) {
	t.Parallel()
	var logged log
	few, first := child(t, "tools"), child(t, "tools")
	few.Include = []string{"echo", "sum"}
	first.Name, first.MaxTools = "first", 3
	s := open(t, mcp.Config{Servers: []mcp.ServerConfig{few, first}, Logger: logged.logger()})
	var names []string
	for _, tool := range s.Tools() {
		names = append(names, tool.Name)
	}
	if len(names) != 5 || !slices.Equal(names[:2], []string{"mcp__helper__echo", "mcp__helper__sum"}) || !strings.HasPrefix(names[2], "mcp__first__") {
		t.Errorf("listed: %q", names)
	}
	if !strings.Contains(logged.String(), "too many") {
		t.Errorf("no warning in the log: %s", &logged)
	}
}

func TestCallTool_results(t *testing.T) {
	t.Parallel()
	s := openOne(t, child(t, "tools"))
	wantEcho(t, s)
	if r := call(t, s, "sum", map[string]any{"A": 2, "B": int64(3)}); fmt.Sprint(r.Data) != "map[Sum:5]" || said(r) != `{"Sum":5}` {
		t.Errorf("sum answered %+v", r)
	}
	want := []abi.ContentBlock{
		abi.Text("look"),
		{Type: abi.BlockImage, MediaType: "image/png", Data: "cG5n"},
		{Type: abi.BlockAudio, MediaType: "audio/wav", Data: "d2F2"},
		abi.Text("Resource file:///a, a, text/plain, the file a"),
		abi.Text("Resource file:///b:\nb's text"),
		{Type: abi.BlockDocument, MediaType: "application/pdf", Title: "file:///c", Data: "cGRm"},
		{Type: abi.BlockImage, MediaType: "image/gif", Title: "file:///d", Data: "Z2lm"},
	}
	if r := call(t, s, "media", nil); !slices.Equal(r.Content, want) {
		t.Errorf("media answered %+v", r.Content)
	}
	if r := call(t, s, "fail", nil); r.Status != abi.ToolError || said(r) != "the disk is full" {
		t.Errorf("fail answered %+v", r)
	}
	if r := call(t, s, "nothing", nil); r.Status != abi.ToolSuccess || said(r) != "[the tool returned nothing]" {
		t.Errorf("nothing answered %+v", r)
	}
	if r := call(t, s, "noise", nil); said(r) != "sorry" {
		t.Errorf("noise answered %+v", r)
	}
}

func TestCallTool_refuses(t *testing.T) {
	t.Parallel()
	s := openOne(t, child(t, "tools"))
	for _, c := range []struct {
		tool string
		args any
		want string
	}{
		{"echo", map[string]any{"text": 1}, "Invalid arguments: "},
		{"echo", nil, "Invalid arguments: "},
		{"echo", `{"text":`, "Invalid arguments: they are not a JSON object"},
		{"nobody", nil, "tool 'mcp__helper__nobody' is not offered"},
	} {
		if r := call(t, s, c.tool, c.args); r.Status != abi.ToolError || !strings.HasPrefix(r.Message, c.want) {
			t.Errorf("%s(%v) answered %+v", c.tool, c.args, r)
		}
	}
}

func TestCallTool_cuts(t *testing.T) {
	t.Parallel()
	cfg := child(t, "tools")
	cfg.MaxOutput = 101
	r := call(t, openOne(t, cfg), "large", nil)
	want := []string{
		strings.Repeat("é", 50) + "\n[1900 bytes are cut off]", "m\n[3 bytes are cut off]",
		"[image of type image/png with 3145729 bytes is left out: it is too large]",
	}
	if len(r.Content) != 3 {
		t.Fatalf("large answered %d blocks", len(r.Content))
	}
	for i := range want {
		if r.Content[i].Text != want[i] {
			t.Errorf("block %d is %.300q", i, r.Content[i].Text)
		}
	}
}

func TestCallTool_serverDies(t *testing.T) {
	t.Parallel()
	var logged log
	cfg := child(t, "tools")
	cfg.Env["TOKEN"] = "secret-1234"
	s := open(t, mcp.Config{Servers: []mcp.ServerConfig{cfg}, Logger: logged.logger()})
	hanging := make(chan abi.ToolResult, 1)
	go func() {
		r, _ := s.CallTool(t.Context(), abi.ToolCall{Name: "mcp__helper__hang"})
		hanging <- r
	}()
	r := call(t, s, "die", nil)
	if r.Status != abi.ToolError || !strings.Contains(said(r), "server helper has ended: ") || !strings.Contains(said(r), "exit status 3") {
		t.Errorf("die answered %+v", r)
	}
	if r := <-hanging; r.Status != abi.ToolError || !strings.Contains(said(r), "helper") {
		t.Errorf("a call under way answered %+v", r)
	}
	if find(s, "echo") == nil {
		t.Error("the tools are not listed during the restart")
	}
	eventually(t, "the server is back", func() bool { h := s.Health()[0]; return h.State == mcp.StateReady && h.Restarts > 0 })
	wantEcho(t, s)
	if h := s.Health()[0]; !strings.Contains(h.LastError, "exit status 3") {
		t.Errorf("health is %+v", h)
	}
	if text := logged.String(); strings.Contains(text, "secret-1234") || !strings.Contains(text, "dying with [redacted]") {
		t.Errorf("the log has the secret, or no standard error: %s", text)
	}
}

func TestCallTool_timeoutAndCancel(t *testing.T) {
	t.Parallel()
	cfg := child(t, "tools")
	cfg.CallTimeout = 50 * time.Millisecond
	s := openOne(t, cfg)
	if r := call(t, s, "hang", nil); r.Status != abi.ToolError || said(r) != "Execution failed: the tool did not answer within 50ms" {
		t.Errorf("hang answered %+v", r)
	}
	eventually(t, "the server learns of it", func() bool { return said(call(t, s, "hung", nil)) == "it was cancelled" })

	s = openOne(t, child(t, "tools"))
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(fmt.Errorf("the user left")) })
	if _, err := s.CallTool(ctx, abi.ToolCall{Name: "mcp__helper__hang"}); err == nil || !strings.Contains(err.Error(), "the user left") {
		t.Errorf("a cancelled call returned %v", err)
	}
	wantEcho(t, s)
}

func TestCallTool_changes(t *testing.T) {
	t.Parallel()
	s := openOne(t, child(t, "tools"))
	if r := call(t, s, "old", nil); said(r) != "I am old" {
		t.Fatalf("old answered %+v", r)
	}
	call(t, s, "change", nil)
	eventually(t, "the new tool is listed", func() bool { return find(s, "new") != nil && find(s, "old") == nil })
	if r := call(t, s, "new", nil); said(r) != "I am new" {
		t.Errorf("new answered %+v", r)
	}
	if r := call(t, s, "old", nil); r.Status != abi.ToolError || !strings.Contains(r.Message, "not any longer") {
		t.Errorf("old answered %+v", r)
	}
}

func TestCallTool_floods(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{
		"line": "more than 16777216 bytes", "notifications": "more notifications and requests",
		"logs": "more notifications", "changes": "more notifications", "requests": "more notifications", "responses": "more notifications",
		"garbage": "more notifications",
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			s := open(t, mcp.Config{Grace: 50 * time.Millisecond, Servers: []mcp.ServerConfig{child(t, "tools")}})
			if r := call(t, s, tool, nil); r.Status != abi.ToolError || !strings.Contains(said(r), want) {
				t.Errorf("answered %.300s", said(r))
			}
			eventually(t, "the server is back", func() bool { h := s.Health()[0]; return h.State == mcp.StateReady && h.Restarts > 0 })
			wantEcho(t, s)
			if h := s.Health()[0]; !strings.Contains(h.LastError, want) {
				t.Errorf("health is %+v", h)
			}
		})
	}
}

func TestCallTool_offersNothingElse(t *testing.T) {
	t.Parallel()
	got := said(call(t, openOne(t, child(t, "tools")), "ask", nil))
	lines := strings.Split(got, "\n")
	if len(lines) != 3 {
		t.Fatalf("ask answered %q", got)
	}
	for i, want := range []string{"sampling", "roots/list", "elicitation"} {
		if !strings.Contains(lines[i], want) || strings.Contains(lines[i], "<nil>") {
			t.Errorf("the answer to %s was %q", want, lines[i])
		}
	}
}

func TestCallTool_environment(t *testing.T) {
	t.Setenv("MORTISE_TEST_SECRET", "of the host")
	cfg := child(t, "tools")
	cfg.Env["GIVEN"] = "by the config"
	got := said(call(t, openOne(t, cfg), "env", nil))
	if strings.Contains(got, "of the host") || !strings.Contains(got, "GIVEN=by the config") || !strings.Contains(got, "PATH=") {
		t.Errorf("the environment is %s", got)
	}
}

func TestOpen_failures(t *testing.T) {
	t.Parallel()
	good, bad := child(t, "tools"), mcp.ServerConfig{Name: "bad", Command: "/does/not/exist"}
	s := open(t, mcp.Config{Servers: []mcp.ServerConfig{bad, good}})
	wantEcho(t, s)
	if h := s.Health()[0]; h.State == mcp.StateReady || !strings.Contains(h.LastError, "/does/not/exist") {
		t.Errorf("health is %+v", h)
	}
	bad.Required = true
	if _, err := mcp.Open(t.Context(), mcp.Config{Servers: []mcp.ServerConfig{good, bad}}); err == nil || !strings.Contains(err.Error(), `server "bad" did not start`) {
		t.Errorf("Open returned %v", err)
	}
	silent := child(t, "silent")
	silent.Required, silent.StartTimeout = true, 100*time.Millisecond
	if _, err := mcp.Open(t.Context(), mcp.Config{Servers: []mcp.ServerConfig{silent}}); err == nil || !strings.Contains(err.Error(), "did not start within 100ms") {
		t.Errorf("Open returned %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := mcp.Open(ctx, mcp.Config{Servers: []mcp.ServerConfig{child(t, "silent")}}); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("Open returned %v", err)
	}
}

func TestOpen_retries(t *testing.T) {
	t.Parallel()
	cfg := child(t, "once")
	cfg.Args = []string{filepath.Join(t.TempDir(), "started")}
	s := openOne(t, cfg)
	eventually(t, "the server starts", func() bool { return s.Health()[0].State == mcp.StateReady })
	wantEcho(t, s)
	if h := s.Health()[0]; h.Restarts != 1 || !strings.Contains(h.LastError, "exit status 4") {
		t.Errorf("health is %+v", h)
	}
}

const (
	initialized = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`
	oneTool     = `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}`
)

// TestClose_stubborn is about a child that neither reads nor ends: a call whose arguments fill the pipe is given up, and
// the child is killed.
func TestClose_stubborn(t *testing.T) {
	t.Parallel()
	cfg := child(t, initialized+"\n"+oneTool)
	cfg.CallTimeout = 50 * time.Millisecond
	s := open(t, mcp.Config{Grace: 20 * time.Millisecond, Servers: []mcp.ServerConfig{cfg}})
	if r := call(t, s, "echo", map[string]any{"x": strings.Repeat("x", 1<<20)}); said(r) != "Execution failed: the tool did not answer within 50ms" {
		t.Errorf("echo answered %+v", r)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if h := s.Health()[0]; h.State != mcp.StateClosed {
		t.Errorf("health is %+v", h)
	}
	if r := call(t, s, "echo", nil); r.Status != abi.ToolError {
		t.Errorf("a call after Close answered %+v", r)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("the second Close returned %v", err)
	}
}

func TestClose_ignoresSIGTERM(t *testing.T) {
	t.Parallel()
	var logged log
	cfg := child(t, "stubborn")
	cfg.StartTimeout = patience
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		eventually(t, "the child runs", func() bool { return strings.Contains(logged.String(), "line=ready") })
	}()
	if _, err := mcp.Open(ctx, mcp.Config{Logger: logged.logger(), Grace: 20 * time.Millisecond, Servers: []mcp.ServerConfig{cfg}}); err == nil {
		t.Error("Open returned no error")
	}
}

// TestClose_group is about what a server leaves behind, holding its output.
func TestClose_group(t *testing.T) {
	t.Parallel()
	s := openOne(t, child(t, "tools"))
	left := make([]int, 2)
	for i := range left {
		pid, err := strconv.Atoi(said(call(t, s, "leave", nil)))
		if err != nil {
			t.Fatal(err)
		}
		left[i] = pid
		if i == 0 {
			call(t, s, "die", nil)
			eventually(t, "the server is back", func() bool { h := s.Health()[0]; return h.State == mcp.StateReady && h.Restarts > 0 })
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pid := range left {
		eventually(t, "what the server left is killed", func() bool {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if strings.Contains(string(stat), ") Z ") { // until init reaps it
				return true
			}
			process, err := os.FindProcess(pid)
			return err != nil || process.Signal(syscall.Signal(0)) != nil
		})
	}
}

func TestCloseContext(t *testing.T) {
	t.Parallel()
	s := open(t, mcp.Config{Grace: 100 * time.Millisecond, Servers: []mcp.ServerConfig{child(t, initialized+"\n"+oneTool)}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(ctx); err == nil || !strings.Contains(err.Error(), "still ending") {
		t.Errorf("Close returned %v", err)
	}
}

func TestTools_hostile(t *testing.T) {
	t.Parallel()
	object := `"inputSchema":{"type":"object"}`
	tools := []string{
		`{"name":"echo",` + object + `}`, `{"name":"echo",` + object + `}`, `{"name":"a.b/c d",` + object + `}`, `{"name":"",` + object + `}`,
		`{"name":"` + strings.Repeat("n", 200) + `1",` + object + `}`, `{"name":"` + strings.Repeat("n", 200) + `2",` + object + `}`,
		`{"name":"wordy","description":"` + strings.Repeat("d", 9000) + `",` + object + `}`,
		`{"name":"list","inputSchema":{"type":"array"}}`, `{"name":"null","inputSchema":null}`, `{"name":"none"}`, `null`,
		`{"name":"bomb","inputSchema":{"type":"object","properties":{"a":{"pattern":"((a{1,1000}){1,1000}){1,1000}"}}}}`,
		`{"name":"loop","inputSchema":{"type":"object","$ref":"#"}}`,
		`{"name":"file","inputSchema":{"type":"object","$ref":"file:///etc/passwd"}}`,
		`{"name":"big","inputSchema":{"type":"object","description":"` + strings.Repeat("d", 70000) + `"}}`,
	}
	var logged log
	cfg := child(t, initialized+"\n"+`{"jsonrpc":"2.0","id":2,"result":{"tools":[`+strings.Join(tools, ",")+`]}}`)
	s := open(t, mcp.Config{Grace: 20 * time.Millisecond, Logger: logged.logger(), Servers: []mcp.ServerConfig{cfg}})
	var names []string
	for _, tool := range s.Tools() {
		if len(tool.Name) > 64 {
			t.Errorf("the name %q is too long", tool.Name)
		}
		names = append(names, tool.Name)
	}
	want := []string{"mcp__helper__echo", "mcp__helper__a_b_c_d_", "mcp__helper___", "mcp__helper__nnn", "mcp__helper__nnn"}
	if !slices.EqualFunc(names, want, strings.HasPrefix) || names[3] == names[4] {
		t.Errorf("listed: %q", names)
	}
	for _, left := range []string{"echo", "wordy", "list", "null", "none", "bomb", "loop", "file", "big"} {
		if !strings.Contains(logged.String(), "tool="+left+" ") {
			t.Errorf("no warning about %q in the log", left)
		}
	}
}

func TestTools_endlessPages(t *testing.T) {
	t.Parallel()
	answers := []string{initialized}
	for i := range 150 {
		answers = append(answers, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"nextCursor":"c","tools":[{"name":"t%d","inputSchema":{"type":"object"}}]}}`, i+2, i))
	}
	s := open(t, mcp.Config{Grace: 20 * time.Millisecond, Servers: []mcp.ServerConfig{child(t, strings.Join(answers, "\n"))}})
	if n := len(s.Tools()); n != 100 {
		t.Errorf("%d tools are listed", n)
	}
}
