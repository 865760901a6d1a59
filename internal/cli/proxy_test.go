package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// proxyCommand is mortise proxy in a process and with a home of its own.
func proxyCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	dir, cache := t.TempDir(), filepath.Dir(compiled(t)) // a new home has no compiled modules
	cmd := child(t, dir, append([]string{"proxy"}, args...)...)
	cmd.Env = append(cmd.Env, "HOME="+dir, "XDG_CACHE_HOME="+cache, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "ANTHROPIC_BASE_URL=", "OPENAI_BASE_URL=")
	return cmd
}

// The launcher's agent has the address of a proxy of its own, its exit code is ours, signals reach it, and the ledger
// is printed (acceptance 54).
func TestProxy_launcher(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":2}}`)
	}))
	defer up.Close()
	cmd := proxyCommand(t, "--", "sh", "-c", `trap 'exit 9' TERM; test -n "$ANTHROPIC_BASE_URL" || exit 1
curl -s -o answer -d '{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"x"}]}' -H 'x-api-key: k' "$ANTHROPIC_BASE_URL/v1/messages"
kill -TERM $PPID; while :; do sleep 0.1; done`)
	config := "version: 1\nproxy:\n  anthropic:\n    url: " + up.URL + "\n"
	if err := os.WriteFile(filepath.Join(cmd.Dir, "mortise.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 9 {
		t.Errorf("exit code %d (%v): %s", code, err, &out)
	}
	if answer, _ := os.ReadFile(filepath.Join(cmd.Dir, "answer")); !strings.Contains(string(answer), `"hi"`) {
		t.Errorf("the agent got %q; %s", answer, &out)
	}
	if !strings.Contains(out.String(), "1 request,") {
		t.Errorf("no ledger: %s", &out)
	}
	if strings.Contains(out.String(), "x-api-key") || strings.Contains(out.String(), "k\n") {
		t.Errorf("a credential is printed: %s", &out)
	}
}

// The long-running proxy serves its ledger and metrics, and ends in an orderly way. The key of a model that no plugin
// and no policy may ask is not needed.
func TestProxy_serve(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs signals")
	}
	cmd := proxyCommand(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	text := "version: 1\nmodels: {own: {provider: anthropic, name: x, key: {env: NO_SUCH_KEY}}}\n" // not needed here
	if err := os.WriteFile(filepath.Join(cmd.Dir, "mortise.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var listen, admin string
	if _, err := fmt.Fscanf(out, "proxy %s\nadmin %s\n", &listen, &admin); err != nil {
		t.Fatalf("%v: %s", err, &errs)
	}
	get := func(path string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, admin+path, http.NoBody)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	var report map[string]any
	if err := json.Unmarshal([]byte(get("/v1/proxy")), &report); err != nil || report["total"] == nil {
		t.Errorf("%v: %v", err, report)
	}
	if m := get("/metrics"); !strings.Contains(m, `mortise_proxy_cost_units{world="paid"} 0`) {
		t.Errorf("%s", m)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, &errs)
	}
}

// The proxy listens beyond loopback with a token alone.
func TestProxy_config(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"proxy:\n  listen: 0.0.0.0:1\n":            "there is no token",
		"proxy:\n  admin: 0.0.0.0:1\n":             "proxy.admin",
		"proxy:\n  anthropic:\n    url: ftp://x\n": "Anthropic",
		"models: {own: {provider: anthropic, name: x, key: {env: NO_SUCH_KEY}}}\ncompaction: {summarizer: {policy: anchored, grants: {model: {summarizer: own}}}}\n": `"NO_SUCH_KEY" is not set`,
		"proxy:\n  ungated: [v1/files]\n":                                "proxy.ungated",
		"proxy:\n  openai:\n    key:\n      value: sk-secret-12345678\n": "does not belong in the config",
	} {
		cmd := proxyCommand(t)
		_ = os.WriteFile(filepath.Join(cmd.Dir, "mortise.yaml"), []byte("version: 1\n"+text), 0o600)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "sk-secret") {
			t.Errorf("%s: %v: %s", text, err, out)
		}
		if cmd.ProcessState.ExitCode() != 3 {
			t.Errorf("%s: exit code %d", text, cmd.ProcessState.ExitCode())
		}
	}
}

