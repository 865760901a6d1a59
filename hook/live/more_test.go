package live_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/live"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/phases"
)

var update = flag.Bool("update", false, "write the agents' events to hook/testdata/events")

// TestMain is also the MCP server of the tests, when a variable says so.
func TestMain(m *testing.M) {
	if os.Getenv("MORTISE_TEST_PROXY") != "" {
		if err := proxy(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv("MORTISE_TEST_MCP") != "" {
		serveMCP(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// serveMCP is an MCP server with one tool, whose secret is in its structured content, too.
func serveMCP(in, out *os.File) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Protocol string `json:"protocolVersion"`
			} `json:"params"`
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"vault","version":"1"}}`, m.Params.Protocol)
		case "tools/list":
			result = `{"tools":[{"name":"read_key","description":"reads the key","inputSchema":{"type":"object","properties":{}},"outputSchema":{"type":"object","properties":{"key":{"type":"string"}}}},{"name":"read_other","description":"reads the other key","inputSchema":{"type":"object","properties":{}}}]}`
		case "tools/call":
			result = fmt.Sprintf(`{"content":[{"type":"text","text":"{\"key\":\"%s\"}"}],"structuredContent":{"key":%q}}`, secret, secret)
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
}

// capture keeps the events of a run as golden files.
func capture(t *testing.T, r *live.Rig, dialect string) {
	t.Helper()
	if !*update {
		return
	}
	f, err := os.Open(r.Record())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	seen := map[string]int{}
	for lines.Scan() {
		var l struct {
			Event string          `json:"event"`
			Tool  string          `json:"tool"`
			Full  json.RawMessage `json:"full"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil || l.Full == nil {
			continue
		}
		name := l.Event
		if l.Tool != "" {
			name += "-" + l.Tool
		}
		seen[name]++
		if seen[name] > 1 {
			continue
		}
		text := strings.ReplaceAll(string(l.Full), filepath.Dir(r.Home()), "/src")
		path := filepath.Join("..", "testdata", "events", dialect, name+".json")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLive_mcp: a secret in the output of an MCP server, structured or not, never reaches the model.
func TestLive_mcp(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, dialect := range []string{"claude", "codex"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			call := abi.ToolCall{ID: "toolu_1", Name: "mcp__vault__read_key", Arguments: map[string]any{}}
			r := rig(t, dialect, []phases.Plugin{redact(secret)}, []abi.ToolCall{call}, nil)
			more := mcpServer(t, r, dialect, self, "MORTISE_TEST_MCP")
			run(t, r, "go", more...)
			capture(t, r, dialect)
			if all := sent(r); strings.Contains(all, secret) || !strings.Contains(all, "[redacted]") {
				t.Errorf("the secret reached the model, or the result did not")
				dump(t, r)
			}
		})
	}
}

// everywhere watches all phases, so that all events are registered.
func everywhere() *native {
	n := plugin("watch", abi.ModeObserve, abi.RunStart, func(*abi.Event) (*abi.Reply, error) { return nil, nil })
	for _, p := range append(abi.Phases(), abi.CompactionPhases()...) {
		if p != abi.RunStart {
			n.d.Hooks = append(n.d.Hooks, abi.Hook{Phase: p, Mode: abi.ModeObserve})
		}
	}
	return n
}

// TestLive_events: what the agents send at all events is understood.
func TestLive_events(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"claude", "codex", "pi", "qwen", "opencode", "copilot"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			calls := []abi.ToolCall{live.Shell(dialect, "toolu_1", "echo hello"), live.Shell(dialect, "toolu_2", "exit 3")}
			r := rig(t, dialect, []phases.Plugin{everywhere()}, calls, nil)
			run(t, r, "go", flags(dialect)...)
			capture(t, r, dialect)
			data, err := os.ReadFile(r.Record())
			if err != nil || strings.Contains(string(data), `"error"`) && strings.Contains(string(data), `"decision":"policy`) {
				t.Errorf("%v %s", err, data)
			}
			want := map[string][]string{
				"claude":   {"UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Stop"},
				"codex":    {"UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"},
				"pi":       {"agent_start", "tool_call", "tool_result", "agent_end"},
				"qwen":     {"UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"},
				"copilot":  {"userPromptSubmitted", "preToolUse", "postToolUse", "agentStop"},
				"opencode": {"chat.message", "tool.execute.before", "tool.execute.after"},
			}[dialect]
			for _, e := range want {
				if !strings.Contains(string(data), `"event":"`+e+`"`) {
					t.Errorf("no event %s", e)
				}
			}
			if t.Failed() {
				dump(t, r)
			}
		})
	}
}

