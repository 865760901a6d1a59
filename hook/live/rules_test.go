package live_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/live"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/phases"
)

// TestLive_ownRules: Claude Code applies its own permission rules to a rewritten command.
func TestLive_ownRules(t *testing.T) {
	t.Parallel()
	calls := []abi.ToolCall{live.Shell("claude", "toolu_1", "touch fine-1.txt"), live.Shell("claude", "toolu_2", "touch other.txt")}
	r := rig(t, "claude", []phases.Plugin{rewriter("fine", "denied")}, calls, nil)
	run(t, r, "go", "--allowedTools", "Bash", "--disallowedTools", "Bash(touch denied:*),Bash(touch denied-1.txt)")
	if exists(r, "denied-1.txt") || exists(r, "fine-1.txt") || !exists(r, "other.txt") {
		t.Errorf("denied-1 %v, fine-1 %v, other %v", exists(r, "denied-1.txt"), exists(r, "fine-1.txt"), exists(r, "other.txt"))
		dump(t, r)
	}
}

// TestLive_compactCodex: after an automatic compaction of Codex the names that its summary lost come back once.
func TestLive_compactCodex(t *testing.T) {
	t.Parallel()
	var calls []abi.ToolCall
	for i := range 6 {
		calls = append(calls, live.Shell("codex", fmt.Sprint("toolu_a", i), fmt.Sprintf("echo internal/widget%d/handler_%d.go; head -c 9000 /dev/zero | tr '\\0' 'x'", i, i)))
	}
	compacted := false
	r := rig(t, "codex", []phases.Plugin{everywhere()}, nil, func(c *live.Config) {
		c.Edit = func(p *hook.Program) { p.RepairTokens = 650 }
		c.Events = []string{"UserPromptSubmit", "PreToolUse", "PostToolUse", "PreCompact", "PostCompact", "SessionStart", "Stop"}
		first := &script{calls: calls}
		c.Reply = func(q providertest.Query) providertest.Answer {
			last := q.Messages[len(q.Messages)-1]
			switch {
			case strings.Contains(last.Text(), "CONTEXT CHECKPOINT COMPACTION") || strings.Contains(last.Text(), "handoff summary"):
				compacted = true
				return providertest.Answer{Content: []abi.ContentBlock{abi.Text("We did something with internal/widget0/handler_0.go.")}}
			case compacted:
				return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done")}}
			}
			return first.reply(q)
		}
	})
	config := filepath.Join(r.Home(), ".codex", "config.toml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, append([]byte("model_auto_compact_token_limit = 14000\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, r, "work on the widgets")
	capture(t, r, "codex")
	queries := r.Queries()
	last := string(queries[len(queries)-1].Body)
	if n := strings.Count(last, noteMark); !compacted || n != 1 || !strings.Contains(last, "internal/widget1/handler_1.go") {
		t.Errorf("compacted %v, %d notes", compacted, n)
		dump(t, r)
	}
}
