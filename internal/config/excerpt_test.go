package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/config"
)

// TestLoad_excerpt: an error names the place and the key, and shows no line of the file: one beside it may have a secret.
func TestLoad_excerpt(t *testing.T) {
	t.Parallel()
	names := config.Names{Providers: []string{"anthropic"}}
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":    {"mcp: [{name: m, env: {TOKEN: ghp_hunter22}, tols: [a]}]\n", `:2:45: there is no key "tols" in mcp[0]; did you mean tools?`},
		"line before":    {"mcp:\n  - name: m\n    env:\n      TOKEN: ghp_hunter22\n    tols: [a]\n", `:6:5: there is no key "tols" in mcp[0]`},
		"kind":           {"mcp:\n  - env: {TOKEN: ghp_hunter22}\n    output_kib: many\n", ":4:17: mcp[0].output_kib: is text, must be a whole number"},
		"node":           {"mcp:\n  - env: {TOKEN: ghp_hunter22}\n    command: x\n", ":4:14: mcp[0].command: is text, must be a list"},
		"list of values": {"mcp:\n  - env: [TOKEN=ghp_hunter22]\n", ":3:10: mcp[0].env: is a list, must be keys with values"},
		"of a value":     {"mcp:\n  - env: {A: ghp_hunter22, B: {evn: X}}\n", `:3:32: there is no key "evn" in mcp[0].env.B; did you mean env?`},
		"of a header":    {"mcp:\n  - headers: {A: Bearer ghp_hunter22}\n", ":3:18: mcp[0].headers.A: is text, must be keys with values"},
		"duration":       {"mcp:\n  - env: {TOKEN: ghp_hunter22}\n    call_timeout: soon\n", `:4:19: mcp[0].call_timeout: "soon" is not a duration`},
		"size":           {"mcp:\n  - env: {TOKEN: ghp_hunter22}\n    output_kib: 99999999999999999999\n", ":4:17: mcp[0].output_kib: 99999999999999999999 is too large"},
		"twice":          {"mcp:\n  - env: {TOKEN: ghp_hunter22}\n    env: {TOKEN: ghp_hunter22}\n", `:4:5: mapping key "env" already defined`},
		"syntax":         {"mcp:\n  - env: {TOKEN: ghp_hunter22\n", ":3:"},
		"quote":          {"mcp:\n  - env: {TOKEN: \"ghp_hunter22}\n", ":3:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "mortise.yaml")
			text := "version: 1\n" + c.text
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := config.Load(file, names)
			if err == nil || !strings.HasPrefix(err.Error(), "config: "+file+c.want) || strings.Contains(err.Error(), "hunter") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s", err, c.want)
			}
			_, problems := config.Problems([]byte(text), names)
			for _, p := range problems {
				if strings.Contains(p.Problem, "hunter") || strings.Contains(p.Problem, "\n") {
					t.Errorf("problem %+v", p)
				}
			}
			if len(problems) == 0 {
				t.Error("there is no problem")
			}
		})
	}
}

// TestMCP_env: a value of a child's environment is in the config, in the environment or in a file.
func TestMCP_env(t *testing.T) {
	t.Setenv("MORTISE_TEST_TOKEN", "of the environment")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("of the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Decode([]byte("version: 1\nmcp: [{name: m, command: [x], env: {A: plain, B: 8080, C: {env: MORTISE_TEST_TOKEN}, D: {file: token}, E: true, F: \"\"}}]\n"), config.Names{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.In(dir)
	for key, want := range map[string]string{"A": "plain", "B": "8080", "C": "of the environment", "D": "of the file", "E": "true", "F": ""} {
		if got, err := cfg.MCP[0].Env[key].Read(cfg); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", key, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"{value: sk}":        "mcp[0] (m): env.A: write the value itself",
		"{env: B, file: c}":  "mcp[0] (m): env.A: write the value itself",
		"{}":                 "",
		"{env: MORTISE_LOG}": "",
	} {
		_, err := config.Decode([]byte("version: 1\nmcp: [{name: m, command: [x], env: {A: "+text+"}}]\n"), config.Names{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestStore_kind: a URL that is no store is refused, and memory is no file.
func TestStore_kind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"store: postgress://x/y\n":        `store: "postgress" is no kind of store; name a SQLite file, nats://HOST:4222/STREAM, or postgres://USER@HOST/DATABASE; did you mean postgres?`,
		"store: mysql://u:hunter22@x/y\n": `store: "mysql" is no kind of store`,
		"record: {store: redis://x}\n":    `record.store: "redis" is no kind of store`,
		"store: postgresql://x/y\n":       "", "store: tls://x/y\n": "", "store: a.db\n": "",
	} {
		_, err := config.Decode([]byte("version: 1\n"+text), config.Names{})
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter22")) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for flag, want := range map[string]string{"memory": "", "./memory": "./memory", "": "dir/memory.db", "a.db": "a.db"} {
		cfg := &config.Config{Store: "memory.db"}
		cfg.In("dir")
		if got := cfg.StoreOf(flag); got != want {
			t.Errorf("--store %q: %q, want %q", flag, got, want)
		}
	}
	if cfg := (&config.Config{Store: "memory"}); cfg.StoreOf("") != "" {
		t.Errorf("store: memory is %q", cfg.StoreOf(""))
	}
}

// TestCompaction_default: a compaction section without a summarizer has the ledger, in each way to read it.
func TestCompaction_default(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "compaction: {threshold_tokens: 100}\n": "ledger", "compaction: {admission: {policy: cost}}\n": "ledger",
		"compaction: {summarizer: {policy: gc}}\n": "gc", "compaction: {summarizer: {module: x.wasm}}\n": "",
	} {
		text = "version: 1\n" + text
		cfg, err := config.Decode([]byte(text), config.Names{})
		if err != nil || cfg.Compaction.Summarizer.Policy != want {
			t.Errorf("%q: %+v, %v", text, cfg, err)
		}
		cfg, problems := config.Problems([]byte(text), config.Names{})
		if len(problems) > 0 || cfg.Compaction.Summarizer.Policy != want {
			t.Errorf("%q: %+v", text, problems)
		}
	}
}