// TestLive_wrapShell: with the option the output of a failed command is redacted in Claude Code, too.
func TestLive_wrapShell(t *testing.T) {
	t.Parallel()
	calls := []abi.ToolCall{live.Shell("claude", "toolu_1", "echo "+secret[:5]+secret[5:]+"; exit 3 # a comment")}
	r := rig(t, "claude", []phases.Plugin{redact(secret)}, calls, func(c *live.Config) {
		c.Edit = func(p *hook.Program) { p.WrapShell = true }
		c.Events = []string{"PreToolUse", "PostToolUse", "PostToolUseFailure"}
	})
	run(t, r, "go", flags("claude")...)
	last := lastResult(r)
	if !strings.Contains(last, "[redacted]") || !strings.Contains(last, "exit status 3") || strings.Contains(last, secret) {
		t.Errorf("the model read %q", last)
		dump(t, r)
	}
}

// lastResult is the newest tool result that the model was sent.
func lastResult(r *live.Rig) string {
	for _, q := range slices.Backward(r.Queries()) {
		for _, m := range slices.Backward(q.Messages) {
			if m.Role == abi.RoleTool {
				return m.Text()
			}
		}
	}
	return ""
}

func suspender(word string) *native {
	return plugin("ask", abi.ModeGate, abi.ToolGate, func(e *abi.Event) (*abi.Reply, error) {
		if !strings.Contains(command(e), word) {
			return nil, nil
		}
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateSuspend, Reason: "a person has to see this", Ticket: &abi.SuspendTicket{ID: "t"}}}, nil
	})
}

// TestLive_defer: Claude Code defers a suspended call; approved, it runs exactly once when the session is resumed;
// rejected, it does not.
func TestLive_defer(t *testing.T) {
	t.Parallel()
	for _, approve := range []bool{true, false} {
		t.Run(fmt.Sprint("approve ", approve), func(t *testing.T) {
			t.Parallel()
			r := rig(t, "claude", []phases.Plugin{suspender("asked")}, []abi.ToolCall{live.Shell("claude", "toolu_1", "echo x >> asked.txt")}, nil)
			out := run(t, r, "go", flags("claude")...)
			var result struct {
				Session  string `json:"session_id"`
				Reason   string `json:"terminal_reason"`
				Deferred *struct {
					Name string `json:"name"`
				} `json:"deferred_tool_use"`
			}
			if err := json.Unmarshal([]byte(out.Stdout), &result); err != nil {
				t.Fatal(err)
			}
			if result.Deferred == nil || result.Deferred.Name != "Bash" || exists(r, "asked.txt") {
				t.Fatalf("not deferred: %s", out.Stdout)
			}
			open, err := r.Tickets().List()
			if err != nil || len(open) != 1 {
				t.Fatalf("tickets %v, %v", open, err)
			}
			if _, err := r.Tickets().Decide(open[0].ID, approve, "not today"); err != nil {
				t.Fatal(err)
			}
			run(t, r, "", append([]string{"--resume", result.Session}, flags("claude")...)...)
			data, _ := os.ReadFile(filepath.Join(r.Project(), "asked.txt"))
			want := map[bool]string{true: "x\n", false: ""}[approve]
			if string(data) != want {
				t.Errorf("executed: %q, want %q", data, want)
			}
			if !approve && !strings.Contains(sent(r), "not today") {
				t.Error("the model was not given the note")
			}
			if t.Failed() {
				dump(t, r)
			}
		})
	}
}

