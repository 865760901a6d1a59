package live_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/install"
	"github.com/mortise-dev/mortise/hook/live"
	"github.com/mortise-dev/mortise/hook/mcpproxy"
	"github.com/mortise-dev/mortise/internal/agents"
	"github.com/mortise-dev/mortise/phases"
)

// proxy is mortise mcp around the MCP server of the tests, in a process of its own.
func proxy(ctx context.Context) error {
	plugins := []phases.Plugin{redact(secret), plugin("guard", abi.ModeGate, abi.ToolGate, func(e *abi.Event) (*abi.Reply, error) {
		if strings.HasSuffix(e.Call.Name, "__read_other") {
			return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "the guard forbids the other key"}}, nil
		}
		return nil, nil
	})}
	trace := hook.NewTrace()
	r, err := phases.New(phases.Config{Plugins: plugins, Record: trace.Record})
	if err != nil {
		return err
	}
	p := &hook.Program{Runtime: r, Trace: trace}
	for _, n := range plugins {
		p.Plugins = append(p.Plugins, n.Describe())
	}
	e, err := hook.New(hook.Config{Program: p})
	if err != nil {
		return err
	}
	between, err := mcpproxy.New(mcpproxy.Config{Engine: e, Server: "vault", Session: "s"})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), "MORTISE_TEST_MCP=1", "MORTISE_TEST_PROXY=")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := between.Run(ctx, os.Stdin, os.Stdout, out, in); err != nil {
		return err
	}
	return cmd.Wait()
}

// TestLive_proxy: an agent without any hook, whose MCP server is wrapped: one call is blocked, and what the other one
// returns is redacted, structured content, too.
func TestLive_proxy(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, dialect := range []string{"claude", "codex"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			calls := []abi.ToolCall{
				{ID: "toolu_1", Name: "mcp__vault__read_key", Arguments: map[string]any{}}, {ID: "toolu_2", Name: "mcp__vault__read_other", Arguments: map[string]any{}},
			}
			r := rig(t, dialect, nil, calls, func(c *live.Config) { c.Untrusted, c.Events = true, []string{} })
			more := mcpServer(t, r, dialect, self, "MORTISE_TEST_PROXY")
			run(t, r, "go", more...)
			all := sent(r)
			if strings.Contains(all, secret) || !strings.Contains(all, "[redacted]") || !strings.Contains(all, "the guard forbids the other key") {
				t.Error("the secret reached the model, or the results did not")
				dump(t, r)
			}
		})
	}
}

// mcpServer configures the MCP server of the tests, and returns flags for it.
func mcpServer(t *testing.T, r *live.Rig, dialect, command, variable string) []string {
	t.Helper()
	if dialect == "claude" {
		config := filepath.Join(r.Home(), "mcp.json")
		text := fmt.Sprintf(`{"mcpServers":{"vault":{"command":%q,"env":{%q:"1"}}}}`, command, variable)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"--mcp-config", config, "--allowedTools", "mcp__vault__read_key,mcp__vault__read_other"}
	}
	f, err := os.OpenFile(filepath.Join(r.Home(), ".codex", "config.toml"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "[mcp_servers.vault]\ncommand = %q\nenv = { %s = \"1\" }\n", command, variable); err != nil {
		t.Fatal(err)
	}
	return nil
}

// TestLive_foreignTrust: hooks of others keep the trust that Codex has in them when ours come and go.
func TestLive_foreignTrust(t *testing.T) {
	t.Parallel()
	codex := agents.Path(t, "codex")
	home := t.TempDir()
	file := filepath.Join(home, ".codex", "hooks.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	theirs := `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"true theirs"}]}],"Stop":[{"hooks":[{"type":"command","command":"true theirs"}]}]}}`
	if err := os.WriteFile(file, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CODEX_HOME=" + filepath.Dir(file)}
	trusted := func(ours func(string) bool, trust bool) int {
		t.Helper()
		hooks, err := install.CodexHooks(t.Context(), codex, home, ours, env, trust)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range hooks {
			if hooks[i].Runs() {
				n++
			}
		}
		return n
	}
	theirsOnly := func(command string) bool { return strings.Contains(command, "theirs") }
	if n := trusted(theirsOnly, false); n != 0 {
		t.Fatalf("%d are trusted before", n)
	}
	if n := trusted(theirsOnly, true); n != 2 {
		t.Fatalf("%d are trusted", n)
	}
	a, err := install.AgentOf("codex")
	if err != nil {
		t.Fatal(err)
	}
	mark := install.Mark("/p", "codex")
	entries := install.Entries(a.Dialect, "/c/mortise-hook", "/p", []string{"PreToolUse", "Stop"}, func(*hook.EventSpec) bool { return true })
	if _, err := install.Edit(file, false, func(b []byte) ([]byte, error) { return a.Added(b, mark, entries) }); err != nil {
		t.Fatal(err)
	}
	if n := trusted(theirsOnly, false); n != 2 {
		t.Errorf("after install %d of theirs are trusted", n)
	}
	if n := trusted(mark.MatchString, false); n != 0 {
		t.Errorf("%d of ours are trusted without being asked for", n)
	}
	if n := trusted(mark.MatchString, true); n != 2 {
		t.Errorf("%d of ours are trusted", n)
	}
	now, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Uninstall(file, now, mark); err != nil {
		t.Fatal(err)
	}
	if n := trusted(theirsOnly, false); n != 2 {
		t.Errorf("after uninstall %d of theirs are trusted", n)
	}
}
