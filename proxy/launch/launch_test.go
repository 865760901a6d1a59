package launch_test

import (
	"bytes"
	"errors"
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
		{launch.Claude, ".claude/settings.json", "{\n\t\"model\" : \"opus\",\n  \"env\": {\"A\":\"1\"}\n}", `"ANTHROPIC_BASE_URL": "http://127.0.0.1:8430"`, "", ""},
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

// Settings that cannot be read are left as they are.
func TestInstall_unreadable(t *testing.T) {
	t.Parallel()
	p := place(t)
	path := filepath.Join(p.Home, ".claude", "settings.json")
	_ = os.MkdirAll(filepath.Dir(path), 0o700)
	const before = "{ // a comment\n}"
	_ = os.WriteFile(path, []byte(before), 0o600)
	_, err := launch.Install(p, launch.Claude, address)
	if err == nil {
		t.Fatal("installed in what is no JSON")
	}
	for _, want := range []string{path, "line 1", "env.ANTHROPIC_BASE_URL", address, "by hand"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
	if _, err := os.Stat(p.State + "/claude.json"); err == nil {
		t.Error("it is installed by name")
	}
	if now, _ := os.ReadFile(path); string(now) != before {
		t.Errorf("%s", now)
	}
	if _, err := launch.Install(p, "vim", address); err == nil {
		t.Error("installed in an unknown agent")
	}
}

// An agent is started with the address, and what it had is a route. Its settings are not changed.
func TestOf(t *testing.T) {
	t.Parallel()
	p := place(t)
	c := start(t, p, []string{"claude", "-p", "x"}, "ANTHROPIC_BASE_URL=https://gateway.example")
	if !slices.Contains(c.Env, "ANTHROPIC_BASE_URL="+address+"/to/claude") || !slices.Contains(c.Env, "ENABLE_TOOL_SEARCH=true") || c.Routes["claude"] != "https://gateway.example" {
		t.Errorf("%+v", c)
	}
	c = start(t, p, []string{"claude", "--settings", `{"model":"y"}`, "-p", "x"})
	given, _ := os.ReadFile(c.Args[2])
	if len(c.Args) != 5 || !strings.Contains(string(given), `"model":"y"`) || !strings.Contains(string(given), `"ANTHROPIC_BASE_URL": "`+address+`"`) {
		t.Errorf("%q: %s", c.Args, given)
	}
	c = start(t, p, []string{"/usr/bin/codex", "exec"})
	if args := strings.Join(c.Args, " "); !strings.HasSuffix(args, " exec") || !strings.Contains(args, `base_url="`+address+`/v1"`) {
		t.Errorf("%q", c.Args)
	}
	put(t, p, ".codex/config.toml", "openai_base_url = \"https://gateway.example/v1\"\n")
	c = start(t, p, []string{"codex"})
	if !strings.Contains(strings.Join(c.Args, " "), address+"/to/codex") || c.Routes["codex"] != "https://gateway.example/v1" {
		t.Errorf("%q, %v", c.Args, c.Routes)
	}
	c = start(t, p, []string{"opencode"}, `OPENCODE_CONFIG_CONTENT={"provider":{"x":{"options":{"baseURL":"http://x"}}}, "a": 1}`)
	if last := c.Env[len(c.Env)-1]; !strings.Contains(last, `"a": 1`) || !strings.Contains(last, address+"/to/opencode-x") || c.Routes["opencode-x"] != "http://x" {
		t.Errorf("%q, %v", last, c.Routes)
	}
}

func start(t *testing.T, p launch.Place, args []string, env ...string) launch.Command {
	t.Helper()
	c, err := launch.Of(p, args, env, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(c.Dir) })
	return c
}

func put(t *testing.T, p launch.Place, name, content string) string {
	t.Helper()
	path := filepath.Join(p.Home, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Several sessions of pi have the user's own base URLs, whether the proxy is installed or not, and the installation stays.
func TestOf_pi(t *testing.T) {
	t.Parallel()
	p := place(t)
	path := put(t, p, ".pi/agent/models.json", `{"providers":{"a b":{"baseUrl":"http://127.0.0.1:1/v1"}}} // mine`)
	for _, installed := range []bool{false, true} {
		if installed {
			if _, err := launch.Install(p, launch.Pi, address); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := os.ReadFile(path)
		for range 2 {
			c := start(t, p, []string{"pi", "-p", "hi"})
			script, _ := os.ReadFile(c.Args[2])
			if c.Args[1] != "--extension" || !strings.Contains(string(script), `("a b", { baseUrl: "`+address+`/to/pi-a%20b" })`) || c.Routes["pi-a%20b"] != "http://127.0.0.1:1/v1" {
				t.Errorf("%q, %v: %s", c.Args, c.Routes, script)
			}
		}
		if now, _ := os.ReadFile(path); !bytes.Equal(now, before) {
			t.Errorf("the settings are changed: %s", now)
		}
	}
	put(t, p, ".pi/agent/models.json", `{"providers":{"l":{"baseUrl":"http://l","models":[{"id":"m","baseUrl":"http://m"}]}}}`)
	if c := start(t, p, []string{"pi"}); len(c.Detours) != 1 || c.Routes["pi-l"] != "" {
		t.Errorf("a model of another server is moved, or not named: %+v", c)
	}
	if c := start(t, p, []string{"pi", "list"}); len(c.Args) != 2 {
		t.Errorf("%q", c.Args)
	}
}

// Settings by which Claude Code would not ask the proxy are named, and whether the launcher wins over them.
func TestDetours(t *testing.T) {
	t.Parallel()
	p := place(t)
	p.Project, p.Managed = filepath.Join(p.Home, "work", "sub"), filepath.Join(p.Home, "managed")
	put(t, p, "work/.git/HEAD", "")
	put(t, p, ".claude/settings.json", `{"env":{"ANTHROPIC_BASE_URL":"http://mine"}}`)
	project := put(t, p, "work/.claude/settings.json", `{"env":{"ANTHROPIC_BASE_URL":"http://other"}}`)
	local := put(t, p, "work/sub/.claude/settings.local.json", `{"env":{"CLAUDE_CODE_USE_BEDROCK":"1","CLAUDE_CODE_USE_VERTEX":"0"}}`)
	managed := put(t, p, "managed/managed-settings.d/1.json", `{"env":{"ANTHROPIC_BASE_URL":"http://org"}}`)
	c := start(t, p, []string{"claude"}, "CLAUDE_CODE_USE_FOUNDRY=1")
	want := []launch.Detour{
		{Key: "CLAUDE_CODE_USE_FOUNDRY", Value: "1"},
		{File: local, Key: "env.CLAUDE_CODE_USE_BEDROCK", Value: "1"},
		{File: project, Key: "env.ANTHROPIC_BASE_URL", Value: "http://other", Overridden: true},
		{File: managed, Key: "env.ANTHROPIC_BASE_URL", Value: "http://org"},
	}
	if !slices.Equal(c.Detours, want) || c.Routes["claude"] != "http://mine" {
		t.Errorf("%+v, %v", c.Detours, c.Routes)
	}
}