// TestLive_ticket: Codex denies a suspended call with a ticket; the identical call passes once, another one does not.
func TestLive_ticket(t *testing.T) {
	t.Parallel()
	var r *live.Rig
	same := live.Shell("codex", "toolu_1", "echo x >> asked.txt")
	again, other, third := same, live.Shell("codex", "toolu_3", "echo y >> asked.txt"), same
	again.ID, third.ID = "toolu_2", "toolu_4"
	calls := &script{dialect: "codex", calls: []abi.ToolCall{same, again, other, third}}
	r = rig(t, "codex", []phases.Plugin{suspender("asked")}, nil, func(c *live.Config) {
		c.Reply = func(q providertest.Query) providertest.Answer {
			if open, err := r.Tickets().List(); err == nil && len(open) == 1 && open[0].Status == hook.TicketOpen {
				_, _ = r.Tickets().Decide(open[0].ID, true, "")
			}
			return calls.reply(q)
		}
	})
	run(t, r, "go")
	data, _ := os.ReadFile(filepath.Join(r.Project(), "asked.txt"))
	if string(data) != "x\n" || !strings.Contains(sent(r), "mortise hook approve ") {
		t.Errorf("executed: %q", data)
		dump(t, r)
	}
}

func stopper(at abi.Phase) *native {
	return plugin("stop", abi.ModeGate, at, func(*abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectStop, Code: "budget", Detail: "the budget is used up"}}}, nil
	})
}

// TestLive_stop: a plugin that stops the run at the gate keeps the tool from running, and the model reads why. Claude Code ends the run
// itself from a version between 2.1.197 and 2.1.330 on; the pinned one makes one more request.
func TestLive_stop(t *testing.T) {
	t.Parallel()
	r := rig(t, "claude", []phases.Plugin{stopper(abi.ToolGate)}, []abi.ToolCall{live.Shell("claude", "toolu_1", "touch ran.txt")}, nil)
	run(t, r, "go", flags("claude")...)
	n := turns(r)
	reason := n < 2 || strings.Contains(string(r.Queries()[len(r.Queries())-1].Body), "the budget is used up")
	if exists(r, "ran.txt") || n < 1 || n > 2 || !reason {
		t.Errorf("the tool ran: %v; %d requests; the model reads the reason: %v", exists(r, "ran.txt"), n, reason)
		dump(t, r)
	}
}

// turns counts requests of the conversation itself.
func turns(r *live.Rig) int {
	n := 0
	for _, q := range r.Queries() {
		if len(q.Tools) > 0 {
			n++
		}
	}
	return n
}

// TestLive_prompt: for a blocked prompt no request is made.
func TestLive_prompt(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"claude", "codex"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			r := rig(t, dialect, []phases.Plugin{stopper(abi.RunStart)}, nil, nil)
			run(t, r, "go")
			if n := turns(r); n != 0 {
				t.Errorf("%d requests", n)
				dump(t, r)
			}
		})
	}
}

// TestLive_continue: a plugin has the agent continue once.
func TestLive_continue(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"claude", "codex"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			n := plugin("more", abi.ModeTransform, abi.RunEnd, func(e *abi.Event) (*abi.Reply, error) {
				if e.State["done"] != nil {
					return nil, nil
				}
				m := abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("now run the tests")}}
				return &abi.Reply{
					Updates: []abi.Update{{Key: "done", Op: abi.OpSet, Value: true}},
					Effects: []abi.Effect{{Type: abi.EffectAppendMessages, Messages: []abi.Message{m}}},
				}, nil
			})
			n.d.State = []abi.StateKey{{Name: "done", Scope: abi.ScopeThread}}
			r := rig(t, dialect, []phases.Plugin{n}, nil, nil)
			run(t, r, "go")
			if got := turns(r); got != 2 || !strings.Contains(sent(r), "now run the tests") {
				t.Errorf("%d requests", got)
				dump(t, r)
			}
		})
	}
}

