package hook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/phases"
)

// TestExact: what no plugin changes of a call or a result stays as it was written, numbers of any size as well.
func TestExact(t *testing.T) {
	t.Parallel()
	const numbers = `{"a":18446744073709551615,"b":[1.0,1e2,0.12345678901234567890,-0,9007199254740993],"c":{"d":1E400}}`
	set := plugin("set", abi.ModeTransform, func(e *abi.Event) (*abi.Reply, error) {
		args, _ := e.Call.Arguments.(map[string]any)
		args = maps.Clone(args)
		if input, ok := args["input"].(map[string]any); ok {
			input = maps.Clone(input)
			input["command"], input["e"] = "GONE", int64(5)
			args["input"] = input
		} else {
			args["command"], args["e"] = "GONE", int64(5)
		}
		return effects(abi.Effect{Type: abi.EffectRewriteCall, Arguments: args}), nil
	}, abi.BeforeToolExecute)
	b := engine(t, options{plugins: []phases.Plugin{set, redact("hunter2")}})
	inside := strings.TrimSuffix(numbers, "}")
	for tool, dialect := range map[string]string{"Bash": "claude", "mcp__s__t": "codex", "mcp__s__u": "mcp"} {
		pre := map[string]any{"session_id": "s", "session": "s", "tool_name": tool, "tool": tool, "tool_use_id": "c1", "call": "1"}
		post := maps.Clone(pre)
		pre["tool_input"] = json.RawMessage(inside + `,"command":"ls","e":4}`)
		pre["input"] = pre["tool_input"]
		post["tool_response"] = json.RawMessage(inside + `,"structuredContent":` + inside + `},"stdout":"hunter2"}`)
		post["response"], post["tool_input"], post["input"] = post["tool_response"], map[string]any{}, map[string]any{}
		events := map[string][2]string{"mcp": {"call", "result"}}[dialect]
		if events[0] == "" {
			events = [2]string{"PreToolUse", "PostToolUse"}
		}
		if out, _ := b.send(dialect, events[0], pre); !strings.Contains(out, inside+`,"command":"GONE","e":5}`) {
			t.Errorf("%s: %s", tool, out)
		}
		want := inside + `,"stdout":"[redacted]","structuredContent":` + inside + `}}`
		if dialect == "codex" { // which takes one text, of what is structured
			want = strings.ReplaceAll(inside, `"`, `\"`)
		}
		if out, _ := b.send(dialect, events[1], post); !strings.Contains(out, want) {
			t.Errorf("%s: %s\n%s", tool, out, want)
		}
	}
}

