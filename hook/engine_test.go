package hook_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/phases"
)

func contains(v any, word string) bool {
	s, ok := v.(string)
	return ok && strings.Contains(s, word)
}

const specific = "hookSpecificOutput"

func TestGate_deny(t *testing.T) {
	t.Parallel()
	b := engine(t, options{plugins: []phases.Plugin{blocks("guard", "rm")}})
	for _, d := range []string{"claude", "codex", "qwen"} {
		out, m := b.send(d, "PreToolUse", bash("c1", "rm -rf x"))
		if at(m, specific, "permissionDecision") != "deny" || !contains(at(m, specific, "permissionDecisionReason"), "no rm") {
			t.Errorf("%s: %s", d, out)
		}
		if out, _ := b.send(d, "PreToolUse", bash("c2", "ls")); out != "{}" {
			t.Errorf("%s without an opinion: %s", d, out)
		}
	}
	fields := bash("c1", "rm x")
	fields["tool_name"] = "developer__shell"
	if out, m := b.send("goose", "PreToolUse", fields); m["decision"] != "block" {
		t.Errorf("goose: %s", out)
	}
	fields["tool_name"], fields["tool_input"] = "developer__shell", map[string]any{"command": "ls"}
	if out, _ := b.send("goose", "PreToolUse", fields); out != "" {
		t.Errorf("goose without an opinion got %q", out)
	}
	out, m := b.send("gemini", "BeforeTool", map[string]any{"session_id": "s", "tool_name": "run_shell_command", "tool_input": map[string]any{"command": "rm"}})
	if m["decision"] != "deny" {
		t.Errorf("gemini: %s", out)
	}
	out, m = b.send("copilot", "preToolUse", map[string]any{"sessionId": "s", "toolName": "bash", "toolArgs": `{"command":"rm"}`})
	if m["permissionDecision"] != "deny" {
		t.Errorf("copilot: %s", out)
	}
	out, m = b.send("crush", "PreToolUse", map[string]any{"session_id": "s", "tool_name": "bash", "tool_input": map[string]any{"command": "rm"}})
	if m["decision"] != "deny" || m["version"] != 1.0 {
		t.Errorf("crush: %s", out)
	}
}

// rewriter appends a word to the command.
func rewriter(name, word string) *scripted {
	return plugin(name, abi.ModeTransform, func(e *abi.Event) (*abi.Reply, error) {
		args, _ := e.Call.Arguments.(map[string]any)
		command, _ := args["command"].(string)
		return effects(abi.Effect{Type: abi.EffectRewriteCall, Note: "adds " + word, Arguments: map[string]any{"command": command + " " + word}}), nil
	}, abi.BeforeToolExecute)
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	b := engine(t, options{plugins: []phases.Plugin{rewriter("one", "ONE")}})
	out, m := b.send("claude", "PreToolUse", bash("c1", "echo"))
	input, _ := at(m, specific, "updatedInput").(map[string]any)
	if input["command"] != "echo ONE" || input["description"] != "d" || input["timeout"] != 7.0 {
		t.Errorf("the other arguments must stay: %s", out)
	}
	if at(m, specific, "permissionDecision") != nil {
		t.Errorf("Claude Code has to apply its own permission rules: %s", out)
	}
	if !contains(at(m, specific, "additionalContext"), "mortise: one changed this call: adds ONE") {
		t.Errorf("the rewrite is not announced: %s", out)
	}
	out, m = b.send("codex", "PreToolUse", bash("c1", "echo"))
	if at(m, specific, "permissionDecision") != "allow" || at(m, specific, "updatedInput", "command") != "echo ONE" {
		t.Errorf("codex: %s", out)
	}
	if out, m = b.send("goose", "PreToolUse", bash("c1", "echo")); out != "" || b.last().Unsupported[0] != "rewrite_call" {
		t.Errorf("goose cannot rewrite: %s %v %v", out, m, b.last().Unsupported)
	}
	quiet := engine(t, options{plugins: []phases.Plugin{rewriter("one", "ONE")}, program: func(p *hook.Program) { p.Quiet = []string{"one"} }})
	if out, m := quiet.send("claude", "PreToolUse", bash("c1", "echo")); at(m, specific, "additionalContext") != nil {
		t.Errorf("quiet: %s", out)
	}
}