// TestLive_clientGone: without a client, or with one that dies, a gate that fails closed denies; an open one does not.
func TestLive_clientGone(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"claude", "codex", "pi"} {
		for _, how := range []string{"deleted", "killed"} {
			for _, closed := range []bool{true, false} {
				if dialect == "pi" && !closed {
					continue // our extension denies what it cannot ask about
				}
				t.Run(fmt.Sprint(dialect, " ", how, " closed ", closed), func(t *testing.T) {
					t.Parallel()
					g := guard("nothing")
					if !closed {
						g.d.Hooks[0].OnFailure = abi.FailIgnore
					}
					client := filepath.Join(t.TempDir(), "mortise-hook")
					body := "#!/bin/sh\nkill -9 $$\n"
					if err := os.WriteFile(client, []byte(body), 0o700); err != nil {
						t.Fatal(err)
					}
					r := rig(t, dialect, []phases.Plugin{g, everywhere()}, []abi.ToolCall{live.Shell(dialect, "toolu_1", "touch ran.txt")}, func(c *live.Config) { c.Client = client })
					if how == "deleted" {
						if err := os.Remove(client); err != nil {
							t.Fatal(err)
						}
					}
					run(t, r, "go", flags(dialect)...)
					if exists(r, "ran.txt") == closed {
						t.Errorf("the tool ran: %v", exists(r, "ran.txt"))
					}
					if closed && (!strings.Contains(sent(r), client) || !strings.Contains(sent(r), "mortise hook doctor")) {
						t.Errorf("the model was not given the path and the hint")
					}
					if n := turns(r); n != 2 {
						t.Errorf("%d requests: other events must continue", n)
					}
					if t.Failed() {
						dump(t, r)
					}
				})
			}
		}
	}
}

// TestLive_daemonGone: without a daemon the client answers by the policy.
func TestLive_daemonGone(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"claude", "codex"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			r := rig(t, dialect, []phases.Plugin{guard("nothing")}, []abi.ToolCall{live.Shell(dialect, "toolu_1", "touch ran.txt")}, nil)
			if err := r.StopDaemon(); err != nil {
				t.Fatal(err)
			}
			run(t, r, "go", flags(dialect)...)
			if exists(r, "ran.txt") || !strings.Contains(sent(r), "mortise did not answer in time") {
				t.Errorf("the tool ran: %v", exists(r, "ran.txt"))
				dump(t, r)
			}
		})
	}
}

// TestLive_untrusted: Codex skips hooks that it does not trust, and the rig's trust is what makes them run.
func TestLive_untrusted(t *testing.T) {
	t.Parallel()
	r := rig(t, "codex", []phases.Plugin{guard("forbidden")}, []abi.ToolCall{live.Shell("codex", "toolu_1", "touch forbidden.txt")}, func(c *live.Config) { c.Untrusted = true })
	run(t, r, "go")
	if !exists(r, "forbidden.txt") {
		t.Error("an untrusted hook ran; then install need not end in trust")
	}
}

// TestLive_clientGone_results: without a client, or with one that dies, no result reaches the model of which a plugin that fails closed has to
// take secrets out: the call is denied, and the result of one that ran before the client was gone is withheld. Otherwise results pass.
func TestLive_clientGone_results(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"claude", "codex"} {
		for _, how := range []string{"deleted", "killed", "killed meanwhile", "open"} {
			t.Run(dialect+" "+how, func(t *testing.T) {
				t.Parallel()
				p := redact("hunter2")
				p.d.Hooks[0].OnFailure = abi.FailRun
				if how == "open" {
					p.d.Hooks[0].OnFailure = abi.FailIgnore
				}
				body := "#!/bin/sh\nkill -9 $$\n"
				if how == "killed meanwhile" {
					body = "#!/bin/sh\n[ $3 = PreToolUse ] && echo {} || kill -9 $$\n"
				}
				client := filepath.Join(t.TempDir(), "it's mortise-hook")
				if err := os.WriteFile(client, []byte(body), 0o700); err != nil {
					t.Fatal(err)
				}
				r := rig(t, dialect, []phases.Plugin{p}, []abi.ToolCall{live.Shell(dialect, "toolu_1", "touch ran.txt; printf hunter%s 2")}, func(c *live.Config) { c.Client = client })
				if how == "deleted" {
					if err := os.Remove(client); err != nil {
						t.Fatal(err)
					}
				}
				run(t, r, "go", flags(dialect)...)
				passes, meanwhile := how == "open", how == "killed meanwhile"
				if dialect == "claude" && !meanwhile { // which ends the run then, and sends the result when the session is resumed
					run(t, r, "go on", append(flags(dialect), "--continue")...)
				}
				if leaked := strings.Contains(sent(r), "hunter2"); leaked != passes || exists(r, "ran.txt") != (passes || meanwhile) {
					t.Errorf("leaked %v, ran %v", leaked, exists(r, "ran.txt"))
					dump(t, r)
				}
				if !passes && (dialect == "codex" || !meanwhile) && !strings.Contains(sent(r), "mortise-hook did not answer") {
					t.Error("the model does not learn why")
				}
			})
		}
	}
}
