package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
)

const oneMessage = `[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"}]`

// write puts a file into a folder of its own.
func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBadModules: each gets one sentence with a hint, and nothing runs.
func TestBadModules(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(filepath.Join(root(t), "testdata", "guests", "admission.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	component := write(t, "component.wasm", []byte("\x00asm\x0d\x00\x01\x00"))
	truncated := write(t, "truncated.wasm", good[:len(good)/2])
	text := write(t, "text.wasm", []byte("(module)"))
	for name, tc := range map[string]struct{ plugin, says, hint string }{
		"missing":        {"module: nowhere.wasm", "nowhere.wasm", "check"},
		"truncated":      {"module: " + truncated, "truncated.wasm", "again"},
		"text":           {"module: " + text, "is WebAssembly in text, not a binary", "wat2wasm"},
		"component":      {"module: " + component, "component", "core module"},
		"wrong checksum": {"module: $ROOT/testdata/guests/guard.wasm\n    sha256: '" + strings.Repeat("0", 64) + "'", "SHA-256", "correct the checksum"},
		"no describe":    {"module: $ROOT/host/testdata/echo.wasm", "offers no description", `export "describe"`},
		"future ABI":     {"module: $ROOT/internal/cli/testdata/future.wasm", "speaks ABI 7 to 9, this host 1 to 1", "use a newer mortise"},
		"a policy":       {"module: $ROOT/testdata/guests/admission.wasm", "describes no hooks", "check which module the config names"},
		"not granted":    {"module: $ROOT/testdata/guests/lookup.wasm\n    config: {url: 'https://a.example/'}", `asks for http (it says: "To ask the tracker for tickets.")`, "write grants: {http: {hosts: [api.example.com]}, kv: {path: plugins.db}}"},
		"bad config":     {"module: $ROOT/testdata/guests/guard.wasm\n    config: {no_such_key: 1}", "no_such_key", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, "plugins:\n  - name: fine\n    module: $ROOT/testdata/guests/redact.wasm\n  - name: bad\n    "+tc.plugin+"\n")
			code, r, stderr := run(t, cfg, write(t, "s.json", []byte(oneMessage)))
			want := exit.Module
			if name == "wrong checksum" || name == "not granted" || name == "bad config" {
				want = exit.Config // the module is as it should be
			}
			if code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
			if r.Runs.Count != 0 || len(r.Threads) != 0 {
				t.Errorf("something ran: %+v", r.Runs)
			}
			if lines := strings.Count(strings.TrimSpace(stderr), "\n"); lines != 0 {
				t.Errorf("%d lines, want one: %s", lines+1, stderr)
			}
			if !strings.Contains(stderr, tc.says) || !strings.Contains(stderr, tc.hint) || !strings.HasPrefix(stderr, "mortise: ") {
				t.Errorf("%q does not say %q and %q", stderr, tc.says, tc.hint)
			}
			if len(r.Modules) != 2 || r.Modules[0].State != "loaded" || r.Modules[1].State != "failed" || r.Modules[1].Reason == "" {
				t.Errorf("modules %+v", r.Modules)
			}
		})
	}
}

// TestBadTool: a recording calls no tool of a plugin, and a wrong one is reported all the
// same.
func TestBadTool(t *testing.T) {
	t.Parallel()
	cfg := config(t, "plugins:\n  - module: $ROOT/internal/cli/testdata/tool.wasm\n")
	code, r, stderr := run(t, cfg, write(t, "s.json", []byte(oneMessage)))
	if code != exit.Module || r.Runs.Count != 0 || !strings.Contains(stderr, `"tools": the name of tool "look up" must match`) {
		t.Errorf("exit code %d, %d runs: %s", code, r.Runs.Count, stderr)
	}
}

