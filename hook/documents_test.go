package hook_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/phases"
)

// conforms sends an event of testdata/events, and compares the answer with what the agent's documents ask for.
func conforms(t *testing.T, b *bench, dialect, file, event, want string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "events", dialect, file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := b.Handle(t.Context(), &hook.Request{Dialect: dialect, Event: event, Stdin: data})
	if err != nil || out != want {
		t.Errorf("%s %s: %v\n%s, not\n%s", dialect, file, err, out, want)
	}
}

// TestDocuments: goose and Crush get what their documents ask for, for events as these show them.
func TestDocuments(t *testing.T) {
	t.Parallel()
	quiet := engine(t, options{})
	for _, file := range []string{"PreToolUse-developer__shell", "PostToolUse-developer__shell", "PostToolUseFailure-developer__shell"} {
		event := file[:len(file)-len("-developer__shell")]
		conforms(t, quiet, "goose", file, event, "") // {} would be a failure
	}
	conforms(t, quiet, "goose", "UserPromptSubmit", "UserPromptSubmit", "")
	conforms(t, quiet, "goose", "Stop", "Stop", "")
	conforms(t, quiet, "crush", "PreToolUse-bash", "PreToolUse", `{"version":1}`)
	guard := engine(t, options{plugins: []phases.Plugin{blocks("guard", "test")}})
	conforms(t, guard, "goose", "PreToolUse-developer__shell", "PreToolUse", `{"decision":"block","reason":"mortise: no test"}`)
	conforms(t, guard, "crush", "PreToolUse-bash", "PreToolUse", `{"decision":"deny","reason":"mortise: no test","version":1}`)
	keeper := plugin("keeper", abi.ModeGate, func(*abi.Event) (*abi.Reply, error) {
		return effects(abi.Effect{Type: abi.EffectVetoCompaction, Detail: "not now"}), nil
	}, abi.BeforeCompaction)
	conforms(t, engine(t, options{plugins: []phases.Plugin{keeper}}), "crush", "PreCompact", "PreCompact", `{"decision":"deny","reason":"not now","version":1}`)
}

// TestRespelled: an agent that reads names of arguments in any case gets no call whose arguments plugins see under another name.
func TestRespelled(t *testing.T) {
	t.Parallel()
	b := engine(t, options{plugins: []phases.Plugin{blocks("guard", "rm")}})
	for _, input := range []map[string]any{{"Command": "rm x"}, {"command": "ls", "COMMAND": "rm x"}} {
		out, m := b.send("crush", "PreToolUse", map[string]any{"session_id": "s", "tool_name": "bash", "tool_input": input})
		if m["decision"] != "deny" || !contains(m["reason"], "in another case") {
			t.Errorf("%v: %s", input, out)
		}
	}
}
