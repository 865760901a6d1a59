package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/exit"
)

// TestMCP_exit: the server's exit code and standard error are passed on.
func TestMCP_exit(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	var out, errs bytes.Buffer
	in := strings.NewReader("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n")
	code := cli.Main(t.Context(), []string{"mcp", "--config", p.config, "--profile", p.profile, "--", "/bin/sh", "-c", "cat; echo words >&2; exit 7"}, cli.Streams{In: in, Out: &out, Err: &errs}, links.All())
	if code != 7 || out.String() != "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n" || !strings.Contains(errs.String(), "words\n") {
		t.Errorf("exit %d, %q, %q", code, out.String(), errs.String())
	}
}

// TestMCP_guard: a command that a tool of a server would run is judged by the module guard, and what is no command passes.
func TestMCP_guard(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	calls := []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"do","arguments":{"command":"rm -rf /"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shell","arguments":{"input":"rm -rf /"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"do","arguments":{"command":"rm","args":["-rf","/"]}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"note","arguments":{"text":"rm -rf /"}}}`,
	}
	var out, errs bytes.Buffer
	in := strings.NewReader(strings.Join(calls, "\n") + "\n")
	code := cli.Main(t.Context(), []string{"mcp", "--config", p.config, "--profile", p.profile, "--", "/bin/cat"}, cli.Streams{In: in, Out: &out, Err: &errs}, links.All())
	if code != exit.OK || strings.Count(out.String(), "guard: rule recursive_delete") != 3 || !strings.Contains(out.String(), calls[3]) {
		t.Errorf("exit %d, %s%s", code, out.String(), errs.String())
	}
}

// TestMCP_serve: the tools of plugins are served, and their calls and results pass the plugins as those of other servers do.
func TestMCP_serve(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	data, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	guests := filepath.Dir(regexp.MustCompile(`/\S+/guard\.wasm`).FindString(string(data)))
	text := strings.Replace(string(data), "redact.wasm}", "redact.wasm, config: {words: [missing]}}", 1) + "  - {name: bank, module: " + guests + "/teller.wasm}\n"
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	in, client := io.Pipe()
	answers, out := io.Pipe()
	var errs bytes.Buffer
	done := make(chan exit.Code, 1)
	go func() {
		done <- cli.Main(t.Context(), []string{"mcp", "serve", "--config", p.config, "--profile", p.profile}, cli.Streams{In: in, Out: out, Err: &errs}, links.All())
		_ = out.Close()
	}()
	lines := bufio.NewReader(answers)
	ask := func(line string) string {
		if _, err := io.WriteString(client, line+"\n"); err != nil {
			t.Fatal(err)
		}
		got, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%v: %s", err, errs.String())
		}
		return got
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	if got := ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); !strings.Contains(got, `"name":"sum"`) {
		t.Error(got)
	}
	if got := ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"sum","arguments":{"values":[40,2]}}}`); !strings.Contains(got, "42") || strings.Contains(got, "isError\":true") {
		t.Error(got)
	}
	if got := ask(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"sum","arguments":{}}}`); !strings.Contains(got, "property") || strings.Contains(got, "missing") {
		t.Errorf("the result did not pass the plugins: %s", got)
	}
	_ = client.Close()
	if code := <-done; code != exit.OK {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

// TestMCP_url: a server over HTTP is wrapped as a child is, gets headers from the environment and from files, and the end of the client's
// input ends the program.
func TestMCP_url(t *testing.T) {
	p := newHookPlace(t)
	data, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.config, []byte(strings.Replace(string(data), "redact.wasm}", "redact.wasm, config: {words: [hunter2]}}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "key"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "the key is hunter2"}}}, nil, nil
	})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer from-env" || r.Header.Get("X-Key") != "from-file" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer remote.Close()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_MCP_AUTHORIZATION", "Bearer from-env")
	args := []string{"mcp", "--config", p.config, "--profile", p.profile, "--url", remote.URL + "/s3cr3t", "--header", "X-Key=file:" + file}
	lines := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"key","arguments":{}}}`,
	}, "\n") + "\n"
	run := func(want exit.Code, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		code := cli.Main(t.Context(), args, cli.Streams{In: strings.NewReader(lines), Out: &out, Err: &errs}, links.All())
		if all := out.String() + errs.String(); code != want || strings.Contains(all, "s3cr3t") || strings.Contains(all, "from-") {
			t.Errorf("%q: exit %d, not %d\n%s", args, code, want, all)
		}
		return out.String() + errs.String()
	}
	if out := run(exit.OK, args...); !strings.Contains(out, `"id":1,"error":{"code":-32000,"message":"mortise: `+remote.URL+`: it answered 401 Unauthorized`) {
		t.Error(out)
	}
	good := append(slices.Clone(args), "--header", "Authorization=env:TEST_MCP_AUTHORIZATION")
	if out := run(exit.OK, good...); !strings.Contains(out, `"serverInfo"`) || !strings.Contains(out, `"id":2`) || strings.Contains(out, "hunter2") {
		t.Error(out)
	}
	for _, more := range [][]string{
		{"--header", "Authorization=Bearer s3cr3t"},
		{"--header", "Authorization"},
		{"--header", "Authorization=env:NO_SUCH_VARIABLE"},
		{"--header", "X-Key=file:" + p.config + "/none"},
		{"--header", "Host=env:TEST_MCP_AUTHORIZATION"},
		{"--header", "Mcp-Session-Id=env:TEST_MCP_AUTHORIZATION"},
		{"--url", "http://192.0.2.1/s3cr3t"},
		{"--url", "ftp://127.0.0.1/s3cr3t"},
		{"--url", "https://me:s3cr3t@127.0.0.1/"},
		{"--url", "s3cr3t"},
		{"--", "sh"},
	} {
		run(exit.Usage, append(slices.Clone(args), more...)...)
	}
	run(exit.Usage, "mcp", "--header", "A=env:TEST_MCP_AUTHORIZATION", "--", "sh")
}

