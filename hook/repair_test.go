package hook_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/phases"
)

const noteMark = "Kept by mortise"

func repairing(p *hook.Program) { p.RepairTokens = 650 }

// transcript writes a log of Claude Code with calls and results.
func transcript(t *testing.T, calls int, result func(i int) string) string {
	t.Helper()
	var b strings.Builder
	line := func(v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(data, '\n'))
	}
	for i := range calls {
		line(map[string]any{"type": "assistant", "message": map[string]any{"role": "assistant", "content": []any{
			map[string]any{"type": "tool_use", "name": "Bash", "input": map[string]any{"command": fmt.Sprintf("go test ./pkg/mod_%d -run TestFrob_%d", i, i)}},
		}}})
		line(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "tool_result", "content": result(i)},
		}}})
	}
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// compacts sends the events of a compaction of Claude Code, and returns what came back: as context, after the first event.
func compacts(b *bench, path, summary string, id int) (focus, session, later string) {
	base := func(m map[string]any) map[string]any {
		m["session_id"], m["cwd"], m["transcript_path"] = "s1", "/src", path
		return m
	}
	focus, _ = b.send("claude", "PreCompact", base(map[string]any{"trigger": "auto"}))
	_, out := b.send("claude", "SessionStart", base(map[string]any{"source": "compact"}))
	session, _ = at(out, specific, "additionalContext").(string)
	b.send("claude", "PostCompact", base(map[string]any{"trigger": "auto", "compact_summary": summary}))
	_, out = b.send("claude", "PostToolUse", base(map[string]any{
		"tool_name": "Bash", "tool_use_id": fmt.Sprint("after", id), "tool_input": map[string]any{"command": "ls"}, "tool_response": map[string]any{"stdout": "x", "stderr": ""},
	}))
	later, _ = at(out, specific, "additionalContext").(string)
	return focus, session, later
}

// TestRepair: what the summary lost comes back once, in two parts, within the budget; what it holds does not.
func TestRepair(t *testing.T) {
	t.Parallel()
	b := engine(t, options{program: repairing})
	path := transcript(t, 160, func(i int) string { return fmt.Sprintf("ok pkg/mod_%d 0.%d12s", i, i) }) // more than the budget holds
	summary := "We ran the tests of ./pkg/mod_159 and TestFrob_159."
	focus, session, later := compacts(b, path, summary, 1)
	if !strings.HasPrefix(focus, "Keep these names exactly: ") || !strings.Contains(focus, "TestFrob_159") || len(focus) > 400*4 {
		t.Errorf("focus %q", focus)
	}
	if !strings.Contains(session, noteMark) || !strings.Contains(later, noteMark) || strings.Contains(later, "TestFrob_159") {
		t.Errorf("session start %q\nlater %q", session, later)
	}
	if first, all := tokens(session), tokens(session)+tokens(later); first > 325 || all > 650 || all < 600 {
		t.Errorf("%d and %d tokens came back", first, all-first)
	}
	for i := range 160 {
		name := regexp.MustCompile(fmt.Sprintf(`TestFrob_%d\b`, i))
		if name.MatchString(session) && name.MatchString(later) {
			t.Errorf("%s came back twice", name)
		}
	}
	if _, _, again := compacts(b, path, summary, 2); strings.Count(again, noteMark) > 1 {
		t.Errorf("the second compaction: %q", again)
	}
	if out, _ := b.send("claude", "PostToolUse", bash("c9", "ls")); strings.Contains(out, noteMark) {
		t.Errorf("the note came again: %s", out)
	}
}