// TestRewrite_unsupportedFailsClosed: where a dialect cannot rewrite, a plugin that fails closed has the call denied.
func TestRewrite_unsupportedFailsClosed(t *testing.T) {
	t.Parallel()
	p := rewriter("one", "ONE")
	p.d.Hooks[0].OnFailure = abi.FailRun
	b := engine(t, options{plugins: []phases.Plugin{p}})
	fields := bash("c1", "echo")
	fields["tool_name"] = "developer__shell"
	if out, m := b.send("goose", "PreToolUse", fields); m["decision"] != "block" || b.last().Unsupported[0] != "rewrite_call" {
		t.Errorf("%s", out)
	}
}

// TestConflict_permutations: 1,000 permutations of latencies give one result for conflicting rewrites.
func TestConflict_permutations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		words := []string{"A", "B", "C", "D"}
		wait := make([]time.Duration, len(words))
		var plugins []phases.Plugin
		for i, w := range words {
			p := rewriter(strings.ToLower(w), w)
			p.wait = func() time.Duration { return wait[i] }
			plugins = append(plugins, p)
		}
		b := engine(t, options{plugins: plugins})
		if got := b.Program().Runtime.Order(abi.BeforeToolExecute); fmt.Sprint(got) != "[a b c d]" {
			t.Fatal(got)
		}
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
		want := ""
		for n := range 1000 {
			for i, at := range random.Perm(len(words)) {
				wait[i] = time.Duration(at) * 50 * time.Millisecond
			}
			fields := bash(fmt.Sprint("c", n), "echo")
			out, m := b.send("claude", "PreToolUse", fields)
			if at(m, specific, "updatedInput", "command") != "echo A B C D" {
				t.Fatalf("permutation %d %v: %s", n, wait, out)
			}
			if want == "" {
				want = out
			}
			if out != want {
				t.Fatalf("permutation %d: %s, the first was %s", n, out, want)
			}
		}
	})
}

// TestConflict_denyWins: one plugin rewrites, another denies or asks; timing changes nothing.
func TestConflict_denyWins(t *testing.T) {
	t.Parallel()
	for _, action := range []abi.GateAction{abi.GateBlock, abi.GateSuspend} {
		synctest.Test(t, func(t *testing.T) {
			var slow [2]time.Duration
			judge := plugin("judge", abi.ModeGate, func(*abi.Event) (*abi.Reply, error) {
				return &abi.Reply{Gate: &abi.GateDecision{Action: action, Reason: "why", Ticket: &abi.SuspendTicket{ID: "t"}}}, nil
			}, abi.ToolGate)
			if action == abi.GateBlock {
				judge.fn = func(*abi.Event) (*abi.Reply, error) {
					return &abi.Reply{Gate: &abi.GateDecision{Action: action, Reason: "why"}}, nil
				}
			}
			judge.wait = func() time.Duration { return slow[0] }
			w := rewriter("writer", "W")
			w.d.Hooks[0].Phase = abi.ToolGate
			w.wait = func() time.Duration { return slow[1] }
			b := engine(t, options{plugins: []phases.Plugin{judge, w}})
			for i := range 2 {
				slow[i], slow[1-i] = time.Second, 0
				out, m := b.sendAs("claude", "PreToolUse", false, bash(fmt.Sprint("c", i), "echo"))
				want := map[abi.GateAction]any{abi.GateBlock: "deny", abi.GateSuspend: "ask"}[action]
				if at(m, specific, "permissionDecision") != want || at(m, specific, "updatedInput") != nil {
					t.Errorf("%s %d: %s", action, i, out)
				}
			}
		})
	}
}

