package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/hook/daemon"
	"github.com/mortise-dev/mortise/hook/frame"
	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/exit"
)

// hookPlace is a home with a config and a client that does nothing.
type hookPlace struct {
	t                               *testing.T
	home, config, profile, settings string
	client, cache                   string
}

func newHookPlace(t *testing.T) *hookPlace {
	t.Helper()
	dir := t.TempDir()
	p := &hookPlace{
		t: t, home: filepath.Join(dir, "home"), config: filepath.Join(dir, "mortise.yaml"), profile: filepath.Join(dir, "profile"),
		client: filepath.Join(dir, "mortise-hook"),
	}
	p.settings = filepath.Join(p.home, ".claude", "settings.json")
	p.cache = compiled(t) // in the home of this process: a new one has no compiled modules
	t.Setenv("HOME", p.home)
	t.Setenv("PATH", "/usr/bin:/bin")
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	guests, err := filepath.Abs(filepath.Join("..", "..", "testdata", "guests"))
	if err != nil {
		t.Fatal(err)
	}
	text := "version: 1\ncache_dir: " + p.cache + "\nplugins:\n  - {name: guard, module: " + guests + "/guard.wasm}\n  - {name: redact, module: " + guests + "/redact.wasm}\n"
	for path, text := range map[string]string{p.config: text, p.client: "#!/bin/sh\ncat >/dev/null\necho '{\"reason\":\"the probe was received\"}'\n"} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // the client is executed
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(p.settings), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs a command and returns its output.
func (p *hookPlace) run(want exit.Code, args ...string) string {
	p.t.Helper()
	var out, errs bytes.Buffer
	args = append(args, "--config", p.config, "--profile", p.profile)
	if args[0] == "hook" && p.client != "" {
		args = append(args, "--client", p.client)
	}
	got := cli.Main(p.t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, links.All())
	if got != want {
		p.t.Fatalf("%v: exit %d, want %d\n%s\n%s", args, got, want, out.String(), errs.String())
	}
	return out.String() + errs.String()
}

// TestHook_models: hooks need the keys of the models that plugins may ask, and of no others.
func TestHook_models(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	config, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	models := "models: {other: {provider: anthropic, name: claude-sonnet-4-5, key: {env: NO_SUCH_KEY}}}\nagents: {main: {model: other}}\n"
	write := func(text string) {
		if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(string(config) + models)
	p.run(exit.OK, "hook", "install", "claude")
	write(strings.Replace(string(config), "redact.wasm}", "redact.wasm, grants: {model: {judge: other}}}", 1) + models)
	if out := p.run(exit.Config, "hook", "install", "claude"); !strings.Contains(out, `"NO_SUCH_KEY" is not set`) {
		t.Errorf("a key of a granted model is missing: %s", out)
	}
	for key, variable := range map[string]string{", key: {env: NO_SUCH_KEY}": "NO_SUCH_KEY", "": "ANTHROPIC_API_KEY"} {
		t.Setenv(variable, "k")
		write(strings.Replace(string(config), "redact.wasm}", "redact.wasm, grants: {model: {judge: other}}}", 1) + strings.Replace(models, ", key: {env: NO_SUCH_KEY}", key, 1))
		p.run(exit.OK, "hook", "install", "claude")
		if policy, err := frame.ReadPolicy(p.profile); err != nil || !slices.Equal(policy.Env, []string{variable}) {
			t.Errorf("a daemon would have %v, %v", policy.Env, err)
		}
	}
	write(strings.Replace(string(config), "redact.wasm}", "redact.wasm, grants: {model: {judge: others}}}", 1) + models)
	if out := p.run(exit.Config, "hook", "install", "claude"); !strings.Contains(out, `there is no model "others"; models has ["other"]`) {
		t.Errorf("a granted model is not there: %s", out)
	}
}

// TestHook_install: install, list, doctor and uninstall of Claude Code, and what they print of what cannot be done.
func TestHook_install(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	before := "{\n  \"model\": \"opus\"\n}\n"
	if err := os.WriteFile(p.settings, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := p.run(exit.OK, "hook", "install", "claude", "--dry-run"); !strings.Contains(out, "PreToolUse") {
		t.Error(out)
	}
	if data, _ := os.ReadFile(p.settings); string(data) != before {
		t.Error("a dry run wrote")
	}
	if out := p.run(exit.OK, "hook", "install", "claude"); !strings.Contains(out, "plugins of "+p.config+": guard, redact\n") || !strings.Contains(out, "unsupported: replace_result") || !strings.Contains(out, "mortise proxy") {
		t.Errorf("what cannot be done is missing: %s", out)
	}
	installed, err := os.ReadFile(p.settings)
	if err != nil || strings.Count(string(installed), "mortise-hook") != 5 { // three hooks, and the hints of the gate and of a result
		t.Errorf("%v %s", err, installed)
	}
	if out := p.run(exit.OK, "hook", "install", "claude"); !strings.Contains(out, "already installed") {
		t.Error(out)
	}
	var list struct {
		Order  map[string][]string
		Agents []struct {
			Agent       string
			Events      map[string][]string
			Disabled    []string
			Unsupported []string
		}
	}
	if err := json.Unmarshal([]byte(p.run(exit.OK, "hook", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Agents) != 1 || len(list.Agents[0].Events[p.settings]) != 3 || len(list.Agents[0].Unsupported) == 0 || list.Order["tool_gate"][0] != "guard" {
		t.Errorf("%+v", list)
	}
	p.doctor(installed)
	p.run(exit.OK, "hook", "uninstall", "claude")
	if data, _ := os.ReadFile(p.settings); string(data) != before {
		t.Errorf("uninstall left %s", data)
	}
}

// doctor fails where the client does not answer, a switch turns hooks off, or nothing is registered.
func (p *hookPlace) doctor(installed []byte) {
	p.t.Helper()
	if out := p.run(exit.OK, "hook", "doctor", "claude"); !strings.Contains(out, "probe PreToolUse") || strings.Contains(out, "ticket") {
		p.t.Error(out)
	}
	ticket := filepath.Join(p.profile, "tickets", "0badcafe.json")
	if err := errors.Join(os.Mkdir(filepath.Dir(ticket), 0o700), os.WriteFile(ticket, []byte("{"), 0o600)); err != nil {
		p.t.Fatal(err)
	}
	p.run(exit.OK, "hook", "pending")
	if out := p.run(exit.OK, "hook", "doctor", "claude"); !strings.Contains(out, "1 ticket could not be read") || !strings.Contains(out, ticket+".damaged") {
		p.t.Error(out)
	}
	for what, body := range map[string]string{"dies": "kill -9 $$", "prints to standard error": "echo x >&2", "denies nothing": "echo {}"} {
		if err := os.WriteFile(p.client, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil { //nolint:gosec // it is executed
			p.t.Fatal(err)
		}
		if out := p.run(exit.Run, "hook", "doctor", "claude"); !strings.Contains(out, "fail  probe PreToolUse") {
			p.t.Errorf("a client that %s: %s", what, out)
		}
	}
	off := strings.Replace(string(installed), "{", "{\n  \"disableAllHooks\": true,", 1)
	if err := os.WriteFile(p.settings, []byte(off), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if out := p.run(exit.Run, "hook", "doctor", "claude"); !strings.Contains(out, "disableAllHooks is set") {
		p.t.Error(out)
	}
	for _, args := range [][]string{{"hook", "list"}, {"hook", "install", "claude", "--dry-run"}} {
		if out := p.run(exit.OK, args...); !strings.Contains(out, "disableAllHooks is set") {
			p.t.Error(out)
		}
	}
	if err := os.WriteFile(p.settings, installed, 0o600); err != nil {
		p.t.Fatal(err)
	}
	moved := filepath.Join(p.t.TempDir(), "claude")
	p.t.Setenv("CLAUDE_CONFIG_DIR", moved)
	if err := errors.Join(os.Mkdir(moved, 0o700), os.WriteFile(filepath.Join(moved, "settings.json"), []byte(off), 0o600)); err != nil {
		p.t.Fatal(err)
	}
	if out := p.run(exit.OK, "hook", "list"); !strings.Contains(out, "disableAllHooks is set in "+moved) {
		p.t.Error(out)
	}
	p.t.Setenv("CLAUDE_CONFIG_DIR", "")
	if out := p.run(exit.Run, "hook", "doctor", "qwen"); !strings.Contains(out, "there is no such file") {
		p.t.Error(out)
	}
}

// TestHook_moved: after an upgrade to another folder, where the client of before is gone, doctor says so without executing what is
// registered, install replaces the lines, and uninstall needs no client.
func TestHook_moved(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	p.run(exit.OK, "hook", "install", "claude")
	old, ran := p.client, filepath.Join(t.TempDir(), "ran")
	p.client = filepath.Join(t.TempDir(), "mortise-hook")
	for path, text := range map[string]string{p.client: "#!/bin/sh\necho '{\"reason\":\"the probe was received\"}'\n", old: "#!/bin/sh\ntouch " + ran + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is executed
			t.Fatal(err)
		}
	}
	if out := p.run(exit.Run, "hook", "doctor", "claude"); !strings.Contains(out, "the registered client is "+old) || !strings.Contains(out, "mortise hook install claude") {
		t.Error(out)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("doctor executed a client that is not that of this installation")
	}
	p.run(exit.OK, "hook", "install", "claude")
	if data, err := os.ReadFile(p.settings); err != nil || bytes.Contains(data, []byte(old)) || bytes.Count(data, []byte(p.client)) != 5 {
		t.Errorf("%v %s", err, data)
	}
	p.run(exit.OK, "hook", "doctor", "claude")
	if err := os.Remove(p.client); err != nil {
		t.Fatal(err)
	}
	p.client = ""
	p.run(exit.OK, "hook", "uninstall", "claude")
	if _, err := os.Stat(p.settings); err == nil {
		t.Error("the file that install made is still there")
	}
}

// TestHook_missing: a plugin that came into a config that is followed after install, or fails closed since, is not asked as it should be until
// install is executed again; list and doctor say so.
func TestHook_missing(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	both, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) {
		if err := os.WriteFile(p.config, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(both[:bytes.LastIndex(both, []byte("  - {name: redact"))])
	for _, agent := range []string{"claude", "pi"} {
		p.run(exit.OK, "hook", "install", agent, "--follow")
	}
	if out := p.run(exit.OK, "hook", "list"); strings.Contains(out, "MISSING") {
		t.Error(out)
	}
	write(both)
	if out := p.run(exit.OK, "hook", "list"); !strings.Contains(out, "MISSING      PostToolUse, PostToolUseFailure; mortise hook install claude") {
		t.Error(out)
	}
	if out := p.run(exit.Run, "hook", "doctor", "claude"); !strings.Contains(out, "the plugins want PostToolUse, PostToolUseFailure, which is not registered") {
		t.Error(out)
	}
	if out := p.run(exit.Run, "hook", "doctor", "pi"); !strings.Contains(out, "the extension is not the one") {
		t.Error(out)
	}
	p.run(exit.OK, "hook", "install", "claude", "--follow")
	p.run(exit.OK, "hook", "install", "pi", "--follow")
	p.run(exit.OK, "hook", "doctor", "claude")
	p.run(exit.OK, "hook", "doctor", "pi")
	data, err := os.ReadFile(p.settings)
	if err != nil {
		t.Fatal(err)
	}
	open := regexp.MustCompile(` closed \|\| (?:[^"\\]|\\.)*`).ReplaceAll(data, nil)
	if err := os.WriteFile(p.settings, open, 0o600); err != nil || bytes.Equal(open, data) {
		t.Fatal(err)
	}
	if out := p.run(exit.Run, "hook", "doctor", "claude"); !strings.Contains(out, "the plugins want PostToolUse, PreToolUse, which") {
		t.Error(out)
	}
	write([]byte("version: 1\nplugins: [{name: x, module: none.wasm}]\n"))
	if out := p.run(exit.Run, "hook", "doctor", "claude"); !strings.Contains(out, "fail  plugins") {
		t.Error(out)
	}
}

// TestHook_trust: --trust has Codex trust the lines that install wrote and no other, although it has them in it.
func TestHook_trust(t *testing.T) {
	p := newHookPlace(t)
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "written")
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	hooks := func(trust string) string {
		line := p.client + " " + p.profile + " codex PreToolUse"
		hook := `{"key":"%s","currentHash":"h","eventName":"preToolUse","command":"%s","enabled":true,"trustStatus":"` + trust + `"}`
		closed := line + " closed || { echo 'mortise: the hook client " + p.client + " did not answer, so the call is denied; run: mortise hook doctor codex' >&2; exit 2; }"
		return fmt.Sprintf(hook+","+hook+","+hook, "ours", closed, "theirs", "evil; "+closed, "like", "/tmp/evil "+strings.TrimPrefix(closed, p.client+" "))
	}
	list := func(trust string) string {
		return strings.ReplaceAll(`{"data":[{"hooks":[`+hooks(trust)+`],"errors":[]}]}`, "'", `'\''`)
	}
	script := "#!/bin/sh\n[ \"$1\" = --version ] && exec echo codex-cli 0.169.0\nlist='" + list("untrusted") + "'\nwhile read -r l; do\n" +
		"id=$(printf %s \"$l\" | sed -n 's/.*\"id\":\\([0-9]*\\).*/\\1/p')\ncase \"$l\" in\n*hooks/list*) ;;\n*batchWrite*) printf %s \"$l\" >" + log +
		"; list='" + list("trusted") + "';;\nesac\ncase \"$l\" in *hooks/list*) printf '{\"id\":%s,\"result\":%s}\\n' \"$id\" \"$list\";; *'\"id\"'*) printf '{\"id\":%s,\"result\":{}}\\n' \"$id\";; esac\ndone\n"
	if err := os.WriteFile(filepath.Join(bin, "codex"), []byte(script), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	if out := p.run(exit.OK, "hook", "install", "codex"); !strings.Contains(out, "NOT TRUSTED") {
		t.Error(out)
	}
	if out := p.run(exit.OK, "hook", "install", "codex", "--trust"); strings.Contains(out, "evil") || !strings.Contains(out, "trusted: Codex runs all") {
		t.Error(out)
	}
	written, err := os.ReadFile(log)
	if err != nil || !bytes.Contains(written, []byte(`"ours"`)) || bytes.Contains(written, []byte(`"theirs"`)) || bytes.Contains(written, []byte(`"like"`)) {
		t.Errorf("%v %s", err, written)
	}
}

// TestHook_stats: what the daemon recorded is printed as a table, as JSON and for Prometheus, and doctor warns when the policy answered.
func TestHook_stats(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	p.run(exit.OK, "hook", "install", "claude")
	record := `{"at":"2026-01-02T03:04:05Z","dialect":"claude","event":"PreToolUse","decision":"deny","ms":2,"plugins":[{"plugin":"guard","phase":"tool_gate","attempt":1,"ms":1,"gate":"block"}]}
{"at":"2026-01-02T03:04:06Z","dialect":"claude","event":"PostCompact","decision":"none","ms":1,"compacted":true,"unsupported":["veto_compaction"]}
{"at":"2026-01-02T03:04:07Z","dialect":"claude","event":"PostToolUse","decision":"context","ms":30,"returned":640,"repair":{"in_summary":1,"given_back":2,"lost":3}}
`
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(p.profile, "record.jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(record)
	for _, want := range []string{"deny:1", "guard", "block:1", "veto_compaction:1", "640 tokens given back", "the summary held 1, a note gave back 2, and 3 were lost"} {
		if out := p.run(exit.OK, "hook", "stats"); !strings.Contains(out, want) {
			t.Errorf("%s is missing: %s", want, out)
		}
	}
	var stats daemon.Stats
	if err := json.Unmarshal([]byte(p.run(exit.OK, "hook", "stats", "-o", "json")), &stats); err != nil || stats.Schema != daemon.StatsSchema || stats.Repair.GivenBack != 2 || len(stats.Events) != 3 {
		t.Errorf("%v %+v", err, stats)
	}
	file := filepath.Join(t.TempDir(), "hook.prom")
	p.run(exit.OK, "hook", "stats", "--textfile", file)
	data, err := os.ReadFile(file)
	for _, want := range []string{
		`mortise_agent_hook_events_total{agent="claude",decision="deny",event="PreToolUse"} 1`, `mortise_agent_hook_duration_seconds_bucket{agent="claude",event="PostToolUse",le="0.05"} 1`,
		`mortise_agent_hook_duration_seconds_bucket{agent="claude",event="PostToolUse",le="0.025"} 0`, `mortise_agent_hook_needed_names_total{from="note"} 2`,
		`mortise_agent_hook_plugin_duration_seconds_count{phase="tool_gate",plugin="guard"} 1`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%v: %s is missing in\n%s", err, want, data)
		}
	}
	var list struct {
		Agents []struct{ Stats []*daemon.EventStats }
	}
	if err := json.Unmarshal([]byte(p.run(exit.OK, "hook", "list", "--output", "json")), &list); err != nil || len(list.Agents) != 1 || len(list.Agents[0].Stats) != 3 {
		t.Errorf("%v %+v", err, list)
	}
	events := func() (state, detail string) {
		var found struct {
			Checks []struct{ Check, State, Detail string }
		}
		if err := json.Unmarshal([]byte(p.run(exit.OK, "hook", "doctor", "claude", "--output", "json")), &found); err != nil {
			t.Fatal(err)
		}
		last := found.Checks[len(found.Checks)-1]
		if last.Check != "events" {
			t.Errorf("%+v", found)
		}
		return last.State, last.Detail
	}
	if state, detail := events(); state != "ok" || !strings.Contains(detail, "3 events, p99 at most 50 ms") {
		t.Errorf("%s %s", state, detail)
	}
	write(record + `{"at":"2026-01-02T03:04:08Z","dialect":"claude","event":"PreToolUse","decision":"policy: closed","error":"late"}` + "\n")
	if state, detail := events(); state != "warn" || !strings.Contains(detail, "1 were answered by the policy") {
		t.Errorf("%s %s", state, detail)
	}
	p.run(exit.Usage, "hook", "stats", "--output", "yaml")
}

// TestHook_refused: an agent that cannot do what a plugin relies on, a file that is not valid, and unknown names.
func TestHook_refused(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	if out := p.run(exit.Config, "hook", "install", "crush"); !strings.Contains(out, "never fire") || !strings.Contains(out, "--partial") {
		t.Error(out)
	}
	p.run(exit.OK, "hook", "install", "crush", "--partial")
	if out := p.run(exit.Usage, "hook", "install", "emacs"); !strings.Contains(out, "there is no agent") {
		t.Error(out)
	}
	if err := os.WriteFile(p.settings, []byte("{\n  \"hooks\": {\n    \"Stop\": 5\n  }\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := p.run(exit.Config, "hook", "install", "claude"); !strings.Contains(out, "line 3") {
		t.Error(out)
	}
	if out := p.run(exit.Usage, "hook", "approve", "0badcafe"); !strings.Contains(out, "no such ticket") {
		t.Error(out)
	}
	if out := p.run(exit.OK, "hook", "pending"); !strings.Contains(out, "no call waits") {
		t.Error(out)
	}
	p.run(exit.OK, "hook", "stats")
}

// TestHook_versions: events that the installed version of the agent does not have are left out, and said so; a version whose hooks
// cannot do what plugins rely on is refused.
func TestHook_versions(t *testing.T) {
	p := newHookPlace(t)
	bin := t.TempDir()
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	data, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.config, append(data, "hook: {repair: true}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for printed, tc := range map[string]struct {
		left, missing []string
	}{
		"2.1.330 (Claude Code)": {left: []string{"PostCompact", "PostToolUseFailure", "PreToolUse"}},
		"2.1.75 (Claude Code)":  {left: []string{"PreToolUse", "PostToolUseFailure", "PreCompact"}, missing: []string{"PostCompact"}},
		"2.0.9 (Claude Code)":   {left: []string{"PreToolUse"}, missing: []string{"PostCompact", "PostToolUseFailure"}},
		"no version":            {left: []string{"PostCompact", "PreToolUse"}},
	} {
		if err := os.WriteFile(filepath.Join(bin, "claude"), []byte("#!/bin/sh\necho '"+printed+"'\n"), 0o700); err != nil { //nolint:gosec // it is executed
			t.Fatal(err)
		}
		if len(tc.missing) > 0 {
			if out := p.run(exit.Config, "hook", "install", "claude"); !strings.Contains(out, "is older than 2.1.121") || !strings.Contains(out, "--partial") {
				t.Errorf("%s: %s", printed, out)
			}
		}
		out := p.run(exit.OK, "hook", "install", "claude", "--partial")
		var file struct{ Hooks map[string]any }
		data, err := os.ReadFile(p.settings)
		if err = errors.Join(err, json.Unmarshal(data, &file)); err != nil {
			t.Fatal(err)
		}
		for _, event := range tc.left {
			if file.Hooks[event] == nil {
				t.Errorf("%s: %s is missing", printed, event)
			}
		}
		for _, event := range tc.missing {
			if file.Hooks[event] != nil || !strings.Contains(out, "has no event "+event) {
				t.Errorf("%s: %s is registered: %s", printed, event, out)
			}
		}
		if out := p.run(exit.OK, "hook", "list"); len(tc.missing) > 0 != strings.Contains(out, "older than") {
			t.Errorf("%s: %s", printed, out)
		}
	}
}

// TestHook_shims: the extensions of pi and opencode are written, and deleted again.
func TestHook_shims(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	for agent, file := range map[string]string{"pi": ".pi/agent/extensions/mortise.ts", "opencode": ".config/opencode/plugin/mortise.js"} {
		p.run(exit.OK, "hook", "install", agent)
		data, err := os.ReadFile(filepath.Join(p.home, file))
		if err != nil || !bytes.Contains(data, []byte(p.client)) || bytes.Contains(data, []byte("__")) {
			t.Errorf("%s: %v\n%s", agent, err, data)
		}
		p.run(exit.OK, "hook", "uninstall", agent)
		if _, err := os.Stat(filepath.Join(p.home, file)); err == nil {
			t.Errorf("%s: the file is still there", agent)
		}
	}
}