// What doctor --live finds in the requests of an agent that leaves betas out and sends other tools behind a base URL that is not the
// vendor's (F14).
func TestProxy_doctorLive(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	const agent = `#!/bin/sh
beta=a-1 tools='{},{}'
test -n "$_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL" && beta=a-1,context-1m-2025-08-07 tools='{}'
test "$ENABLE_TOOL_SEARCH" = true && tools='{}'
test -z "$QUIET" && curl -s -d "{\"model\":\"m\",\"tools\":[$tools]}" -H "anthropic-beta: $beta" "$ANTHROPIC_BASE_URL/v1/messages?beta=true"
`
	for _, c := range []struct {
		quiet string
		code  int
		want  []string
	}{
		{"", 0, []string{
			"warn  claude --live: model and window: m, without the proxy m with 1M tokens", "warn  claude --live: betas: 1, without the proxy 2",
			"missing: context-1m-2025-08-07", "ok    claude --live: tools in the first request: 1, as without",
		}},
		{"1", 1, []string{"claude sent no request with tools"}},
	} {
		cmd := proxyCommand(t, "doctor", "--live")
		if err := os.WriteFile(filepath.Join(cmd.Dir, "claude"), []byte(agent), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, "PATH="+cmd.Dir+string(os.PathListSeparator)+os.Getenv("PATH"), "QUIET="+c.quiet, "ENABLE_TOOL_SEARCH=")
		out, _ := cmd.CombinedOutput()
		for _, want := range c.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%q is missing in %s", want, out)
			}
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("exit code %d: %s", code, out)
		}
	}
}

// A project cannot lead Claude Code around the proxy, settings that do are refused, and an agent that asked nothing is
// no silence. No user's settings change.
func TestProxy_detour(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	for name, c := range map[string]struct {
		settings, flag, want string
		code                 int
	}{
		"base URL":         {`{"env":{"ANTHROPIC_BASE_URL":"http://user:secret@other.example"}}`, "", "is http://other.example: it is overridden", 0},
		"bedrock":          {`{"env":{"CLAUDE_CODE_USE_BEDROCK":"1"}}`, "", "env.CLAUDE_CODE_USE_BEDROCK in ", 3},
		"bedrock, allowed": {`{"env":{"CLAUDE_CODE_USE_BEDROCK":"1"}}`, "--allow-detour", "0 requests came through the proxy", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--", "./claude", "-p", "hi"}
			if c.flag != "" {
				args = append([]string{c.flag}, args...)
			}
			cmd := proxyCommand(t, args...)
			project := filepath.Join(cmd.Dir, ".claude", "settings.local.json")
			script := "#!/bin/sh\ntest \"$1\" = --settings && cat \"$2\" >given\n"
			if err := errors.Join(os.MkdirAll(filepath.Dir(project), 0o700), os.WriteFile(project, []byte(c.settings), 0o600),
				os.WriteFile(filepath.Join(cmd.Dir, "claude"), []byte(script), 0o700)); err != nil {
				t.Fatal(err)
			}
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) || strings.Contains(string(out), "secret") {
				t.Errorf("exit code %d: %s", code, out)
			}
			given, err := os.ReadFile(filepath.Join(cmd.Dir, "given"))
			if (err == nil) != (c.code == 0) || err == nil && !strings.Contains(string(given), `"ANTHROPIC_BASE_URL": "http://127.0.0.1:`) {
				t.Errorf("%v: %s", err, given)
			}
			if _, err := os.Stat(filepath.Join(cmd.Dir, ".claude", "settings.json")); err == nil {
				t.Error("the user's settings are changed")
			}
		})
	}
}

// Install and uninstall report what they did, and the doctor names an address where nothing listens.
func TestProxy_installed(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	run := func(want string, args ...string) {
		t.Helper()
		c := proxyCommand(t, args...)
		c.Dir, c.Env = home, append(c.Env, "HOME="+home, "PI_CODING_AGENT_DIR=")
		if out, _ := c.CombinedOutput(); !strings.Contains(string(out), want) || strings.Contains(string(out), "launch:") {
			t.Errorf("%v: %s; want %q", args, out, want)
		}
	}
	path := filepath.Join(home, ".pi", "agent", "models.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("{}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	run("the proxy's address is not in "+path, "uninstall", "pi")
	run("backup: "+path, "install", "pi", "--listen", "127.0.0.1:1")
	run("mortise proxy uninstall pi", "doctor")
	run("providers.openai.baseUrl in "+path+" is http://127.0.0.1:1/v1, where nothing listens", "doctor")
	run("restored "+path, "uninstall", "pi")
	run("wrote "+path, "install", "pi")
	_ = os.WriteFile(path, []byte(`{"providers":{"openai":{"baseUrl":"http://new"}}}`), 0o600)
	run("providers.openai.baseUrl is left as it is now: http://new; before the installation: nothing", "uninstall", "pi")
}
