package launch_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/hook/install"
	"github.com/mortise-dev/mortise/proxy/launch"
)

// What was installed is taken out of settings that were edited since, each by its own key: the edit and everything else
// stay byte for byte, and what the user put in its place is left and named.
func TestUninstall_changed(t *testing.T) {
	t.Parallel()
	const (
		claude, codex, pi = ".claude/settings.json", ".codex/config.toml", ".pi/agent/models.json"
		openCode          = ".config/opencode/opencode.jsonc"
	)
	for name, c := range map[string]struct {
		agent, path, before string
		edit                [2]string // in place of which text is which
		want                string
		left                []launch.Left
	}{
		"claude, no env before": {
			launch.Claude, claude, `{"model":"x","permissions":{"deny":["Bash"]}}`, [2]string{`"x"`, `"y"`}, `{"model":"y","permissions":{"deny":["Bash"]}}`, nil,
		},
		"claude, tool search of the user": {
			launch.Claude, claude, `{"env":{"ENABLE_TOOL_SEARCH":false}, "model":"x"}`, [2]string{`"x"`, `"y"`}, `{"env":{"ENABLE_TOOL_SEARCH":false}, "model":"y"}`, nil,
		},
		"claude, a gateway": {
			launch.Claude, claude, "\ufeff{\"env\": {\"ANTHROPIC_BASE_URL\": \"http:\\/\\/g\"},\r\n\t\"model\":\"x\"}",
			[2]string{`"x"`, `"y"`},
			"\ufeff{\"env\": {\"ANTHROPIC_BASE_URL\": \"http:\\/\\/g\"},\r\n\t\"model\":\"y\"}", nil,
		},
		"claude, another address since": {
			launch.Claude, claude, `{"env":{"ANTHROPIC_BASE_URL":"http://g"}}`,
			[2]string{address + "/to/claude", "http://new"},
			`{"env":{"ANTHROPIC_BASE_URL":"http://new"}}`,
			[]launch.Left{{Key: "env.ANTHROPIC_BASE_URL", Now: "http://new", Before: "http://g"}},
		},
		"claude, no file before": {launch.Claude, claude, "", [2]string{`{`, `{"model":"y",`}, "{\"model\":\"y\"\n}\n", nil},
		"codex": {
			launch.Codex, codex, "# mine\nmodel = \"x\" # m\n[[hooks.a]]\n[hooks.a.b]\n[[hooks.a]]\n[hooks.a.b]\n",
			[2]string{`"x"`, `"y"`},
			"# mine\nmodel = \"y\" # m\n[[hooks.a]]\n[hooks.a.b]\n[[hooks.a]]\n[hooks.a.b]\n", nil,
		},
		"codex, a key between ours": {
			launch.Codex, codex, "model_provider = \"openai\" # c\n", [2]string{"# c\n", "# c\nmodel = 'y'\n"}, "model_provider = \"openai\" # c\nmodel = 'y'\n", nil,
		},
		"codex, a byte order mark": {
			launch.Codex, codex, "\ufeffmodel = \"x\"\n", [2]string{`"x"`, `"y"`}, "\ufeffmodel = \"y\"\n", nil,
		},
		"codex, an inline table": {
			launch.Codex, codex, "model_provider = \"x\"\nmodel_providers = { x = { name = \"X\", base_url = \"https://\\u0078/v1\" } }\n",
			[2]string{`"X"`, `"Y"`},
			"model_provider = \"x\"\nmodel_providers = { x = { name = \"Y\", base_url = \"https://\\u0078/v1\" } }\n", nil,
		},
		"codex, a provider": {
			launch.Codex, codex, "model_provider = \"x\"\n[model_providers.x]\nbase_url = 'https://x/v1' # c\nname = \"X\"\n",
			[2]string{`"X"`, `"Y"`},
			"model_provider = \"x\"\n[model_providers.x]\nbase_url = 'https://x/v1' # c\nname = \"Y\"\n", nil,
		},
		"codex, another provider since": {
			launch.Codex, codex, "",
			[2]string{`model_provider = "mortise"`, `model_provider = "x"`},
			"model_provider = \"x\"\n",
			[]launch.Left{{Key: "model_provider", Now: "x"}},
		},
		"pi, a route begins another": {
			launch.Pi, pi, `{"providers":{"openai":{"baseUrl":"http://o"},"anthropic":{"baseUrl":"http://an"},"a":{"baseUrl":"http://aaa/v1"},"ab":{"baseUrl":"http://ab"}}}`,
			[2]string{`{"providers"`, `{"x":1,"providers"`},
			`{"x":1,"providers":{"openai":{"baseUrl":"http://o"},"anthropic":{"baseUrl":"http://an"},"a":{"baseUrl":"http://aaa/v1"},"ab":{"baseUrl":"http://ab"}}}`, nil,
		},
		"pi, comments and a model": {
			launch.Pi, pi, "{\n  // mine\n  \"providers\": {\n    \"l\": {\"baseUrl\": \"http://l\", \"models\": []}, // local\n  },\n}\n",
			[2]string{"[]", `[{"id":"m"}]`},
			"{\n  // mine\n  \"providers\": {\n    \"l\": {\"baseUrl\": \"http://l\", \"models\": [{\"id\":\"m\"}]}, // local\n  },\n}\n", nil,
		},
		"pi, a key of the user in what was added": {
			launch.Pi, pi, "", [2]string{`"openai": {`, `"openai": {"apiKey": "k", `}, "{\n  \"providers\": {\n    \"openai\": {\"apiKey\": \"k\"\n    }\n  }\n}\n", nil,
		},
		"opencode": {
			launch.OpenCode, openCode, "{ /* all mine */ }", [2]string{"{ /*", `{ "model": "m", /*`}, "{ \"model\": \"m\" /* all mine */\n  \n}", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := place(t)
			path := filepath.Join(p.Home, filepath.FromSlash(c.path))
			if c.before != "" {
				put(t, p, c.path, c.before)
			} else if c.agent == launch.OpenCode {
				path = strings.TrimSuffix(path, "c")
			}
			if _, err := launch.Install(p, c.agent, address); err != nil {
				t.Fatal(err)
			}
			now, _ := os.ReadFile(path)
			edited := strings.Replace(string(now), c.edit[0], c.edit[1], 1)
			if edited == string(now) {
				t.Fatalf("nothing to edit in %s", now)
			}
			put(t, p, c.path, edited)
			r, err := launch.Uninstall(p, c.agent)
			if err != nil {
				t.Fatal(err)
			}
			if after, _ := os.ReadFile(path); string(after) != c.want {
				t.Errorf("got\n%s\nwant\n%s\nfrom\n%s", after, c.want, edited)
			}
			if !slices.Equal(r.Left, c.left) {
				t.Errorf("left: %+v", r.Left)
			}
			if backup, _ := os.ReadFile(r.Backup); string(backup) != edited {
				t.Errorf("the backup %s is %q", r.Backup, backup)
			}
			if _, err := launch.Uninstall(p, c.agent); err == nil {
				t.Error("uninstalled twice")
			}
		})
	}
}