// TestTicket: a suspended call waits for a person; the agent cannot approve it by its shell.
func TestTicket(t *testing.T) {
	t.Parallel()
	ask := plugin("ask", abi.ModeGate, func(e *abi.Event) (*abi.Reply, error) {
		if args, _ := e.Call.Arguments.(map[string]any); !contains(args["command"], "deploy") {
			return nil, nil
		}
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateSuspend, Reason: "who deploys?", Ticket: &abi.SuspendTicket{ID: "t"}}}, nil
	}, abi.ToolGate)
	b := engine(t, options{plugins: []phases.Plugin{ask}})
	if out, m := b.sendAs("claude", "PreToolUse", false, bash("c1", "deploy")); at(m, specific, "permissionDecision") != "ask" {
		t.Errorf("with a terminal: %s", out)
	}
	if out, m := b.send("claude", "PreToolUse", bash("c1", "deploy")); at(m, specific, "permissionDecision") != "defer" {
		t.Errorf("headless: %s", out)
	}
	out, m := b.send("codex", "PreToolUse", bash("c1", "deploy"))
	if !contains(at(m, specific, "permissionDecisionReason"), "mortise hook approve ") {
		t.Errorf("codex: %s", out)
	}
	all, err := b.tickets.List()
	if err != nil || len(all) != 2 {
		t.Fatalf("%d tickets, %v; one for each session", len(all), err)
	}
	for i, command := range []string{
		"mortise hook approve " + all[1].ID, "cd /; /opt/mortise  hook   approve x", "mortise hook --profile /p --x=y approve x",
		"mortise hook install claude --follow", "mortise hook --config /c uninstall claude",
	} {
		if out, m := b.send("codex", "PreToolUse", bash(fmt.Sprint("self", i), command)); !contains(at(m, specific, "permissionDecisionReason"), "a person has to decide") {
			t.Errorf("%s: %s", command, out)
		}
	}
	if _, err := b.tickets.Decide(all[1].ID, true, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := b.tickets.Decide(all[1].ID, true, ""); !errors.Is(err, hook.ErrNoTicket) {
		t.Errorf("decided twice: %v", err)
	}
	for i, want := range []bool{false, true} { // once
		out, _ := b.send("codex", "PreToolUse", bash(fmt.Sprint("again", i), "deploy"))
		if strings.Contains(out, "deny") != want {
			t.Errorf("call %d: %s", i, out)
		}
	}
	// Approved calls pass although a plugin rewrites them, and pass as they were written: another number is another call.
	exact := engine(t, options{plugins: []phases.Plugin{ask, rewriter("one", "ONE")}})
	call := func(id, number string) map[string]any {
		f := bash(id, "deploy")
		f["tool_input"] = json.RawMessage(`{"command":"deploy","n":` + number + `}`)
		return f
	}
	exact.send("codex", "PreToolUse", call("c1", "18446744073709551615"))
	if all, err = exact.tickets.List(); err != nil || len(all) != 1 {
		t.Fatalf("%d tickets, %v", len(all), err)
	}
	if _, err := exact.tickets.Decide(all[0].ID, true, ""); err != nil {
		t.Fatal(err)
	}
	if out, _ := exact.send("codex", "PreToolUse", call("c2", "18446744073709551614")); !strings.Contains(out, "deny") {
		t.Errorf("another call: %s", out)
	}
	if out, _ := exact.send("codex", "PreToolUse", call("c3", "18446744073709551615")); !strings.Contains(out, `"updatedInput":{"command":"deploy ONE","n":18446744073709551615}`) {
		t.Errorf("the approved call: %s", out)
	}
	for _, id := range []string{"../../etc/passwd", "", "0badcafe"} {
		if _, err := b.tickets.Decide(id, true, ""); !errors.Is(err, hook.ErrNoTicket) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestTicket_damaged: files that hold no ticket are set aside and logged, once. They grant nothing, neither do they keep calls from being suspended.
func TestTicket_damaged(t *testing.T) {
	t.Parallel()
	ask := plugin("ask", abi.ModeGate, func(e *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateSuspend, Reason: "sure?", Ticket: &abi.SuspendTicket{ID: "t"}}}, nil
	}, abi.ToolGate)
	var log bytes.Buffer
	dir := t.TempDir()
	b := engine(t, options{plugins: []phases.Plugin{ask}, edit: func(c *hook.Config) {
		c.Tickets, c.Logger = hook.NewTickets(dir), slog.New(slog.NewTextHandler(&log, nil))
	}})
	tickets := hook.NewTickets(dir) // of the process that decides
	approved := func(id, command string) (file string, data []byte) {
		t.Helper()
		b.send("codex", "PreToolUse", bash(id, command))
		all, err := tickets.List()
		if err != nil || len(all) == 0 {
			t.Fatalf("%d tickets, %v", len(all), err)
		}
		k := all[len(all)-1]
		if _, err := tickets.Decide(k.ID, true, ""); err != nil {
			t.Fatal(err)
		}
		file = filepath.Join(dir, k.ID+".json")
		if data, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		return file, data
	}
	write := func(file string, data []byte) {
		t.Helper()
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, harm := range []func(file string, data []byte){
		func(file string, data []byte) { write(file, data[:len(data)/2]) },
		func(file string, _ []byte) { write(file, nil) },
		func(file string, data []byte) {
			write(file, bytes.Replace(data, []byte(`"approved"`), []byte(`"granted"`), 1))
		},
		func(file string, data []byte) { // as another ticket, which would never be used up
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			write(filepath.Join(dir, "0badcafe.json"), data)
		},
		func(file string, _ []byte) {
			if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		log.Reset()
		command := fmt.Sprint("deploy ", i)
		harm(approved(fmt.Sprint("a", i), command))
		for _, id := range []string{"b", "c"} {
			if out, _ := b.send("codex", "PreToolUse", bash(fmt.Sprint(id, i), command)); !strings.Contains(out, "mortise hook approve") {
				t.Errorf("%d: %s", i, out)
			}
		}
		if n := strings.Count(log.String(), "hook_ticket_damaged"); n != 1 {
			t.Errorf("%d: logged %d times: %s", i, n, log.String())
		}
		if aside, err := tickets.Damaged(); err != nil || len(aside) != i+1 {
			t.Errorf("%d: %v, %v", i, aside, err)
		}
		approved(fmt.Sprint("d", i), command)
		for j, want := range []bool{false, true} { // once
			if out, _ := b.send("codex", "PreToolUse", bash(fmt.Sprint("e", i, j), command)); strings.Contains(out, "deny") != want {
				t.Errorf("%d: call %d: %s", i, j, out)
			}
		}
	}
}