// TestAllow_needsGrant: an allow of a plugin is silent unless the operator grants it.
func TestAllow_needsGrant(t *testing.T) {
	t.Parallel()
	yes := plugin("yes", abi.ModeGate, func(*abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateAllow}}, nil
	}, abi.ToolGate)
	b := engine(t, options{plugins: []phases.Plugin{yes}})
	for _, d := range []string{"claude", "codex", "qwen"} {
		if out, _ := b.send(d, "PreToolUse", bash("c1", "ls")); strings.Contains(out, "allow") {
			t.Errorf("%s without a grant: %s", d, out)
		}
	}
	granted := engine(t, options{plugins: []phases.Plugin{yes}, program: func(p *hook.Program) { p.MayApprove = []string{"yes"} }})
	if out, _ := granted.send("claude", "PreToolUse", bash("c1", "ls")); !strings.Contains(out, `"allow"`) {
		t.Errorf("with the grant: %s", out)
	}
	if out, _ := granted.send("codex", "PreToolUse", bash("c1", "ls")); strings.Contains(out, "allow") {
		t.Errorf("codex takes no bare allow: %s", out)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	broken := func(policy abi.FailurePolicy, at abi.Phase) *scripted {
		p := plugin("broken", abi.ModeGate, func(*abi.Event) (*abi.Reply, error) { return nil, errors.New("broken") }, at)
		p.d.Hooks[0].OnFailure = policy
		return p
	}
	result := map[string]any{
		"session_id": "s1", "tool_name": "Bash", "tool_use_id": "c1", "tool_input": map[string]any{"command": "env"},
		"tool_response": map[string]any{"stdout": "SECRET", "stderr": "", "interrupted": false, "isImage": false},
	}
	t.Run("closed gate", func(t *testing.T) {
		t.Parallel()
		b := engine(t, options{plugins: []phases.Plugin{broken(abi.FailRun, abi.ToolGate)}})
		if out, m := b.send("claude", "PreToolUse", bash("c1", "ls")); at(m, specific, "permissionDecision") != "deny" {
			t.Error(out)
		}
	})
	t.Run("open gate", func(t *testing.T) {
		t.Parallel()
		b := engine(t, options{plugins: []phases.Plugin{broken(abi.FailIgnore, abi.ToolGate)}})
		if out, _ := b.send("claude", "PreToolUse", bash("c1", "ls")); out != "{}" {
			t.Error(out)
		}
	})
	t.Run("closed result", func(t *testing.T) {
		t.Parallel()
		b := engine(t, options{plugins: []phases.Plugin{broken(abi.FailRun, abi.AfterToolExecute)}})
		out, m := b.send("claude", "PostToolUse", result)
		if strings.Contains(out, "SECRET") || !contains(at(m, specific, "updatedToolOutput", "stdout"), "withheld") || at(m, specific, "updatedToolOutput", "interrupted") != false {
			t.Error(out)
		}
	})
}

// TestStop: the dialects differ in what ends a run.
func TestStop(t *testing.T) {
	t.Parallel()
	stop := plugin("stop", abi.ModeGate, func(*abi.Event) (*abi.Reply, error) {
		return effects(abi.Effect{Type: abi.EffectStop, Code: "budget", Detail: "out of budget"}), nil
	}, abi.ToolGate, abi.RunStart, abi.AfterToolExecute)
	b := engine(t, options{plugins: []phases.Plugin{stop}})
	out, m := b.send("claude", "PreToolUse", bash("c1", "ls"))
	if m["continue"] != false || at(m, specific, "permissionDecision") != "deny" {
		t.Errorf("claude at the gate must deny and stop: %s", out)
	}
	out, m = b.send("codex", "PreToolUse", bash("c1", "ls"))
	if _, there := m["continue"]; there || at(m, specific, "permissionDecision") != "deny" {
		t.Errorf("codex at the gate: %s", out)
	}
	for _, d := range []string{"claude", "codex"} {
		if out, m := b.send(d, "UserPromptSubmit", map[string]any{"session_id": "s1", "prompt": "hi"}); m["decision"] != "block" || m["reason"] == "" {
			t.Errorf("%s: a prompt is blocked: %s", d, out)
		}
	}
	out, m = b.send("codex", "PostToolUse", map[string]any{"session_id": "s1", "tool_name": "Bash", "tool_response": "secret"})
	if m["decision"] != "block" || !contains(m["reason"], "out of budget") {
		t.Errorf("codex at a result: %s", out)
	}
	out, m = b.send("crush", "PreToolUse", map[string]any{"session_id": "s", "tool_name": "bash", "tool_input": map[string]any{"command": "ls"}})
	if m["halt"] != true {
		t.Errorf("crush: %s", out)
	}
}

