package main

import (
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func TestGate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		call    mortise.ToolCall
		config  any
		blocked string
	}{
		"bash":         {mortise.ToolCall{Name: "Bash", Arguments: map[string]any{"command": "rm -rf /"}}, nil, "recursive_delete"},
		"text":         {mortise.ToolCall{Name: "shell", Arguments: "rm -rf ~"}, nil, "recursive_delete"},
		"vector":       {mortise.ToolCall{Name: "shell", Arguments: map[string]any{"command": []any{"bash", "-lc", "rm -rf /"}}}, nil, "recursive_delete"},
		"kind":         {mortise.ToolCall{Name: "x", Kind: mortise.ToolExecute, Arguments: map[string]any{"cmd": "reboot"}}, nil, "power"},
		"fine":         {mortise.ToolCall{Name: "bash", Arguments: map[string]any{"command": "ls"}}, nil, ""},
		"other tool":   {mortise.ToolCall{Name: "write", Arguments: map[string]any{"input": "rm -rf /"}}, nil, ""},
		"tools":        {mortise.ToolCall{Name: "mine", Arguments: map[string]any{"go": "reboot"}}, map[string]any{"tools": []any{"mine"}, "arguments": []any{"go"}}, "power"},
		"custom rule":  {mortise.ToolCall{Name: "bash", Arguments: map[string]any{"command": "terraform destroy"}}, map[string]any{"rules": []any{map[string]any{"command": "terraform", "argument_prefixes": []any{"destroy"}}}}, "custom"},
		"codex":        {mortise.ToolCall{Name: "exec_command", Arguments: map[string]any{"cmd": "reboot"}}, nil, "power"},
		"stdin":        {mortise.ToolCall{Name: "write_stdin", Arguments: map[string]any{"session_id": int64(1), "chars": "reboot\n"}}, nil, "power"},
		"program":      {mortise.ToolCall{Name: "exec", Arguments: "// @exec: {}\nconst r = await tools.exec_command({cmd: \"git push --force origin main\", workdir: '/w'}); text(r);"}, nil, "force_push"},
		"fine program": {mortise.ToolCall{Name: "exec", Arguments: "text(await tools.exec_command({cmd: `ls`}))"}, nil, ""},
		"open literal": {mortise.ToolCall{Name: "exec", Arguments: `tools.exec_command({cmd: "reboot\\`}, nil, "power"},
		"mcp shell":    {mortise.ToolCall{Name: "mcp__files__shell", Kind: "other", Arguments: map[string]any{"input": "rm -rf /"}}, nil, "recursive_delete"},
		"mcp command":  {mortise.ToolCall{Name: "mcp__box__do", Kind: "other", Arguments: map[string]any{"command": []any{"rm", "-rf", "/"}}}, nil, "recursive_delete"},
		"mcp other":    {mortise.ToolCall{Name: "mcp__notes__write", Arguments: map[string]any{"text": "rm -rf /", "input": "rm -rf /"}}, nil, ""},
		"named tools":  {mortise.ToolCall{Name: "mcp__box__do", Arguments: map[string]any{"command": "rm -rf /"}}, map[string]any{"tools": []any{"bash"}}, ""},
		"editor":       {mortise.ToolCall{Name: "str_replace_based_edit_tool", Arguments: map[string]any{"command": "create", "path": "x", "file_text": "rm -rf /"}}, nil, ""},
		"hook mcp":     {mortise.ToolCall{Name: "mcp__box__do", Kind: "other", Arguments: map[string]any{"server": "box", "tool": "do", "input": map[string]any{"command": "rm -rf /"}}}, nil, "recursive_delete"},
		"hook shell":   {mortise.ToolCall{Name: "mcp__box__shell", Kind: "other", Arguments: map[string]any{"server": "box", "tool": "shell", "input": map[string]any{"input": "rm -rf /"}}}, nil, "recursive_delete"},
		"hook text":    {mortise.ToolCall{Name: "mcp__notes__write", Kind: "other", Arguments: map[string]any{"server": "notes", "tool": "write", "input": map[string]any{"text": "rm -rf /", "input": "rm -rf /"}}}, nil, ""},
		"hook string":  {mortise.ToolCall{Name: "mcp__notes__write", Kind: "other", Arguments: map[string]any{"server": "notes", "tool": "write", "input": "rm -rf /"}}, nil, ""},
		"hook decoy":   {mortise.ToolCall{Name: "mcp__box__do", Kind: "other", Arguments: map[string]any{"input": map[string]any{"command": "ls"}, "command": "rm -rf /"}}, nil, "recursive_delete"},
		"hook named":   {mortise.ToolCall{Name: "mcp__box__do", Kind: "other", Arguments: map[string]any{"server": "box", "tool": "do", "input": map[string]any{"command": "rm -rf /"}}}, map[string]any{"tools": []any{"bash"}}, ""},
		"local shell":  {mortise.ToolCall{Name: "local_shell", Arguments: map[string]any{"action": map[string]any{"type": "exec", "command": []any{"rm", "-rf", "/"}}}}, nil, "recursive_delete"},
		"split":        {mortise.ToolCall{Name: "mcp__box__do", Arguments: map[string]any{"command": "rm", "args": []any{"-rf", "/"}}}, nil, "recursive_delete"},
		"fine split":   {mortise.ToolCall{Name: "mcp__box__do", Arguments: map[string]any{"command": "echo", "args": []any{"rm", "-rf", "/"}}}, nil, ""},
		"other case":   {mortise.ToolCall{Name: "mcp__box__do", Arguments: map[string]any{"command": "ls", "COMMAND": "rm -rf /"}}, nil, "recursive_delete"},
		"folded":       {mortise.ToolCall{Name: "bash", Arguments: map[string]any{"\u017fcript": "reboot"}}, nil, "power"},
		"hook case":    {mortise.ToolCall{Name: "mcp__box__do", Kind: "other", Arguments: map[string]any{"server": "box", "tool": "do", "input": map[string]any{"Cmd": "rm -rf /"}}}, nil, "recursive_delete"},
		"action case":  {mortise.ToolCall{Name: "local_shell", Arguments: map[string]any{"Action": map[string]any{"command": []any{"rm", "-rf", "/"}}}}, nil, "recursive_delete"},
		"split case":   {mortise.ToolCall{Name: "mcp__box__do", Arguments: map[string]any{"command": "rm", "Args": []any{"-rf", "/"}}}, nil, "recursive_delete"},
		"no arguments": {mortise.ToolCall{Name: "bash"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, err := mortise.Marshal(&mortise.Event{ABI: 1, Phase: mortise.ToolGate, Call: &tc.call, Config: tc.config})
			if err != nil {
				t.Fatal(err)
			}
			p := plugin.Plugin{Description: description(), OnPhase: onPhase}
			out, err := p.Call("on_phase", in)
			if err != nil {
				t.Fatal(err)
			}
			var r mortise.Reply
			if err := mortise.Unmarshal(out, &r); err != nil {
				t.Fatal(err)
			}
			if tc.blocked == "" {
				if r.Gate != nil || len(r.Updates) > 0 {
					t.Errorf("got %+v", r)
				}
				return
			}
			if r.Gate == nil || r.Gate.Action != mortise.GateBlock || !strings.HasPrefix(r.Gate.Reason, "guard: rule "+tc.blocked+" forbids: ") || len(r.Updates) != 1 || r.Updates[0].Key != tc.blocked {
				t.Errorf("got %+v %+v", r.Gate, r.Updates)
			}
		})
	}
}