// TestMCP_pins: two wrappers of one server at once remember what both of them saw.
func TestMCP_pins(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	const tools = 40
	server := `first=b; mkdir "$0/first" 2>/dev/null && first=a
while read -r line; do
	case $line in *list*)
		list=; for i in $(seq ` + fmt.Sprint(tools) + `); do list="$list{\"name\":\"$first-$i\"},"; done
		echo "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[${list%,}]}}";;
	*) echo "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}";;
	esac
done`
	args := []string{"mcp", "--config", p.config, "--profile", p.profile, "--", "/bin/sh", "-c", server, t.TempDir()}
	var ready, all sync.WaitGroup
	ready.Add(2)
	for range 2 {
		all.Go(func() {
			in, client := io.Pipe()
			answers, out := io.Pipe()
			lines := bufio.NewReader(answers)
			all.Go(func() {
				var errs bytes.Buffer
				if code := cli.Main(t.Context(), args, cli.Streams{In: in, Out: out, Err: &errs}, links.All()); code != exit.OK {
					t.Errorf("exit %d: %s", code, errs.String())
				}
				_ = out.Close()
			})
			for i, method := range []string{"ping", "tools/list"} {
				fmt.Fprintf(client, `{"jsonrpc":"2.0","id":%d,"method":%q}`+"\n", i, method)
				if line, err := lines.ReadString('\n'); err != nil {
					t.Errorf("%v %s", err, line)
				}
				if i == 0 { // both have opened the file
					ready.Done()
					ready.Wait()
				}
			}
			_ = client.Close()
		})
	}
	all.Wait()
	files, err := filepath.Glob(filepath.Join(p.profile, "mcp-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	pinned := map[string]string{}
	if err != nil || json.Unmarshal(data, &pinned) != nil || len(pinned) != 2*tools {
		t.Errorf("%v, %d tools are pinned, not %d", err, len(pinned), 2*tools)
	}
}