// TestContinue: a plugin that always has the agent continue comes to an end, also where a model repeats itself, so that the agent
// sends the same event again and again.
func TestContinue(t *testing.T) {
	t.Parallel()
	more := plugin("more", abi.ModeTransform, func(*abi.Event) (*abi.Reply, error) {
		return effects(abi.Effect{Type: abi.EffectAppendMessages, Messages: []abi.Message{{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("run the tests")}}}}), nil
	}, abi.RunEnd)
	for dialect, id := range map[string]string{"claude": "prompt_id", "codex": "turn_id", "qwen": "none"} {
		now := time.Now()
		b := engine(t, options{plugins: []phases.Plugin{more}, edit: func(c *hook.Config) { c.Now = func() time.Time { return now } }})
		continued := 0
		for range 20 {
			now = now.Add(2 * time.Second)
			event := map[string]any{"session_id": "s1", id: "p1", "stop_hook_active": continued > 0, "last_assistant_message": "done"}
			out, m := b.send(dialect, "Stop", event)
			if m["decision"] != "block" {
				if out != "{}" || b.last().Error == "" || b.last().Unsupported[0] != "continue" {
					t.Errorf("%s at the cap: %s %+v", dialect, out, b.last())
				}
				break
			}
			if m["reason"] != "run the tests" {
				t.Error(out)
			}
			if id != "none" { // from another scope of settings
				if again, _ := b.send(dialect, "Stop", event); again != out || !b.last().Duplicate {
					t.Errorf("%s: %s %+v", dialect, again, b.last())
				}
			}
			continued++
		}
		if continued != 8 {
			t.Errorf("%s: continued %d times", dialect, continued)
		}
	}
}

// counting counts its calls in its state, and returns their number.
func counting(scope abi.Scope, at abi.Phase) *scripted {
	p := plugin("count", abi.ModeTransform, func(e *abi.Event) (*abi.Reply, error) {
		n, _ := e.State["n"].(int64)
		return &abi.Reply{
			Updates: []abi.Update{{Key: "n", Op: abi.OpSet, Value: n + 1}},
			Effects: []abi.Effect{{Type: abi.EffectAddContext, Context: &abi.ContextMessage{Key: "n", Content: []abi.ContentBlock{abi.Text(fmt.Sprint("n=", n+1))}}}},
		}, nil
	}, at)
	p.d.State[0].Scope = scope
	return p
}

// TestLanes: sub-agents and the main agent have their own state, and so have sessions and agents.
func TestLanes(t *testing.T) {
	t.Parallel()
	b := engine(t, options{plugins: []phases.Plugin{counting(abi.ScopeThread, abi.ToolGate)}})
	send := func(dialect, session, lane, id string) any {
		f := bash(id, "ls")
		f["session_id"] = session
		if lane != "" {
			f["agent_id"] = lane
		}
		_, m := b.send(dialect, "PreToolUse", f)
		return at(m, specific, "additionalContext")
	}
	for i, lane := range [][3]string{{"claude", "s", ""}, {"claude", "s", "sub"}, {"claude", "s2", ""}, {"codex", "s", ""}, {"claude", `s":"sub`, ""}} {
		if got := send(lane[0], lane[1], lane[2], fmt.Sprint("c", i)); got != "n=1" {
			t.Errorf("lane %v: %v", lane, got)
		}
	}
	if got := send("claude", "s", "", "again"); got != "n=2" {
		t.Errorf("the main lane continues with %v", got)
	}
}

// TestDuplicate: one event from two scopes of settings has one effect, also at the same time.
func TestDuplicate(t *testing.T) {
	t.Parallel()
	b := engine(t, options{plugins: []phases.Plugin{counting(abi.ScopeThread, abi.ToolGate)}})
	outs := make([]string, 8)
	var wg sync.WaitGroup
	for i := range outs {
		wg.Go(func() { outs[i], _ = b.send("codex", "PreToolUse", bash("same", "ls")) })
	}
	wg.Wait()
	for _, out := range outs {
		if !strings.Contains(out, "n=1") {
			t.Errorf("%s", out)
		}
	}
	if out, _ := b.send("codex", "PreToolUse", bash("other", "ls")); !strings.Contains(out, "n=2") {
		t.Errorf("the next call: %s", out)
	}
	duplicates := 0
	for _, r := range b.records {
		if r.Duplicate {
			duplicates++
		}
	}
	if duplicates != 7 {
		t.Errorf("%d of 8 are recorded as duplicates", duplicates)
	}
}