// TestRepair_uses: a name of before the compaction that a call uses counts once, by where the agent could have it from; one that
// was shown again meanwhile does not.
func TestRepair_uses(t *testing.T) {
	t.Parallel()
	b := engine(t, options{program: repairing})
	path := transcript(t, 160, func(int) string { return "ok" })
	_, session, later := compacts(b, path, "We ran TestFrob_159.", 1)
	post := func(id, command, output string) hook.RepairUse {
		b.send("claude", "PostToolUse", map[string]any{
			"session_id": "s1", "transcript_path": path, "tool_name": "Bash", "tool_use_id": id, "tool_input": map[string]any{"command": command},
			"tool_response": map[string]any{"stdout": output, "stderr": ""},
		})
		if r := b.last().Repair; r != nil {
			return *r
		}
		return hook.RepairUse{}
	}
	given, lost := "", ""
	for i := range 150 {
		name := fmt.Sprintf("TestFrob_%d", i)
		if strings.Contains(session+later, name+" ") {
			given = name
		} else if !strings.Contains(session+later, name) {
			lost = name
		}
	}
	if given == "" || lost == "" {
		t.Fatalf("given %q, lost %q: %s %s", given, lost, session, later)
	}
	for i, step := range []struct {
		command, output string
		want            hook.RepairUse
	}{
		{"go test -run TestFrob_159", "", hook.RepairUse{InSummary: 1}},
		{"go test -run TestFrob_159", "", hook.RepairUse{}},
		{"go test -run " + given, "", hook.RepairUse{GivenBack: 1}},
		{"grep -r Frob", "found " + lost, hook.RepairUse{}},
		{"go test -run " + lost, "", hook.RepairUse{}},
	} {
		if got := post(fmt.Sprint("u", i), step.command, step.output); got != step.want {
			t.Errorf("step %d, %s: %+v, want %+v", i, step.command, got, step.want)
		}
	}
	_, _, _ = compacts(b, path, "nothing", 2)
	if got := post("u9", "go test -run "+lost, ""); got != (hook.RepairUse{Lost: 1}) {
		t.Errorf("a lost name: %+v", got)
	}
}

// TestRepair_enough: a summary that holds the names needs no repair.
func TestRepair_enough(t *testing.T) {
	t.Parallel()
	b := engine(t, options{program: repairing})
	path := transcript(t, 5, func(int) string { return "ok" })
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, later := compacts(b, path, string(data), 1); strings.Contains(later, noteMark) {
		t.Errorf("%q", later)
	}
}

// TestRepair_codex: Codex's summary is in its rollout, and one note comes at the start of the session.
func TestRepair_codex(t *testing.T) {
	t.Parallel()
	b := engine(t, options{program: repairing})
	path := transcript(t, 10, func(int) string { return "ok" })
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	base := func(more map[string]any) map[string]any {
		more["session_id"], more["transcript_path"], more["cwd"] = "s1", path, "/w"
		return more
	}
	out, _ := b.send("codex", "PreCompact", base(map[string]any{"trigger": "auto"}))
	if out != "{}" {
		t.Errorf("Codex takes no focus: %s", out)
	}
	fmt.Fprintln(f, `{"type":"compacted","payload":{"message":"all about TestFrob_3","replacement_history":[],"window_id":1}}`)
	_ = f.Close()
	b.send("codex", "PostCompact", base(map[string]any{"trigger": "auto"}))
	out, m := b.send("codex", "SessionStart", base(map[string]any{"source": "compact"}))
	if text, _ := at(m, specific, "additionalContext").(string); strings.Count(text, noteMark) != 1 || strings.Contains(text, "TestFrob_3,") || !strings.Contains(text, "TestFrob_9") {
		t.Errorf("%s", out)
	}
}

// TestRepair_secrets: 50 secrets that were redacted in results are in no focus and no note, though the log has them.
func TestRepair_secrets(t *testing.T) {
	t.Parallel()
	secretOf := func(i int) string { return fmt.Sprintf("sk_live_%dA9fQ27x%dZ", i, i) }
	p := plugin("redact", abi.ModeTransform, func(e *abi.Event) (*abi.Reply, error) {
		content := make([]abi.ContentBlock, len(e.Result.Content))
		for i, c := range e.Result.Content {
			if e.Call.Name != "mortise_note" { // even if the plugin did not know them there
				for n := range 50 {
					c.Text = strings.ReplaceAll(c.Text, secretOf(n), "[redacted]")
				}
			}
			content[i] = c
		}
		return effects(abi.Effect{Type: abi.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: content}), nil
	}, abi.AfterToolExecute)
	b := engine(t, options{plugins: []phases.Plugin{p}, program: repairing})
	path := transcript(t, 50, func(i int) string {
		return "token " + secretOf(i) + " and https://api.example.com/v1/things?key=" + secretOf(i) + " " + secretOf(i)
	})
	for i := range 50 {
		b.send("claude", "PostToolUse", map[string]any{
			"session_id": "s1", "tool_name": "Bash", "tool_use_id": fmt.Sprint("t", i), "tool_input": map[string]any{"command": "env"},
			"tool_response": map[string]any{"stdout": "token " + secretOf(i), "stderr": ""},
		})
	}
	focus, session, later := compacts(b, path, "nothing", 1)
	if !strings.Contains(session, noteMark) {
		t.Errorf("no note: %s", session)
	}
	for _, out := range []string{focus, session, later} {
		if strings.Contains(out, "sk_live_") {
			t.Errorf("a secret came back: %s", out)
		}
	}
}

