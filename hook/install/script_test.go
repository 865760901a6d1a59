package install_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// shimDriver calls an extension as its agent does, for one call, and prints what comes of it.
const shimDriver = `
const agent = process.argv[2], module = await import(process.argv[3]);
const on = {}, out = {};
if (agent === "pi") {
  module.default({ on: (name, fn) => (on[name] = fn) });
  const ctx = { sessionManager: { getSessionId: () => "s", getSessionFile: () => "" } };
  out.gate = await on.tool_call({ toolCallId: "c", toolName: "bash", input: { command: "ls" } }, ctx) ?? {};
  out.result = await on.tool_result({ toolCallId: "c", toolName: "bash", input: {}, content: [{ type: "text", text: "raw" }] }, ctx) ?? {};
  out.denied = out.gate.block ?? false;
  out.text = out.result.content?.[0].text ?? "raw";
} else {
  const hooks = await module.Mortise({ directory: "/" });
  out.denied = false;
  await hooks["tool.execute.before"]({ sessionID: "s", callID: "c", tool: "bash" }, { args: { command: "ls" } }).catch(() => (out.denied = true));
  const result = { output: "raw" };
  await hooks["tool.execute.after"]({ sessionID: "s", callID: "c", tool: "bash" }, result);
  out.text = result.output;
}
console.log(JSON.stringify({ denied: out.denied, text: out.text }));
`

// TestShim: without an answer of the client a gate that fails closed denies, and a result that a plugin has to see is withheld; where
// no plugin fails closed the agent continues.
func TestShim(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		testskip.Missing(t, "node is not installed (Debian: apt-get install nodejs)")
	}
	dir := t.TempDir()
	driver, dies, prints := filepath.Join(dir, "driver.mjs"), filepath.Join(dir, "dies"), filepath.Join(dir, "prints")
	unknowing := filepath.Join(dir, "unknowing") // as without a policy file
	for path, text := range map[string]string{driver: shimDriver, dies: "#!/bin/sh\nkill -9 $$\n", prints: "#!/bin/sh\ncat >/dev/null\necho words\n", unknowing: "#!/bin/sh\n[ \"$4\" != closed ]\n"} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is executed
			t.Fatal(err)
		}
	}
	for name, events := range map[string][]string{"pi": {"tool_call", "tool_result"}, "opencode": {"tool.execute.before", "tool.execute.after"}} {
		for _, client := range []string{filepath.Join(dir, "missing"), dies, prints, unknowing} {
			for _, closed := range []bool{true, false} {
				script, err := agent(t, name).Script(client, profile, events, func(*hook.EventSpec) bool { return closed })
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(dir, "shim.mjs")
				if err := os.WriteFile(file, script, 0o600); err != nil {
					t.Fatal(err)
				}
				out, err := exec.CommandContext(t.Context(), node, driver, name, file).CombinedOutput()
				var got struct {
					Denied bool
					Text   string
				}
				if err != nil || json.Unmarshal(out, &got) != nil {
					t.Fatalf("%s: %v %s", name, err, out)
				}
				if got.Denied != closed || (got.Text == "raw") == closed {
					t.Errorf("%s, client %s, closed %v: %s", name, filepath.Base(client), closed, out)
				}
			}
		}
	}
}

// mcpDriver has opencode's extension see the result of a tool of an MCP server.
const mcpDriver = `
const hooks = await (await import(process.argv[2])).Mortise({ directory: "/" });
const result = { content: [
  { type: "text", text: "key hunter2" }, { type: "image", mimeType: "image/png", data: "AA" }, { type: "resource", resource: { uri: "x", text: "hunter2" } },
] };
await hooks["tool.execute.after"]({ sessionID: "s", callID: "c", tool: "srv_get" }, result);
console.log(JSON.stringify(result));
`

// TestShim_mcp: plugins see, and replace, what a tool of an MCP server says to opencode.
func TestShim_mcp(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		testskip.Missing(t, "node is not installed (Debian: apt-get install nodejs)")
	}
	dir := t.TempDir()
	driver, client, shim := filepath.Join(dir, "driver.mjs"), filepath.Join(dir, "client"), filepath.Join(dir, "shim.mjs")
	script, err := agent(t, "opencode").Script(client, profile, []string{"tool.execute.after"}, func(*hook.EventSpec) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	masks := "#!/bin/sh\ngrep -q 'key hunter2.nhunter2' && echo '{\"output\":\"***\"}'\n"
	for path, text := range map[string]string{driver: mcpDriver, client: masks, shim: string(script)} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is executed
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), node, driver, shim).CombinedOutput()
	want := `{"content":[{"type":"text","text":"***"},{"type":"image","mimeType":"image/png","data":"AA"}]}` + "\n"
	if err != nil || string(out) != want {
		t.Errorf("%v %s", err, out)
	}
}