// TestArrival: events of a lane commit in the order in which they came, however slow the plugins are.
func TestArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := counting(abi.ScopeThread, abi.ToolGate)
		p.wait = func() time.Duration { return 100 * time.Millisecond }
		b := engine(t, options{plugins: []phases.Plugin{p}})
		outs := make([]string, 20)
		var wg sync.WaitGroup
		for i := range outs {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // in the bubble's time
				outs[i], _ = b.send("claude", "PreToolUse", bash(fmt.Sprint("c", i), "ls"))
			})
		}
		wg.Wait()
		for i, out := range outs {
			if !strings.Contains(out, fmt.Sprintf(`"n=%d"`, i+1)) {
				t.Errorf("event %d: %s", i, out)
			}
		}
	})
}

// kept is a place for states in memory, which encodes nothing.
type kept struct {
	mu  sync.Mutex
	all map[string]hook.Saved
}

func (k *kept) Load(lane string) (*hook.Saved, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.all[lane]
	if !ok {
		return nil, nil
	}
	return &s, nil
}

func (k *kept) Save(lane string, s *hook.Saved) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[lane] = *s
	return nil
}

// TestRestart: a new engine continues with the states of the one before; a new prompt starts a run.
func TestRestart(t *testing.T) {
	t.Parallel()
	k := &kept{all: map[string]hook.Saved{}}
	for i := range 3 {
		b := engine(t, options{plugins: []phases.Plugin{counting(abi.ScopeRun, abi.ToolGate)}, edit: func(c *hook.Config) { c.States = k }})
		if out, _ := b.send("claude", "PreToolUse", bash(fmt.Sprint("c", i), "ls")); !strings.Contains(out, fmt.Sprintf("n=%d", i+1)) {
			t.Errorf("engine %d: %s", i, out)
		}
	}
	b := engine(t, options{plugins: []phases.Plugin{counting(abi.ScopeRun, abi.ToolGate)}, edit: func(c *hook.Config) { c.States = k }})
	b.send("claude", "UserPromptSubmit", map[string]any{"session_id": "s1", "prompt": "next", "prompt_id": "p2"})
	if out, _ := b.send("claude", "PreToolUse", bash("c9", "ls")); !strings.Contains(out, "n=1") {
		t.Errorf("the state of a run ends with it: %s", out)
	}
}

// TestUse: another program takes over sessions that are open.
func TestUse(t *testing.T) {
	t.Parallel()
	b := engine(t, options{plugins: []phases.Plugin{counting(abi.ScopeThread, abi.ToolGate)}})
	b.send("claude", "PreToolUse", bash("c1", "ls"))
	b.Use(programOf(t, 0, counting(abi.ScopeThread, abi.ToolGate), blocks("guard", "rm")))
	if out, _ := b.send("claude", "PreToolUse", bash("c2", "ls")); !strings.Contains(out, "n=2") {
		t.Error(out)
	}
	if out, m := b.send("claude", "PreToolUse", bash("c3", "rm")); at(m, specific, "permissionDecision") != "deny" {
		t.Error(out)
	}
}

// TestExclude: a tool that a plugin excludes is denied, and the model is notified once.
func TestExclude(t *testing.T) {
	t.Parallel()
	p := plugin("no-web", abi.ModeTransform, func(*abi.Event) (*abi.Reply, error) {
		return effects(abi.Effect{Type: abi.EffectExcludeTools, Tools: []string{"WebFetch"}}), nil
	}, abi.RunStart)
	b := engine(t, options{plugins: []phases.Plugin{p}})
	for i, want := range []bool{true, false} {
		out, _ := b.send("claude", "UserPromptSubmit", map[string]any{"session_id": "s1", "prompt": "hi", "prompt_id": fmt.Sprint(i)})
		if strings.Contains(out, "WebFetch is not available") != want {
			t.Errorf("prompt %d: %s", i, out)
		}
	}
	out, m := b.send("claude", "PreToolUse", map[string]any{"session_id": "s1", "tool_name": "WebFetch", "tool_use_id": "c", "tool_input": map[string]any{"url": "http://x"}})
	if at(m, specific, "permissionDecision") != "deny" {
		t.Error(out)
	}
}
