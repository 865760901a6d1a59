package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/exit"
)

func validate(t *testing.T, text string, args ...string) (exit.Code, string) {
	t.Helper()
	text = strings.ReplaceAll(text, "$ROOT", root(t))
	dir := t.TempDir()
	file := filepath.Join(dir, "mortise.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("sk-very-secret-0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	code := cli.Main(t.Context(), append([]string{"validate", "-c", file}, args...), cli.Streams{Out: &out, Err: &log}, links.All())
	if strings.Contains(out.String()+log.String(), "very-secret") {
		t.Errorf("a secret is printed: %s%s", &out, &log)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v: validate wrote to it (%v)", entries, err)
	}
	return code, strings.ReplaceAll(out.String(), file, "FILE")
}

// TestValidate prints every problem at once, each at its line.
func TestValidate(t *testing.T) {
	t.Parallel()
	code, out := validate(t, `version: 1
colour: red
models:
  main: {provider: anthropik, name: x, max_tokens: many}
  two: {provider: anthropic, name: x, key: {env: MORTISE_TEST_NOT_SET}}
agents:
  a: {model: none, max_roundz: 3, plugins: [ghost], system_prompt_file: nope.txt}
  gpt-4.1: {model: none}
mcp:
  - {name: m, command: [no-such-program]}
  - {name: m, url: "http://x", headers: {A: {env: MORTISE_TEST_NOT_SET}}}
plugins:
  - {name: guard, module: none.wasm}
  - {name: g2, module: $ROOT/testdata/guests/guard.wasm, config: {nonsense: 1}, on_failure: explode}
  - {name: g3, module: $ROOT/testdata/guests/guard.wasm, grants: {kv: {path: kv.db}, model: {summarizer: nobody}}}
compaction:
  min_survival: 7
serve:
  listen: 0.0.0.0:80
  origins: [foo]
  tokens:
    - {name: a, env: A, scopes: [x]}
    - {name: a, file: secret, scopes: [run]}
  lease: soon
`)
	if code != exit.Config {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		`FILE:2: there is no key "colour"`, "FILE:4: models.main.max_tokens: is text", `FILE:4: models.main.provider: is "anthropik"`,
		`FILE:7: there is no key "max_roundz" in agents.a; did you mean max_rounds?`, `FILE:7: agents.a: model: there is no model "none"`,
		`FILE:7: agents.a: plugins: there is no plugin "ghost"`, "FILE:7: agents.a: system_prompt_file: ", "FILE:8: agents.gpt-4.1: model: ",
		"FILE:10: mcp[0] (m): command: ", "FILE:11: mcp[1] (m): the name is taken", "FILE:11: mcp[1] (m): headers.A: ",
		"FILE:13: plugins[0] (guard): ", `FILE:14: plugins[1] (g2): on_failure "explode"`, "FILE:14: plugins[1] (g2): guest: module \"g2\": refuses its config",
		"FILE:15: plugins[2] (g3): grants.model.summarizer: there is no model", "FILE:17: compaction.min_survival: is 7",
		"FILE:20: serve.origins[0]: ", "FILE:22: serve.tokens[0] (a): scopes: ", "FILE:23: serve.tokens[1] (a): name: ", "FILE:24: serve.lease: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// TestValidate_references finds what only the environment, the files and the modules show.
func TestValidate_references(t *testing.T) {
	t.Parallel()
	const models = "version: 1\nmodels:\n  m: {provider: anthropic, name: x, key: {file: secret}}\nagents: {a: {model: m}}\n"
	for name, c := range map[string]struct {
		text, want string
		code       exit.Code
	}{
		"valid":             {models + "serve: {tokens: [{name: a, file: secret, scopes: [run]}], listen: '0.0.0.0:1'}\nplugins: [{name: g, module: $ROOT/testdata/guests/guard.wasm, grants: {kv: {path: kv.db}}}]\n", "FILE: valid: 1 agent, 1 model, 1 plugin, 0 MCP servers", exit.OK},
		"no agent":          {"version: 1\n", "mortise serve does not", exit.OK},
		"key":               {strings.Replace(models, "file: secret", "env: MORTISE_TEST_NOT_SET", 1), "FILE:3: models.m: key: ", exit.Config},
		"open":              {models + "serve: {listen: '0.0.0.0:1'}\n", "FILE:5: serve.listen: 0.0.0.0:1 is reached from other machines", exit.Config},
		"policy":            {models + "compaction:\n  summarizer: {policy: extrakt}\n", `FILE:6: compaction.summarizer: `, exit.Config},
		"module":            {models + "plugins:\n  - {name: g, module: secret}\n", "FILE:6: plugins[0] (g): ", exit.Module},
		"policy of failure": {"version: 1\nplugins: [{name: g, module: $ROOT/testdata/guests/guard.wasm, on_failure: Fail}]\n", `FILE:2: plugins[0] (g): on_failure "Fail"`, exit.Config},
		"memory":            {"version: 1\nlimits: {memory_mib: 1}\nplugins: [{name: g, module: $ROOT/testdata/guests/guard.wasm}]\n", "FILE:2: limits.memory_mib: is 1", exit.Config},
		"store":             {models + "store: postgress://x/y\n", `FILE:5: store: "postgress" is no kind of store`, exit.Config},
		"two":               {"version: 1\n---\nversion: 1\n", "more than one document", exit.Config},
		"engine":            {models + "engine: v8\n", "FILE:5: engine: ", exit.Config},
		"syntax":            {"version: 1\nagents: {a\n", "FILE:", exit.Config},
		"empty":             {"", "version: is missing", exit.Config},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out := validate(t, c.text)
			if code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("%d %s, want %d %s", code, out, c.code, c.want)
			}
			if n := strings.Count(out, "FILE:"); n > 1 {
				t.Errorf("one problem is reported %d times: %s", n, out)
			}
		})
	}
	code, out := validate(t, models+"colour: red\n", "--json")
	var got struct {
		Valid    bool
		Problems []struct {
			Line int
			Key  string
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exit.Config || got.Valid || len(got.Problems) != 1 || got.Problems[0].Line != 5 || got.Problems[0].Key != "colour" || strings.Contains(out, "ode\"") {
		t.Errorf("%d %+v %v", code, got, err)
	}
}

// TestValidate_schema: the command prints the schema that is in the documents.
func TestValidate_schema(t *testing.T) {
	t.Parallel()
	code, out, stderr := mortise(t.Context(), "", "validate", "--schema")
	if kept, err := os.ReadFile(filepath.Join(root(t), "docs", "mortise.schema.json")); err != nil || code != exit.OK || out != string(kept) {
		t.Errorf("%d, %v, %s: it is another one", code, err, stderr)
	}
}