func TestBadPolicies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ compaction, says string }{
		"no such policy":   {"summarizer: {module: $ROOT/testdata/guests/summarizers.wasm, policy: magic}", `knows no policy "magic"; it knows ledger`},
		"wrong kind":       {"summarizer: {module: $ROOT/testdata/guests/admission.wasm}", `has no export "summarize"`},
		"missing admitter": {"summarizer: {module: $ROOT/testdata/guests/summarizers.wasm}\n  admission: {module: gone.wasm}", "gone.wasm"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, r, stderr := run(t, config(t, "compaction:\n  "+tc.compaction+"\n"), write(t, "s.json", []byte(oneMessage)))
			want := exit.Module
			if name == "no such policy" {
				want = exit.Config
			}
			if code != want || !strings.Contains(stderr, tc.says) || r.Runs.Count != 0 {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
}

func TestBadConfigs(t *testing.T) {
	t.Parallel()
	session := write(t, "s.json", []byte(oneMessage))
	for name, tc := range map[string]struct{ text, says string }{
		"unknown key":      {"plugin: []\n", "plugin"},
		"nested unknown":   {"compaction: {treshold: 5}\n", "treshold"},
		"wrong type":       {"plugins: 7\n", "plugins"},
		"bad duration":     {"replay: {pace: soon}\n", `replay.pace: "soon" is not a duration: write for example 500ms`},
		"number of what":   {"limits:\n  timeout: 5\n", `limits.timeout: "5" is not a duration`},
		"negative":         {"compaction: {admission: {quota: {cooldown: -5s}}}\n", `compaction.admission.quota.cooldown: "-5s" is negative`},
		"text for number":  {"compaction:\n  window_tokens: many\n", `compaction.window_tokens: is text, must be a whole number`},
		"text for share":   {"compaction: {bars: {paths: most}}\n", `compaction.bars.paths: is text, must be a number`},
		"number for list":  {"compaction: {never_mask: {a: 1}}\n", "compaction.never_mask: is keys with values, must be a list"},
		"number for keys":  {"plugins: [{module: a}, 3]\n", "plugins[1]: is a number, must be keys with values"},
		"much too large":   {"limits: {instances: 99999999999999999999}\n", "limits.instances: 99999999999999999999 is too large"},
		"too much memory":  {"limits: {memory_mib: 1152921504606846976}\n", "limits.memory_mib: is 1152921504606846976; write a number from 2 to 4096"},
		"too little":       {"plugins: [{name: x, module: a, limits: {memory_mib: 1}}]\n", "plugins[0] (x): limits.memory_mib: is 1; write a number from 2 to 4096"},
		"too much input":   {"plugins: [{name: x, module: a, limits: {input_mib: 17592186044416}}]\n", "plugins[0] (x): limits.input_mib: is 17592186044416"},
		"less than none":   {"compaction: {summarizer: {module: a, limits: {output_mib: -1}}}\n", "limits.output_mib: is -1"},
		"too many places":  {"limits: {instances: 1000000}\n", "limits.instances: is 1000000; write a number from 1 to 65536"},
		"nearly a key":     {"plugins:\n  - name: a\n    modul: x\n", `there is no key "modul" in plugins[0]; did you mean module?; there are name, module,`},
		"nearly a section": {"compactoin: {}\n", `there is no key "compactoin"; did you mean compaction?; there are version, cache_dir,`},
		"in a grant":       {"plugins: [{module: a, grants: {http: {host: [x]}}}]\n", `there is no key "host" in plugins[0].grants.http; did you mean hosts?`},
		"no module":        {"plugins: [{name: x}]\n", "plugins[0] (x): module is missing"},
		"same name":        {"plugins: [{name: x, module: a}, {name: x, module: b}]\n", "the name is taken"},
		"bad policy":       {"plugins: [{name: x, module: a, on_failure: pray}]\n", `on_failure "pray": must be fail, ignore or quarantine`},
		"savings":          {"compaction: {min_savings_ratio: 2}\n", "min_savings_ratio: is 2"},
		"no summarizer":    {"compaction: {window_tokens: -5, threshold_tokens: 3}\n", "compaction.window_tokens is -5"},
		"late threshold": {
			"compaction: {window_tokens: 1000, threshold_tokens: 100000}\n",
			"compaction.threshold_tokens is 100000, must be below window_tokens less reserve_tokens (1000 - 250 = 750)",
		},
		"bar":              {"compaction: {bars: {paths: 2}}\n", "compaction.bars: paths is 2"},
		"mode":             {"compaction: {mode: bold}\n", `compaction.mode "bold": must be keep_recent_raw_suffix or`},
		"attempts":         {"compaction: {admission: {quota: {max_attempts: -1}}}\n", "compaction.admission.quota.max_attempts: is -1"},
		"wording":          {"tasks: {wording: verse}\n", "tasks.wording: is \"verse\", must be events, follow_up or reminder"},
		"negative news":    {"tasks: {notification_bytes: -1}\n", "tasks.notification_bytes: is negative"},
		"negative quota":   {"tasks: {quota_mib: -3}\n", "tasks.quota_mib: is negative"},
		"negative outputs": {"serve: {retention: {max_outputs: -3}}\n", "serve.retention.max_outputs: is -3"},
		"two documents":    {"---\nversion: 1\n", "more than one document"},
		"wrong version":    {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := config(t, tc.text)
			if name == "wrong version" {
				path = write(t, "mortise.yaml", []byte("version: 3\n"))
				tc.says = "version: is 3, this mortise reads 1"
			}
			code, stdout, stderr := mortise(t.Context(), "", "run", "-c", path, session)
			if code != exit.Config || stdout != "" {
				t.Errorf("exit code %d, stdout %q", code, stdout)
			}
			if !strings.Contains(stderr, tc.says) || !strings.Contains(stderr, path) {
				t.Errorf("%q does not name %q and the file", stderr, tc.says)
			}
		})
	}
	code, _, stderr := mortise(t.Context(), "", "run", "-c", "no-such.yaml", session)
	if code != exit.Config || !strings.Contains(stderr, "no-such.yaml: there is no such file") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestBadSessions(t *testing.T) {
	t.Parallel()
	cfg := config(t, "")
	line := `{"role":"user","content":"hello"}` + "\n"
	for name, tc := range map[string]struct{ text, says string }{
		"empty":       {"", "empty"},
		"no messages": {"[]", "no messages"},
		"unknown":     {`{"a":1}`, "not a recorded session; understood are:"},
		"garbage":     {"\x00\x01\x02", "not a recorded session"},
		"broken line": {line + line + "{broken\n" + line, "line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, "s.jsonl", []byte(tc.text))
			code, stdout, stderr := mortise(t.Context(), "", "run", "-c", cfg, path)
			if code != exit.Session || stdout != "" || !strings.Contains(stderr, tc.says) || !strings.Contains(stderr, path) {
				t.Errorf("exit code %d, stdout %q: %s", code, stdout, stderr)
			}
			if strings.Count(strings.TrimSpace(stderr), "\n") != 0 {
				t.Errorf("more than one line: %s", stderr)
			}
		})
	}
	code, _, stderr := mortise(t.Context(), "", "run", "-c", cfg, "gone.jsonl")
	if code != exit.Usage || !strings.Contains(stderr, "gone.jsonl") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestLenientKeepsTheRest(t *testing.T) {
	t.Parallel()
	text := `{"role":"user","content":"one"}` + "\n{broken\n" + `{"role":"assistant","content":"two"}` + "\n"
	code, stdout, stderr := mortise(t.Context(), text, "run", "-q", "-o", "json", "-c", config(t, ""), "--lenient", "-")
	if code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var r struct {
		Session struct {
			Messages int
			Broken   []string
		}
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Session.Messages != 2 || len(r.Session.Broken) != 1 || !strings.Contains(r.Session.Broken[0], "line 2") {
		t.Errorf("%+v", r.Session)
	}
}

// TestBadCommandLines: each error names the command, what is wrong and what to write.
func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"run":                    "mortise: run: PROMPT or SESSION is missing; write mortise run PROMPT or SESSION; mortise run --help says more",
		"run a b":                `mortise: run: takes one PROMPT or SESSION, and got 2: ["a" "b"]; put a prompt in quotes`,
		"run --json --pace 1s x": "mortise: run: --json is for a prompt, and --pace for a recording",
		"run --output xml x":     `--output "xml": must be table or json`,
		"run --no-such x":        "mortise: run: unknown flag: --no-such; mortise run --help says more",
		"run --foo x":            "mortise: run: unknown flag: --foo; mortise run --help says more",
		"run --outptu json x":    "mortise: run: unknown flag: --outptu; did you mean --output?",
		"run -z x":               "mortise: run: unknown shorthand flag: 'z' in -z; mortise run --help",
		"run --pace soon x":      `mortise: run: --pace "soon": time: invalid duration "soon"`,
		"run --log-level loud x": `--log-level "loud": must be debug, info, warn or error`,
		"fly":                    `mortise: there is no command "fly"; mortise --help says more`,
		"rnu x":                  `mortise: there is no command "rnu"; did you mean run?`,
		"--colour":               "mortise: unknown flag: --colour; mortise --help says more",
		"version now":            `mortise: version: takes no argument, and got "now"`,
		"compact shwo x":         `mortise: compact: there is no command "shwo"; did you mean show?`,
		"compact show":           "mortise: compact show: FILE|URL is missing; write mortise compact show FILE|URL",
		"compact undo a b c":     "mortise: compact undo: takes one FILE|URL, and got 3",
		"compact eval":           "mortise: compact eval: TRANSCRIPT|FOLDER is missing",
		"explain a b":            "mortise: explain: takes one RUN, and got 2",
	} {
		code, stdout, stderr := mortise(t.Context(), "", strings.Fields(args)...)
		if code != exit.Usage || stdout != "" || !strings.Contains(stderr, says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, stdout %q: %s, want %q", args, code, stdout, stderr, says)
		}
	}
	for args, says := range map[string]string{"version": "ABI 1 to 1", "": "Usage:", "compact": "mortise compact [command]"} {
		if code, stdout, _ := mortise(t.Context(), "", strings.Fields(args)...); code != exit.OK || !strings.Contains(stdout, says) {
			t.Errorf("%q: exit code %d: %s", args, code, stdout)
		}
	}
}

// TestBadPlaces: what is kept is not where the command line says, or is no longer whole.
func TestBadPlaces(t *testing.T) {
	t.Parallel()
	dir, empty := t.TempDir(), t.TempDir()
	session := write(t, "s.json", []byte(oneMessage))
	text := filepath.Join(dir, "notes.db")
	if err := os.WriteFile(text, []byte("these are notes, and many of them"), 0o644); err != nil { //nolint:gosec // others may read it, which is not what is wrong
		t.Fatal(err)
	}
	cfg, store := config(t, ""), filepath.Join(dir, "kept.db")
	if code, _, stderr := mortise(t.Context(), "", "run", "-q", "-c", cfg, "--store", store, session); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	whole, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	cut := write(t, "cut.db", whole[:len(whole)/2])
	for name, tc := range map[string]struct {
		args []string
		code exit.Code
		says string
	}{
		"nothing there":       {[]string{"compact", "show", "nofile.db"}, exit.Usage, "nofile.db: there is no such file; name the one that mortise run --store has made"},
		"no thread":           {[]string{"compact", "show", empty}, exit.Session, empty + " is a folder; threads and decision records are kept in a SQLite file"},
		"no such thread":      {[]string{"compact", "undo", store, "--thread", "x"}, exit.Usage, "file " + store + ` holds no thread "x"; it holds `},
		"cut off":             {[]string{"compact", "show", cut}, exit.Session, "the file is damaged or cut off: put a copy in its place"},
		"run on cut off":      {[]string{"run", "-c", cfg, "--store", cut, session}, exit.Config, "the file is damaged or cut off: put a copy in its place"},
		"store is text":       {[]string{"run", "-c", cfg, "--store", text, session}, exit.Config, text + " is no SQLite file, and it stays as it is; name another file"},
		"store is a folder":   {[]string{"run", "-c", cfg, "--store", empty, session}, exit.Config, empty + " is a folder; threads and decision records are kept in a SQLite file"},
		"session is missing":  {[]string{"run", "-c", cfg, "gone.jsonl"}, exit.Usage, "check the path; a prompt that looks like one can come from standard input"},
		"session is a folder": {[]string{"run", "-c", cfg, empty}, exit.Session, "name a file in this folder"},
		"config is a folder":  {[]string{"run", "-c", empty, session}, exit.Config, empty + " is a folder; name the file, " + filepath.Join(empty, "mortise.yaml")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := mortise(t.Context(), "", tc.args...)
			if code != tc.code || stdout != "" || !strings.Contains(stderr, tc.says) || strings.Contains(stderr, "chmod") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, stdout %q: %s, want %q", code, stdout, stderr, tc.says)
			}
		})
	}
}

