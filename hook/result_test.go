package hook_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/phases"
)

// redact replaces a word in every text of a result.
func redact(secret string) *scripted {
	return plugin("redact", abi.ModeTransform, func(e *abi.Event) (*abi.Reply, error) {
		content := make([]abi.ContentBlock, len(e.Result.Content))
		found := false
		for i, c := range e.Result.Content {
			found = found || strings.Contains(c.Text, secret)
			c.Text = strings.ReplaceAll(c.Text, secret, "[redacted]")
			content[i] = c
		}
		if !found {
			return nil, nil
		}
		return effects(abi.Effect{Type: abi.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: content}), nil
	}, abi.AfterToolExecute)
}

// whole replaces a result by one text.
func whole(text string) *scripted {
	return plugin("whole", abi.ModeTransform, func(*abi.Event) (*abi.Reply, error) {
		return effects(abi.Effect{Type: abi.EffectReplaceResult, Result: &abi.ToolResult{Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text(text)}}}), nil
	}, abi.AfterToolExecute)
}

func decoded(t *testing.T, s string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestReplace_base64: a text in base64 is shown besides the base64, and is base64 again when a plugin has changed it; an image stays.
func TestReplace_base64(t *testing.T) {
	t.Parallel()
	encode := base64.StdEncoding.EncodeToString
	image := encode([]byte("\x89PNG\r\n\x1a\nhunter2"))
	response := `{"contents":[{"uri":"a","blob":"` + encode([]byte("key=hunter2")) + `"},{"uri":"b","blob":"` + image + `"},{"data":"hunter2","base64":"` + encode([]byte("fine")) + `"}]}`
	want := `{"contents":[{"uri":"a","blob":"` + encode([]byte("key=[redacted]")) + `"},{"uri":"b","blob":"` + image + `"},{"data":"[redacted]","base64":"` + encode([]byte("fine")) + `"}]}`
	b := engine(t, options{plugins: []phases.Plugin{redact("hunter2")}})
	out, m := b.send("claude", "PostToolUse", map[string]any{"session_id": "s", "tool_name": "Strange", "tool_use_id": "c", "tool_response": decoded(t, response)})
	if got := at(m, specific, "updatedToolOutput"); !reflect.DeepEqual(got, decoded(t, want)) {
		t.Errorf("got %s", out)
	}
}

// TestReplace_shape: a result is replaced in the tool's own shape, for tools that are not known, too.
func TestReplace_shape(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for name, tc := range map[string]struct{ tool, response, redacted, whole string }{
		"labels": {
			"mcp__s__t", `{"status":"hunter2AB","type":"utf-8","mode":"in_progress","kind":"hunter2 hunter2","text":"a long text"}`,
			`{"status":"[redacted]AB","type":"utf-8","mode":"in_progress","kind":"[redacted] [redacted]","text":"a long text"}`,
			`{"status":"","type":"utf-8","mode":"in_progress","kind":"GONE","text":""}`,
		},
		"shell": {
			"Bash", `{"stdout":"a hunter2","stderr":"b hunter2","interrupted":false,"isImage":false}`,
			`{"stdout":"a [redacted]","stderr":"b [redacted]","interrupted":false,"isImage":false}`,
			`{"stdout":"GONE","stderr":"","interrupted":false,"isImage":false}`,
		},
		"file": {
			"Read", `{"type":"text","file":{"filePath":"/x/hunter2","content":"k=hunter2","numLines":1}}`,
			`{"type":"text","file":{"filePath":"/x/[redacted]","content":"k=[redacted]","numLines":1}}`,
			`{"type":"text","file":{"filePath":"","content":"GONE","numLines":1}}`,
		},
		"mcp text":   {"mcp__s__t", `"{\"k\":\"hunter2\"}"`, `"{\"k\":\"[redacted]\"}"`, `"GONE"`},
		"mcp blocks": {"mcp__s__t", `[{"type":"text","text":"hunter2"}]`, `[{"type":"text","text":"[redacted]"}]`, `[{"type":"text","text":"GONE"}]`},
		"unknown": {
			"Strange", `{"mode":"deep","n":3,"inner":{"list":["x","hunter2 and more"]},"ok":true}`,
			`{"mode":"deep","n":3,"inner":{"list":["x","[redacted] and more"]},"ok":true}`,
			`{"mode":"deep","n":3,"inner":{"list":["","GONE"]},"ok":true}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fields := map[string]any{
				"session_id": "s", "tool_name": tc.tool, "tool_use_id": "c", "tool_input": map[string]any{}, "tool_response": decoded(t, tc.response),
			}
			b := engine(t, options{plugins: []phases.Plugin{redact(secret)}})
			out, m := b.send("claude", "PostToolUse", fields)
			if got := at(m, specific, "updatedToolOutput"); !reflect.DeepEqual(got, decoded(t, tc.redacted)) {
				t.Errorf("got %s", out)
			}
			b = engine(t, options{plugins: []phases.Plugin{whole("GONE")}})
			out, m = b.send("claude", "PostToolUse", fields)
			if got := at(m, specific, "updatedToolOutput"); !reflect.DeepEqual(got, decoded(t, tc.whole)) {
				t.Errorf("as a whole: got %s", out)
			}
		})
	}
}

// TestReplace_names: a secret in the name of a field or in a number is shown and replaced, or withheld with all of the result. Names of words and
// small numbers are no secrets.
func TestReplace_names(t *testing.T) {
	t.Parallel()
	const response = `{"a":{"id hunter2 1":1,"id hunter2 2":{"hunter2@x":[{"n":12345678901234567890123,"small":42}]}},"b":"hunter2","numLines":7}`
	fields := map[string]any{"session_id": "s", "tool_name": "Strange", "tool_use_id": "c", "tool_input": map[string]any{}, "tool_response": json.RawMessage(response)}
	mcp := maps.Clone(fields)
	mcp["tool_name"], mcp["tool_response"] = "mcp__s__t", json.RawMessage(`{"content":[{"type":"text","text":"hunter2"}],"structuredContent":`+response+`}`)
	var seen []string
	watch := plugin("watch", abi.ModeObserve, func(e *abi.Event) (*abi.Reply, error) {
		for _, c := range e.Result.Content {
			seen = append(seen, c.Text)
		}
		return nil, nil
	}, abi.AfterToolExecute)
	const want = `{"a":{"id *":{"*@x":[{"n":"*","small":42}]},"id *_2":1},"b":"*","numLines":7}`
	mask := plugin("mask", abi.ModeTransform, func(e *abi.Event) (*abi.Reply, error) {
		content := slices.Clone(e.Result.Content)
		for i := range content {
			content[i].Text = regexp.MustCompile(`hunter2( \d)?|^\d{6,}$`).ReplaceAllString(content[i].Text, "*")
		}
		return effects(abi.Effect{Type: abi.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: content}), nil
	}, abi.AfterToolExecute)
	b := engine(t, options{plugins: []phases.Plugin{watch, mask}})
	if out, m := b.send("claude", "PostToolUse", fields); !reflect.DeepEqual(at(m, specific, "updatedToolOutput"), decoded(t, want)) {
		t.Errorf("claude: %s", out)
	}
	if all := []string{"hunter2", "id hunter2 1", "id hunter2 2", "hunter2@x", "12345678901234567890123"}; !slices.Equal(seen, all) {
		t.Errorf("shown: %q", seen)
	}
	mcp["tool_use_id"] = "d"
	if out, m := b.send("codex", "PostToolUse", mcp); m["reason"] != want {
		t.Errorf("codex: %s", out)
	}
	broken := plugin("broken", abi.ModeTransform, func(*abi.Event) (*abi.Reply, error) { return nil, errors.New("broken") }, abi.AfterToolExecute)
	broken.d.Hooks[0].OnFailure = abi.FailRun
	for name, p := range map[string]phases.Plugin{"withheld": broken, "whole": whole("GONE")} {
		for dialect, f := range map[string]map[string]any{"claude": fields, "codex": mcp} {
			out, m := engine(t, options{plugins: []phases.Plugin{p}}).send(dialect, "PostToolUse", f)
			if strings.Contains(out, "hunter2") || strings.Contains(out, "1234567890") || len(m) == 0 {
				t.Errorf("%s, %s: %s", name, dialect, out)
			}
		}
	}
}

func TestReplace_dialects(t *testing.T) {
	t.Parallel()
	b := engine(t, options{plugins: []phases.Plugin{redact("hunter2")}})
	out, m := b.send("codex", "PostToolUse", map[string]any{"session_id": "s", "tool_name": "Bash", "tool_response": "k=hunter2"})
	if m["decision"] != "block" || m["reason"] != "k=[redacted]" || len(m) != 2 {
		t.Errorf("codex: %s", out)
	}
	out, m = b.send("codex", "PostToolUse", map[string]any{"session_id": "s", "tool_name": "mcp__s__t", "tool_response": map[string]any{
		"content": []any{map[string]any{"type": "text", "text": "hunter2"}}, "structuredContent": map[string]any{"k": "hunter2"}, "isError": false,
	}})
	if m["reason"] != `{"k":"[redacted]"}` {
		t.Errorf("codex, structured content: %s", out)
	}
	b = engine(t, options{plugins: []phases.Plugin{whole("GONE")}})
	out, m = b.send("codex", "PostToolUse", map[string]any{"session_id": "s", "tool_name": "mcp__s__t", "tool_response": map[string]any{
		"content": []any{map[string]any{"type": "text", "text": `{"k":"hunter2"}`}}, "structuredContent": map[string]any{"k": "hunter2", "n": 7}, "isError": false,
	}})
	if m["reason"] != "GONE" {
		t.Errorf("codex, structured content as a whole: %s", out)
	}
	b = engine(t, options{plugins: []phases.Plugin{redact("hunter2")}})
	out, m = b.send("copilot", "postToolUse", map[string]any{"sessionId": "s", "toolName": "bash", "toolResult": map[string]any{"resultType": "success", "textResultForLlm": "hunter2"}})
	if at(m, "modifiedResult", "textResultForLlm") != "[redacted]" || at(m, "modifiedResult", "resultType") != "success" {
		t.Errorf("copilot: %s", out)
	}
	out, m = b.send("copilot", "postToolUse", map[string]any{"sessionId": "s", "toolName": "bash", "toolArgs": "{}", "toolResult": map[string]any{"resultType": "failure", "textResultForLlm": "hunter2"}})
	if at(m, "modifiedResult", "textResultForLlm") != "[redacted]" || at(m, "modifiedResult", "resultType") != "failure" {
		t.Errorf("copilot, a failure: %s", out)
	}
	failure := map[string]any{"session_id": "s", "tool_name": "Bash", "tool_use_id": "c", "error": "exit 3: hunter2"}
	if out, _ = b.send("claude", "PostToolUseFailure", failure); out != "{}" || b.last().Unsupported[0] != "replace_result" {
		t.Errorf("claude cannot change a failed result: %s %v", out, b.last().Unsupported)
	}
	response := map[string]any{"llmContent": "Output: hunter2\nExit Code: 0", "returnDisplay": "hunter2"}
	out, m = b.send("qwen", "PostToolUse", map[string]any{"session_id": "s", "tool_name": "run_shell_command", "tool_response": response})
	if m["continue"] != false || m["stopReason"] != "Output: [redacted]\nExit Code: 0" || len(m) != 2 {
		t.Errorf("qwen: %s", out)
	}
	if out, _ = b.send("goose", "PostToolUse", map[string]any{"session_id": "s", "tool_name": "developer__shell", "tool_response": "hunter2"}); out != "" || b.last().Unsupported[0] != "replace_result" {
		t.Errorf("goose: %q", out)
	}
}

// TestWrapShell: with the option a failed command counts as a success, so that its result can be replaced.
func TestWrapShell(t *testing.T) {
	t.Parallel()
	b := engine(t, options{program: func(p *hook.Program) { p.WrapShell = true }})
	out, m := b.send("claude", "PreToolUse", bash("c1", "false # x"))
	if got := at(m, specific, "updatedInput", "command"); got != "( false # x\n) || echo \"exit status $?\"" {
		t.Errorf("%s", out)
	}
	if out, _ = b.send("codex", "PreToolUse", bash("c1", "false")); out != "{}" {
		t.Errorf("codex needs none: %s", out)
	}
}

// TestWrapShell_status: whatever plugins make of the output of a wrapped command, or where one fails closed, the exit status of a failed one stays
// in it, and one that succeeded has none.
func TestWrapShell_status(t *testing.T) {
	t.Parallel()
	broken := plugin("broken", abi.ModeTransform, func(*abi.Event) (*abi.Reply, error) { return nil, errors.New("broken") }, abi.AfterToolExecute)
	broken.d.Hooks[0].OnFailure = abi.FailRun
	const withheld = "[mortise: the result is withheld, because plugin broken failed]"
	for _, c := range []struct {
		p            phases.Plugin
		stdout, want string
	}{
		{redact("hunter2"), "a hunter2\nexit status 3", "a [redacted]\nexit status 3"},
		{whole("GONE"), "a hunter2\nexit status 3\n", "GONE\nexit status 3"},
		{whole(""), "exit status 127", "exit status 127"},
		{broken, "hunter2\nexit status 1", withheld + "\nexit status 1"},
		{whole("GONE"), "a hunter2", "GONE"},
		{whole("GONE"), "no exit status 3", "GONE"},
	} {
		b := engine(t, options{plugins: []phases.Plugin{c.p}, program: func(p *hook.Program) { p.WrapShell = true }})
		fields := bash("c1", "x")
		fields["tool_response"] = map[string]any{"stdout": c.stdout, "stderr": "", "interrupted": false, "isImage": false}
		if out, m := b.send("claude", "PostToolUse", fields); at(m, specific, "updatedToolOutput", "stdout") != c.want {
			t.Errorf("%q: %s", c.stdout, out)
		}
	}
}

// TestVocabulary: each native tool has a kind, and its arguments come back as they were.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	for _, name := range hook.Dialects() {
		d, err := hook.DialectOf(name)
		if err != nil {
			t.Fatal(err)
		}
		for tool, spec := range d.Tools {
			native := map[string]any{"untouched": int64(7), "nested": map[string]any{"a": []any{"b"}}}
			for arg, key := range spec.Args {
				native[key] = arg + " value"
				if arg == "path" {
					native[key] = "dir/file.txt"
				}
			}
			c := d.Translate(tool, native, "/src")
			if c.Kind == "" || c.Kind == hook.KindOther {
				t.Errorf("%s %s: kind %q", name, tool, c.Kind)
			}
			if got := c.Native(c.Args); !reflect.DeepEqual(got, native) {
				t.Errorf("%s %s: %v came back as %v", name, tool, native, got)
			}
			args, _ := c.Args.(map[string]any)
			for arg := range spec.Args {
				if arg == "path" && args["path"] != "/src/dir/file.txt" {
					t.Errorf("%s %s: path %v is not absolute", name, tool, args["path"])
				}
				changed := map[string]any{}
				maps.Copy(changed, args)
				changed[arg] = "NEW"
				if got, _ := c.Native(changed).(map[string]any); got[spec.Args[arg]] != "NEW" || got["untouched"] != int64(7) {
					t.Errorf("%s %s: rewriting %s gives %v", name, tool, arg, got)
				}
			}
		}
		c := d.Translate("NeverHeardOf", map[string]any{"x": "y"}, "/src")
		if c.Kind != hook.KindOther || !reflect.DeepEqual(c.Native(c.Args), map[string]any{"x": "y"}) {
			t.Errorf("%s: an unknown tool is %q", name, c.Kind)
		}
	}
}

func TestVocabulary_mcp(t *testing.T) {
	t.Parallel()
	for dialect, tool := range map[string]string{"claude": "mcp__gh__get_issue", "codex": "mcp__gh__get_issue", "goose": "gh__get_issue", "gemini": "mcp_gh_get_issue"} {
		d, err := hook.DialectOf(dialect)
		if err != nil {
			t.Fatal(err)
		}
		input := map[string]any{"n": int64(1)}
		c := d.Translate(tool, input, "")
		if c.Kind != hook.KindMCP || c.Server != "gh" || c.Tool != "get_issue" || !reflect.DeepEqual(c.Native(c.Args), input) {
			t.Errorf("%s: %+v", dialect, c)
		}
	}
	// Gemini CLI cuts long names, and the name of a server may have the separator; its events name both.
	d, err := hook.DialectOf("gemini")
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.Decode("BeforeTool", []byte(`{"hook_event_name":"BeforeTool","session_id":"s","tool_name":"mcp_my_server_get_the_very_lon...","tool_input":{"n":1},"mcp_context":{"server_name":"my_server","tool_name":"get_the_very_long_name"}}`))
	if err != nil || e.Call.Kind != hook.KindMCP || e.Call.Server != "my_server" || e.Call.Tool != "get_the_very_long_name" || !reflect.DeepEqual(e.Call.Native(e.Call.Args), map[string]any{"n": int64(1)}) {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestVocabulary_patch: a patch is shown with its files, and a shell command that has one is a command with these files.
func TestVocabulary_patch(t *testing.T) {
	t.Parallel()
	d, err := hook.DialectOf("codex")
	if err != nil {
		t.Fatal(err)
	}
	patch := "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Update File: /etc/b\n*** Move to: c\n*** Delete File: d\n*** End Patch\n"
	files := []any{"/src/a.txt", "/etc/b", "/src/c", "/src/d"}
	native := map[string]any{"command": patch}
	c := d.Translate("apply_patch", native, "/src")
	args, _ := c.Args.(map[string]any)
	if c.Kind != hook.KindPatch || args["text"] != patch || args["command"] != nil || !reflect.DeepEqual(args["files"], files) {
		t.Errorf("%s %v", c.Kind, args)
	}
	if !reflect.DeepEqual(c.Native(c.Args), native) {
		t.Errorf("it came back as %v", c.Native(c.Args))
	}
	for _, command := range []string{patch, "apply_patch <<'EOF'\n" + patch + "EOF"} {
		c := d.Translate("Bash", map[string]any{"command": command}, "/src")
		args, _ := c.Args.(map[string]any)
		if c.Kind != hook.KindShell || args["command"] != command || !reflect.DeepEqual(args["files"], files) {
			t.Errorf("both: %s %v", c.Kind, args)
		}
	}
}