// Settings that do not parse are refused and the original is kept; deleted ones are not called restored.
func TestUninstall_broken(t *testing.T) {
	t.Parallel()
	for agent, name := range map[string]string{launch.Claude: ".claude/settings.json", launch.Codex: ".codex/config.toml", launch.Pi: ".pi/agent/models.json"} {
		p := place(t)
		before := map[bool]string{true: "a = 1\n", false: `{"a":1}`}[agent == launch.Codex]
		path := put(t, p, name, before)
		if _, err := launch.Install(p, agent, address); err != nil {
			t.Fatal(err)
		}
		written, _ := os.ReadFile(path)
		for _, broken := range []string{"{ broken", "a = \"x\n", "[ a", "a = b"} {
			put(t, p, name, broken)
			_, err := launch.Uninstall(p, agent)
			if now, _ := os.ReadFile(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "line 1") || string(now) != broken {
				t.Errorf("%s: %v: %s", agent, err, now)
			}
			if launch.Installed(p, agent) == "" {
				t.Errorf("%s: the original is lost", agent)
			}
		}
		put(t, p, name, string(written))
		if _, err := launch.Uninstall(p, agent); err != nil {
			t.Fatal(err)
		}
		if now, _ := os.ReadFile(path); string(now) != before {
			t.Errorf("%s: %s", agent, now)
		}
		_, _ = launch.Install(p, agent, address)
		_ = os.Remove(path)
		if r, err := launch.Uninstall(p, agent); err != nil || !r.Gone || r.Exact {
			t.Errorf("%s: %+v, %v", agent, r, err)
		}
	}
}