func TestConversationPicksOne(t *testing.T) {
	t.Parallel()
	text := `{"id":"a-0","topic":"x","question":[[{"role":"user","content":"one"}]],"scenario":"s"}` + "\n" +
		`{"id":"b-0","topic":"x","question":[[{"role":"user","content":"two"}]],"scenario":"s"}` + "\n"
	path := write(t, "m.json", []byte(text))
	code, r, stderr := run(t, config(t, ""), path, "--conversation", "b-0")
	if code != exit.OK || len(r.Threads) != 1 || r.Threads[0].ID != "b-0" {
		t.Errorf("exit code %d, threads %+v: %s", code, r.Threads, stderr)
	}
	code, _, stderr = mortise(t.Context(), "", "run", "-c", config(t, ""), "--conversation", "c", path)
	if code != exit.Usage || !strings.Contains(stderr, `holds no conversation "c"; it holds a-0, b-0`) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestTableReport looks at what people read.
func TestTableReport(t *testing.T) {
	t.Parallel()
	session := filepath.Join(root(t), "examples", "sessions", "review.jsonl")
	code, stdout, stderr := mortise(t.Context(), "", "run", "-c", demoConfig(t), "--pace", "0", session)
	if code != exit.OK {
		t.Fatal(stderr)
	}
	for _, want := range []string{"modules", "plugins by phase", "admission of compactions", "compactions", "threads", "swapped", "complete", "redact", "guard", "index"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the report has no %q", want)
		}
	}
	for _, want := range []string{"started in the background", "summary arrived through the inbox"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("the progress has no %q", want)
		}
	}
}
