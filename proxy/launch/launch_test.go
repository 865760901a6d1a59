package launch_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/proxy/launch"
)

func place(t *testing.T) launch.Place {
	t.Helper()
	home := t.TempDir()
	return launch.Place{Home: home, Getenv: func(string) string { return "" }, State: filepath.Join(home, "state")}
}

const address = "http://127.0.0.1:8430"

// files are settings as users have them, by agent, with what must be in them after an installation.
func files() []struct{ agent, path, before, want, route, former string } {
	return []struct{ agent, path, before, want, route, former string }{
		{launch.Claude, ".claude/settings.json", "", `"ANTHROPIC_BASE_URL": "http://127.0.0.1:8430"`, "", ""},
		{launch.Claude, ".claude/settings.json", "{\n\t\"model\" : \"opus\",\n  \"env\": {\"A\":\"1\"}\n}", `"ANTHROPIC_BASE_URL":"http://127.0.0.1:8430"`, "", ""},
		{
			launch.Claude, ".claude/settings.json", `{"env":{"ANTHROPIC_BASE_URL":"https://gateway.example/a"}}`, `"ANTHROPIC_BASE_URL":"http://127.0.0.1:8430/to/claude"`,
			"claude", "https://gateway.example/a",
		},
		{launch.Codex, ".codex/config.toml", "", "base_url = \"http://127.0.0.1:8430/v1\"", "", ""},
		{launch.Codex, ".codex/config.toml", "model = \"gpt-5\" # mine\n[tools]\nweb = true", "model_provider = \"mortise\"", "", ""},
		{
			launch.Codex, ".codex/config.toml", "model_provider = \"x\"\n\n[model_providers.x]\nname = \"X\"\nbase_url = \"https://x.example/v1\" # c\n",
			"base_url = \"http://127.0.0.1:8430/to/codex\" # c", "codex", "https://x.example/v1",
		},
		{launch.Pi, ".pi/agent/models.json", `{"providers":{"local":{"baseUrl":"http://127.0.0.1:1/v1","api":"openai-completions"}}}`, "/to/pi-local", "pi-local", "http://127.0.0.1:1/v1"},
		{launch.OpenCode, ".config/opencode/opencode.json", "{}", `"baseURL": "http://127.0.0.1:8430/v1"`, "", ""},
	}
}

// Settings are restored byte for byte, also after a second installation and after a kill at any moment, and a gateway
// that the user had becomes the upstream (acceptance 50; F32, F33).
func TestInstall(t *testing.T) {
	t.Parallel()
	for _, f := range files() {
		p := place(t)
		path := filepath.Join(p.Home, filepath.FromSlash(f.path))
		existed := f.before != ""
		if existed {
			_ = os.MkdirAll(filepath.Dir(path), 0o700)
			if err := os.WriteFile(path, []byte(f.before), 0o640); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second one is an upgrade
			if _, err := launch.Install(p, f.agent, address); err != nil {
				t.Fatalf("%s: %v", f.agent, err)
			}
		}
		now, _ := os.ReadFile(path)
		if !strings.Contains(string(now), f.want) || strings.Count(string(now), "model_providers.mortise") > 1 {
			t.Errorf("%s: %s", f.agent, now)
		}
		if f.route != "" && launch.Route(p, f.route) != f.former {
			t.Errorf("%s: the route %s goes to %q", f.agent, f.route, launch.Route(p, f.route))
		}
		if _, err := launch.Uninstall(p, f.agent); err != nil {
			t.Fatalf("%s: %v", f.agent, err)
		}
		after, err := os.ReadFile(path)
		if existed && !bytes.Equal(after, []byte(f.before)) || !existed && err == nil {
			t.Errorf("%s: restored as %q, was %q", f.agent, after, f.before)
		}
		if info, err := os.Stat(path); existed && (err != nil || info.Mode().Perm() != 0o640) {
			t.Errorf("%s: mode %v", f.agent, info.Mode())
		}
		if _, err := launch.Uninstall(p, f.agent); err == nil {
			t.Errorf("%s: uninstalled twice", f.agent)
		}
	}
}

// Settings that were changed after the installation keep the changes and lose the address.
func TestUninstall_changed(t *testing.T) {
	t.Parallel()
	for _, f := range files() {
		p := place(t)
		path := filepath.Join(p.Home, filepath.FromSlash(f.path))
		_ = os.MkdirAll(filepath.Dir(path), 0o700)
		if f.before != "" {
			_ = os.WriteFile(path, []byte(f.before), 0o600)
		}
		if _, err := launch.Install(p, f.agent, address); err != nil {
			t.Fatal(err)
		}
		now, _ := os.ReadFile(path)
		_ = os.WriteFile(path, append(now, []byte("\n\n")...), 0o600)
		_, err := launch.Uninstall(p, f.agent)
		after, _ := os.ReadFile(path)
		if err == nil && strings.Contains(string(after), "127.0.0.1:8430") {
			t.Errorf("%s: the address is left: %s", f.agent, after)
		}
		if err != nil && !strings.Contains(err.Error(), "by hand") {
			t.Errorf("%s: %v", f.agent, err)
		}
	}
}

// Settings that cannot be read are left as they are.
func TestInstall_unreadable(t *testing.T) {
	t.Parallel()
	p := place(t)
	path := filepath.Join(p.Home, ".claude", "settings.json")
	_ = os.MkdirAll(filepath.Dir(path), 0o700)
	const before = "{ // a comment\n}"
	_ = os.WriteFile(path, []byte(before), 0o600)
	if _, err := launch.Install(p, launch.Claude, address); err == nil {
		t.Error("installed in what is no JSON")
	}
	if now, _ := os.ReadFile(path); string(now) != before {
		t.Errorf("%s", now)
	}
	if _, err := launch.Install(p, "vim", address); err == nil {
		t.Error("installed in an unknown agent")
	}
}

// An agent is started with the address, and what it had is a route.
func TestOf(t *testing.T) {
	t.Parallel()
	p := place(t)
	c := launch.Of(p, []string{"claude", "-p", "x"}, []string{"ANTHROPIC_BASE_URL=https://gateway.example"}, address)
	if !slices.Contains(c.Env, "ANTHROPIC_BASE_URL="+address+"/to/env-claude") || !slices.Contains(c.Env, "ENABLE_TOOL_SEARCH=true") || c.Routes["env-claude"] != "https://gateway.example" {
		t.Errorf("%+v", c)
	}
	c = launch.Of(p, []string{"/usr/bin/codex", "exec"}, nil, address)
	if len(c.Args) != 6 || c.Args[5] != "exec" || !strings.Contains(c.Args[4], address+"/v1") {
		t.Errorf("%q", c.Args)
	}
}
