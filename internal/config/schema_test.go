package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/term"
)

var update = flag.Bool("update", false, "write docs/mortise.schema.json")

// root is the folder of the repository.
var root = filepath.Join("..", "..")

// configSchema compiles the schema, and compares it with the copy in docs.
func configSchema(t *testing.T) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	var text bytes.Buffer
	if err := term.WriteJSON(&text, config.Schema()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "docs", "mortise.schema.json")
	if *update {
		if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(path); err != nil || !bytes.Equal(kept, text.Bytes()) {
		t.Errorf("docs/mortise.schema.json is not up to date (%v): run go test ./internal/config -update", err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mortise.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mortise.json")
	if err != nil {
		t.Fatal(err)
	}
	return s, doc
}

func instance(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestConfigSchema: the copy in docs is up to date, all keys are described, and no object takes others.
func TestConfigSchema(t *testing.T) {
	t.Parallel()
	_, doc := configSchema(t)
	var walk func(path string, v any)
	walk = func(path string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		if properties, ok := m["properties"].(map[string]any); ok {
			if m["additionalProperties"] != false {
				t.Errorf("%s takes any key", path)
			}
			for key, p := range properties {
				if p, ok := p.(map[string]any); !ok || p["description"] == nil {
					t.Errorf("%s.%s has no description", path, key)
				}
			}
		}
		for key, below := range m {
			walk(path+"."+key, below)
		}
	}
	walk("", doc)
}

// TestConfigSchema_examples: the configs of the documents and examples fit the schema.
func TestConfigSchema_examples(t *testing.T) {
	t.Parallel()
	schema, _ := configSchema(t)
	found := 0
	check := func(name, text string) {
		found++
		if err := schema.Validate(instance(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, pattern := range []string{"examples/*.yaml", "examples/*/*.yaml", "testdata/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.HasPrefix(b, []byte("version: 1")) || bytes.Contains(b, []byte("\nversion: 1\n")) {
				check(f, string(b))
			}
		}
	}
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range documents {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(b), -1) {
			if strings.Contains(block[1], "version: 1") {
				check(f, block[1])
			}
		}
	}
	if found < 2 {
		t.Errorf("only %d configs were found", found)
	}
}

// TestConfigSchema_wrong: what the strict reader refuses for its keys, kinds and words, the schema refuses, too.
func TestConfigSchema_wrong(t *testing.T) {
	t.Parallel()
	schema, _ := configSchema(t)
	names := config.Names{Providers: []string{"anthropic", "openai", "openai-chat"}, Engines: []string{"native", "extism"}}
	for _, text := range []string{
		"colour: red", "modelz: {}", "store: [a]", "engine: v8",
		"models: {m: {provider: anthropik, name: x}}", "models: {m: {provider: openai, name: x, temprature: 1}}",
		"models: {m: {provider: openai, name: x, key: {value: sk}}}", "models: {m: {provider: openai, name: x, max_tokens: many}}",
		"agents: {a: {model: m, max_roundz: 3}}", "agents: {a: {model: m, tool_timeout: soon}}", "agents: [a]",
		"mcp: [{name: m, comand: [x]}]", "mcp: [{name: m, command: x}]", "mcp: {m: {}}",
		"plugins: [{name: p, modul: x}]", "plugins: [{name: p, module: x, on_failure: explode}]",
		"plugins: [{name: p, module: x, grants: {htttp: {}}}]", "plugins: [{name: p, module: x, grants: {log: true, log_level: loud}}]",
		"plugins: [{name: p, module: x, limits: {timout: 1s}}]", "plugins: [{name: p, module: x, sha256: abc}]",
		"plugins: [{name: p, module: x, grants: {http: {hosts: [a]}, secrets: {s: {value: v}}}}]",
		"compaction: {mode: sometimes}", "compaction: {summarizer: {polcy: ledger}}", "compaction: {admission: {quota: {cooldwn: 1m}}}",
		"compaction: {admission: {quota: {cooldown: 5}}}",
		"serve: {port: 80}", "serve: {lease: soon}", "serve: {tokens: [{name: a, env: A, scopes: [root]}]}", "serve: {tokens: [{name: a, value: x, scopes: [run]}]}",
		"tasks: {wording: loud}", "record: {keep: all}", "replay: {pace: fast}", "limits: {memory_mib: lots}",
	} {
		text = "version: 1\n" + text + "\n"
		if _, problems := config.Problems([]byte(text), names); len(problems) == 0 {
			t.Errorf("the reader takes %s", text)
		}
		err := schema.Validate(instance(t, text))
		if bad := (*jsonschema.ValidationError)(nil); !errors.As(err, &bad) {
			t.Errorf("the schema takes %s: %v", text, err)
		}
	}
	if err := schema.Validate(instance(t, "colour: red")); err == nil {
		t.Error("the schema takes a config without a version")
	}
}
