package live_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook/live"
	"github.com/mortise-dev/mortise/internal/agents"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/phases"
)

var client = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mortise-hook-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "mortise-hook")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/mortise-hook").CombinedOutput()
	if err != nil {
		return "", &exec.Error{Name: string(out), Err: err}
	}
	return path, nil
})

func clientPath(t *testing.T) string {
	t.Helper()
	path, err := client()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// script is a model that makes one call after another and then says done.
type script struct {
	dialect string
	calls   []abi.ToolCall
}

// reply makes the call that comes after so many results.
func (s *script) reply(q providertest.Query) providertest.Answer {
	results := 0
	for i := range q.Messages {
		if q.Messages[i].Role == abi.RoleTool {
			results++
		}
	}
	if results >= len(s.calls) || len(q.Tools) == 0 {
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done")}}
	}
	return providertest.Answer{Calls: []abi.ToolCall{s.calls[results]}}
}

func rig(t *testing.T, dialect string, plugins []phases.Plugin, calls []abi.ToolCall, edit func(*live.Config)) *live.Rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "live") //nolint:usetesting // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &script{dialect: dialect, calls: calls}
	cfg := live.Config{
		Dialect: dialect, Program: agents.Path(t, dialect), Client: clientPath(t), Dir: dir, Plugins: plugins, Reply: s.reply,
		Models: map[string]providertest.ModelSpec{
			"claude-sonnet-4-5": {}, "gpt-5": {Window: 400_000, MaxOutput: 128_000}, "gpt-4.1": {Window: 1_000_000, MaxOutput: 64_000, Thinking: providertest.ThinkingNone},
		},
	}
	if edit != nil {
		edit(&cfg)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := live.New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func run(t *testing.T, r *live.Rig, prompt string, more ...string) *live.Result {
	t.Helper()
	out, err := r.Run(t.Context(), prompt, more...)
	if err != nil {
		t.Fatal(err)
	}
	if t.Failed() || testing.Verbose() {
		t.Logf("exit %d\nstdout: %.2000s\nstderr: %.2000s", out.Exit, out.Stdout, out.Stderr)
	}
	return out
}

// sent is all that the model was sent.
func sent(r *live.Rig) string {
	var b strings.Builder
	for _, q := range r.Queries() {
		b.Write(q.Body)
		b.WriteString("\n")
	}
	return b.String()
}

func exists(r *live.Rig, name string) bool {
	_, err := os.Stat(filepath.Join(r.Project(), name))
	return err == nil
}

// native is a plugin in Go.
type native struct {
	d  abi.Description
	fn func(e *abi.Event) (*abi.Reply, error)
}

func (n *native) Describe() abi.Description { return n.d }

func (n *native) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) { return n.fn(e) }

func plugin(name string, mode abi.Mode, at abi.Phase, fn func(e *abi.Event) (*abi.Reply, error)) *native {
	return &native{d: abi.Description{Name: name, Version: "1", Hooks: []abi.Hook{{Phase: at, Mode: mode}}}, fn: fn}
}

func command(e *abi.Event) string {
	args, _ := e.Call.Arguments.(map[string]any)
	s, _ := args["command"].(string)
	return s
}

func guard(word string) *native {
	return plugin("guard", abi.ModeGate, abi.ToolGate, func(e *abi.Event) (*abi.Reply, error) {
		if !strings.Contains(command(e), word) {
			return nil, nil
		}
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "the guard forbids " + word}}, nil
	})
}

func rewriter(from, to string) *native {
	return plugin("writer", abi.ModeTransform, abi.BeforeToolExecute, func(e *abi.Event) (*abi.Reply, error) {
		args, ok := e.Call.Arguments.(map[string]any)
		if !ok || !strings.Contains(command(e), from) {
			return nil, nil
		}
		args["command"] = strings.ReplaceAll(command(e), from, to)
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectRewriteCall, Arguments: args, Note: "for the test"}}}, nil
	})
}

func redact(secret string) *native {
	return plugin("redact", abi.ModeTransform, abi.AfterToolExecute, func(e *abi.Event) (*abi.Reply, error) {
		content, found := make([]abi.ContentBlock, len(e.Result.Content)), false
		for i, c := range e.Result.Content {
			found = found || strings.Contains(c.Text, secret)
			c.Text = strings.ReplaceAll(c.Text, secret, "[redacted]")
			content[i] = c
		}
		if !found {
			return nil, nil
		}
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: content}}}, nil
	})
}

const secret = "xyzzy-4711-secret"

// flags let an agent run its tools.
func flags(dialect string) []string {
	if dialect == "claude" {
		return []string{"--allowedTools", "Bash,Read"}
	}
	return nil
}

// TestLive: one call is blocked, one rewritten, and a secret never reaches the model.
func TestLive(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"claude", "codex", "pi", "qwen", "opencode", "copilot"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			calls := []abi.ToolCall{
				live.Shell(dialect, "toolu_1", "touch forbidden.txt"), live.Shell(dialect, "toolu_2", "echo before > word.txt"), live.Shell(dialect, "toolu_3", "cat secret.txt"),
			}
			switch dialect {
			case "claude":
				calls = append(calls, abi.ToolCall{ID: "toolu_4", Name: "Read", Arguments: map[string]any{"file_path": "SECRET"}})
			case "pi":
				calls = append(calls, abi.ToolCall{ID: "toolu_4", Name: "read", Arguments: map[string]any{"path": "SECRET"}})
			case "codex", "qwen", "copilot", "opencode":
				calls = append(calls, live.Shell(dialect, "toolu_4", "cat secret.txt; exit 3"))
			}
			r := rig(t, dialect, []phases.Plugin{guard("forbidden"), rewriter("before", "after"), redact(secret)}, calls, nil)
			for _, c := range calls {
				args, _ := c.Arguments.(map[string]any)
				for k, v := range args {
					if v == "SECRET" {
						args[k] = filepath.Join(r.Project(), "secret.txt")
					}
				}
			}
			if err := os.WriteFile(filepath.Join(r.Project(), "secret.txt"), []byte("key = "+secret+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			run(t, r, "go", flags(dialect)...)
			all := sent(r)
			if exists(r, "forbidden.txt") || !strings.Contains(all, "the guard forbids forbidden") {
				t.Errorf("the call was not blocked, or the model was not given the reason")
			}
			want := "after\n"
			if dialect == "qwen" {
				want = "before\n" // it has no form for that
			}
			word, err := os.ReadFile(filepath.Join(r.Project(), "word.txt"))
			if err != nil || string(word) != want {
				t.Errorf("the call was not rewritten: %q, %v", word, err)
			}
			if strings.Contains(all, secret) || strings.Count(all, "[redacted]") < 2 {
				t.Errorf("the secret reached the model, or the results did not: %d", strings.Count(all, "[redacted]"))
			}
			if t.Failed() {
				dump(t, r)
			}
		})
	}
}

func dump(t *testing.T, r *live.Rig) {
	t.Helper()
	data, _ := os.ReadFile(r.Record())
	t.Logf("record:\n%s", data)
	for i, q := range r.Queries() {
		last, _ := json.Marshal(q.Messages[max(0, len(q.Messages)-2):])
		t.Logf("query %d: %.3000s", i, last)
	}
}
