package hook_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/phases"
)

// TestDecode_golden: events that the real agents sent, or that their documents show, are understood, and new fields change nothing.
func TestDecode_golden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "events", "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no events in testdata/events")
	}
	for _, f := range files {
		dialect := filepath.Base(filepath.Dir(f))
		event, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(f), ".json"), "-")
		d, err := hook.DialectOf(dialect)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		e, err := d.Decode(event, data)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if e.Session == "" || e.Cwd == "" && (dialect != "goose" || e.Tool != "") {
			t.Errorf("%s: session %q, cwd %q", f, e.Session, e.Cwd)
		}
		if strings.Contains(event, "ToolUse") && (e.CallID == "" && dialect != "copilot" && dialect != "crush" || e.Tool == "" || e.Call.Kind == hook.KindOther) {
			t.Errorf("%s: call %q of tool %q, kind %s", f, e.CallID, e.Tool, e.Call.Kind)
		}
		more := bytes.Replace(data, []byte("{"), []byte(`{"a_new_field":{"deep":[1]},`), 1)
		b := engine(t, options{plugins: []phases.Plugin{blocks("guard", "zzz"), redact("hunter2")}})
		one, err1 := b.Handle(t.Context(), &hook.Request{Dialect: dialect, Event: event, Stdin: data})
		two, err2 := b.Handle(t.Context(), &hook.Request{Dialect: dialect, Event: event, Stdin: more})
		if err1 != nil || err2 != nil || one != two {
			t.Errorf("%s: %v %v, %q and with a new field %q", f, err1, err2, one, two)
		}
	}
}

func TestDecode_garbage(t *testing.T) {
	t.Parallel()
	d, err := hook.DialectOf("claude")
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string][]byte{
		"empty": nil, "text": []byte("log line\n{}"), "list": []byte("[]"), "two": []byte(`{}{}`), "half": []byte(`{"tool_name":"Ba`),
		"no tool": []byte(`{"session_id":"s"}`), "other event": []byte(`{"hook_event_name":"Stop","tool_name":"Bash"}`),
		"deep": []byte(strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)), "large": bytes.Repeat([]byte(" "), hook.MaxEvent+1),
	} {
		if _, err := d.Decode("PreToolUse", in); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := d.Decode("Unheard", []byte("{}")); err == nil {
		t.Error("an unknown event was accepted")
	}
}

// FuzzHandle: any input in any dialect is an error or an answer, and never a panic.
func FuzzHandle(f *testing.F) {
	f.Add("claude", "PreToolUse", []byte(`{"tool_name":"Bash","tool_input":{"command":"rm"}}`))
	f.Add("codex", "PostToolUse", []byte(`{"tool_name":"mcp__a__b","tool_response":{"content":[{"text":"hunter2"}]}}`))
	f.Add("copilot", "preToolUse", []byte(`{"toolName":"bash","toolArgs":"{\"command\":1}"}`))
	f.Add("pi", "tool_result", []byte(`{"tool":"bash","response":[{"type":"text","text":"hunter2"}]}`))
	f.Add("claude", "Stop", []byte(`{}`))
	b := engine(f, options{plugins: []phases.Plugin{blocks("guard", "rm"), redact("hunter2")}})
	f.Fuzz(func(t *testing.T, dialect, event string, in []byte) {
		out, err := b.Handle(t.Context(), &hook.Request{Dialect: dialect, Event: event, Stdin: in})
		if err == nil && strings.Contains(out, "\n") && !strings.Contains(event, "Compact") {
			t.Errorf("%q", out)
		}
		d, err := hook.DialectOf(dialect)
		if err != nil {
			return
		}
		if e, err := d.Decode(event, in); err == nil && e.Tool != "" {
			e.Call.Native(e.Call.Args)
		}
	})
}
