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

// TestPatch_command: a shell command that looks like a patch is a command, of which a shell executes the other lines, and a file that does is
// written to its path.
func TestPatch_command(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex"} {
		d, err := hook.DialectOf(name)
		if err != nil {
			t.Fatal(err)
		}
		const command = " *** Begin Patch\nrm -rf /\n*** End Patch"
		call := d.Translate("Bash", map[string]any{"command": command}, "/w")
		if args, _ := call.Args.(map[string]any); call.Kind != hook.KindShell || args["command"] != command {
			t.Errorf("%s: %s %v", name, call.Kind, call.Args)
		}
	}
	d, err := hook.DialectOf("claude")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		call := d.Translate("Write", map[string]any{"file_path": "/etc/x", "content": "*** Begin Patch\n*** Add File: /w/y\n"}, "/w")
		if args, _ := call.Args.(map[string]any); call.Kind != hook.KindWrite || args["path"] != "/etc/x" {
			t.Fatalf("%s %v", call.Kind, call.Args)
		}
	}
}