// A config of Codex that does not parse is refused before anything is written.
func TestInstall_brokenTOML(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{
		"model = \"gpt-5\n", "a = 1 b = 2\n", "[a\n", "a\n", "a = [1, 2\n", "a = {b = 1\n", "a = '''x\n", "a = 1\na = 2\n", "= 1\n", "model_providers = {x = {base_url = \"y\"}}\n",
		"[model_providers.mortise]\nname = \"mine\"\n", "a = gpt-5\n",
	} {
		p := place(t)
		path := put(t, p, ".codex/config.toml", broken)
		_, err := launch.Install(p, launch.Codex, address)
		if now, _ := os.ReadFile(path); err == nil || string(now) != broken || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v: %s", broken, err, now)
		}
	}
	p := place(t)
	const fine = "a = \"\"\"x\" \\\" [b]\nc = \"\"\" # d\n'q.r'.s = [ 'x', # y\n {k = 1, l = { m = 2.5 }}, ]\nd = 1979-05-27 07:32:00Z\n[projects.\"/a/b\"]\nt = \"trusted\"\n"
	path := put(t, p, ".codex/config.toml", fine)
	if _, err := launch.Install(p, launch.Codex, address); err != nil {
		t.Fatal(err)
	}
	now, _ := os.ReadFile(path)
	put(t, p, ".codex/config.toml", string(now)+"z = 1\n")
	_, err := launch.Uninstall(p, launch.Codex)
	if after, _ := os.ReadFile(path); err != nil || !strings.HasPrefix(string(after), fine) || strings.Contains(string(after), "127.0.0.1") {
		t.Errorf("%v: %s", err, after)
	}
}

// After any edits of other keys the result parses, has the edits and everything that was there, and no address of ours.
func TestUninstall_random(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	for round := range 300 {
		agent := []string{launch.Claude, launch.Pi, launch.OpenCode}[round%3]
		p := place(t)
		name := map[string]string{launch.Claude: ".claude/settings.json", launch.Pi: ".pi/agent/models.json", launch.OpenCode: ".config/opencode/opencode.json"}[agent]
		top, last := map[string]string{launch.Claude: "env", launch.Pi: "providers", launch.OpenCode: "provider"}[agent], map[bool]string{true: "options", false: "x"}[agent == launch.OpenCode]
		before, err := install.OpenDocument([]byte([]string{"{}", "{\n}\n", "{\n    \"a\": {\"b\": [1]}\n}", `{"` + top + `":{}}`}[random.IntN(4)]), false)
		if err != nil {
			t.Fatal(err)
		}
		keys := [][]string{{top, "o1", "x"}, {top, "o1", "baseUrl"}, {top, "o2", last, "baseURL"}, {"m", "n"}, {"z"}, {top, "openai", "y"}, {top, "anthropic", last, "q"}}
		if agent == launch.Claude {
			keys = [][]string{{top, "A"}, {top, "ANTHROPIC_BASE_URL"}, {"m", "n"}, {"z"}, {top, "B"}}
		}
		edit := func(d *install.Document, n int, base bool) map[string]string {
			set := map[string]string{}
			for i := range n {
				k := keys[random.IntN(len(keys))]
				if !base && strings.HasPrefix(strings.ToLower(strings.ReplaceAll(k[len(k)-1], "_", "")), "anthropicbase") || !base && strings.EqualFold(k[len(k)-1], "baseurl") {
					continue
				}
				v := fmt.Sprintf(`"http://v%d"`, i)
				if err := d.Set(v, k...); err != nil {
					t.Fatal(err)
				}
				set[strings.Join(k, ".")] = v
			}
			return set
		}
		want := edit(before, random.IntN(4), true)
		path := put(t, p, name, string(before.Bytes()))
		if _, err := launch.Install(p, agent, address); err != nil {
			t.Fatal(err)
		}
		now, _ := os.ReadFile(path)
		d, err := install.OpenDocument(now, false)
		if err != nil {
			t.Fatalf("%v: %s", err, now)
		}
		maps.Copy(want, edit(d, 1+random.IntN(4), false))
		put(t, p, name, string(d.Bytes()))
		if _, err := launch.Uninstall(p, agent); err != nil {
			t.Fatalf("%v: %s", err, d.Bytes())
		}
		after, _ := os.ReadFile(path)
		got, err := install.OpenDocument(after, false)
		if err != nil || !json.Valid(after) || strings.Contains(string(after), "8430") || strings.Contains(string(after), "TOOL_SEARCH") {
			t.Fatalf("%v: %s\nfrom %s", err, after, d.Bytes())
		}
		for k, v := range want {
			if got.Raw(strings.Split(k, ".")...) != v {
				t.Fatalf("%s is not %s: %s\nfrom %s", k, v, after, d.Bytes())
			}
		}
	}
}