// TestRepair_events: without a log of the agent's own the events are one. A sub-agent's are its own, and its parent's log is not.
func TestRepair_events(t *testing.T) {
	t.Parallel()
	b := engine(t, options{program: repairing})
	path := transcript(t, 3, func(int) string { return "of the parent" })
	focusOf := func(more map[string]any) string {
		send := func(event string, fields map[string]any) string {
			maps.Copy(fields, more)
			out, _ := b.send("claude", event, fields)
			return out
		}
		send("UserPromptSubmit", map[string]any{"session_id": "s1", "prompt": "look into pkg/fromPrompt.go"})
		send("PostToolUse", map[string]any{
			"session_id": "s1", "tool_name": "Bash", "tool_use_id": "c1", "tool_input": map[string]any{"command": "cat pkg/fromCall.go"},
			"tool_response": map[string]any{"stdout": "see pkg/fromResult.go", "stderr": ""},
		})
		return send("PreCompact", map[string]any{"session_id": "s1", "trigger": "auto"})
	}
	for name, more := range map[string]map[string]any{
		"no log":    {"transcript_path": "/does/not/exist"},
		"sub-agent": {"transcript_path": path, "agent_id": "a1"},
	} {
		focus := focusOf(more)
		for _, want := range []string{"pkg/fromPrompt.go", "pkg/fromCall.go", "pkg/fromResult.go"} {
			if !strings.Contains(focus, want) {
				t.Errorf("%s: %s is missing in %q", name, want, focus)
			}
		}
		if strings.Contains(focus, "TestFrob") {
			t.Errorf("%s: %q", name, focus)
		}
	}
	if focus := focusOf(map[string]any{"transcript_path": path}); strings.Contains(focus, "fromPrompt") || !strings.Contains(focus, "TestFrob_2") {
		t.Errorf("with a log: %q", focus)
	}
}

// TestRepair_transcript: a log that is missing, half written, replaced or large costs little, and is no error.
func TestRepair_transcript(t *testing.T) {
	t.Parallel()
	b := engine(t, options{program: repairing})
	if focus, _, _ := compacts(b, "/does/not/exist", "s", 1); focus != "{}" {
		t.Errorf("missing: %q", focus)
	}
	path := transcript(t, 3, func(int) string { return "ok" })
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if focus, _, _ := compacts(b, path, "s", 2); strings.Contains(focus, "TestFrob") {
		t.Errorf("half a line: %q", focus)
	}
	line := func(name string) string {
		return `{"type":"assistant","message":{"content":"see ` + name + `"}}` + "\n"
	}
	for id, text := range []string{line("internal/one/file.go"), line("internal/two/file.go"), line("internal/early/file.go") + strings.Repeat("\n", 9<<20) + line("internal/end/file.go")} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		focus, _, _ := compacts(b, path, "s", 10+id)
		for name, want := range map[string]int{"internal/one": 0, "internal/two": 1, "internal/early": -1, "internal/end": 2} {
			if strings.Contains(focus, name) != (want == id) {
				t.Errorf("replaced %d: %s: %q", id, name, focus)
			}
		}
	}
	large := filepath.Join(t.TempDir(), "large.jsonl")
	f, err := os.Create(large)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(200 << 20); err != nil { // one line of zeros
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 2); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "\n"+`{"type":"assistant","message":{"content":"see internal/late/file.go"}}`+"\n"+`{"type":"assist`)
	_ = f.Close()
	if focus, _, _ := compacts(b, large, "s", 3); !strings.Contains(focus, "internal/late/file.go") {
		t.Errorf("large: %q", focus)
	}
}
