package live_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/live"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/phases"
)

const (
	noteMark  = "Kept by mortise from before the compaction, verbatim."
	focusMark = "Keep these names exactly: "
)

// TestLive_compact: before a compaction of Claude Code the summarizer is asked to keep the names; what its summary lost
// comes back once, redacted as the results were, within the budget.
func TestLive_compact(t *testing.T) {
	t.Parallel()
	var calls []abi.ToolCall
	for i := range 6 {
		calls = append(calls, live.Shell("claude", fmt.Sprint("toolu_a", i), fmt.Sprintf("echo internal/widget%d/handler_%d.go uses computeFrobnication%d; echo %s", i, i, i, secret)))
	}
	after := []abi.ToolCall{live.Shell("claude", "toolu_b1", "echo again"), live.Shell("claude", "toolu_b2", "echo and again")}
	r := rig(t, "claude", []phases.Plugin{redact(secret), everywhere()}, nil, func(c *live.Config) {
		c.Edit = func(p *hook.Program) { p.RepairTokens = 650 }
		first, second := &script{calls: calls}, &script{calls: after}
		c.Reply = func(q providertest.Query) providertest.Answer {
			last := q.Messages[len(q.Messages)-1]
			body := string(q.Body)
			switch {
			case strings.Contains(last.Text(), "summary of the conversation") || len(q.Tools) == 0:
				return providertest.Answer{Content: []abi.ContentBlock{abi.Text("<summary>We did something with internal/widget0/handler_0.go.</summary>")}}
			case strings.Contains(body, "We did something with"):
				return second.reply(q)
			}
			return first.reply(q)
		}
	})
	more := flags("claude")
	out := run(t, r, "work on the widgets", more...)
	var result struct {
		Session string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(out.Stdout), &result); err != nil {
		t.Fatal(err)
	}
	run(t, r, "/compact", append([]string{"--resume", result.Session}, more...)...)
	before := len(r.Queries())
	run(t, r, "go on", append([]string{"--resume", result.Session}, more...)...)
	capture(t, r, "claude")
	focused, noted, last := 0, 0, ""
	for i, q := range r.Queries() {
		if i < before && strings.Contains(string(q.Body), focusMark) {
			focused++
		}
		noted, last = max(noted, strings.Count(string(q.Body), noteMark)), string(q.Body)
	}
	if focused == 0 {
		t.Error("no summarizer was asked to keep names")
	}
	if noted == 0 || noted > 2 || !strings.Contains(last, "internal/widget5/handler_5.go") {
		t.Errorf("the newest names came back in %d notes", noted)
	}
	notes := 0
	for _, part := range strings.Split(last, noteMark)[1:] {
		end := strings.Index(part, "Check before relying")
		notes += len(noteMark) + end + len("Check before relying on them.")
	}
	if tokens := int(float64(notes) / 3.7); tokens > 650 {
		t.Errorf("the notes have %d tokens", tokens)
	}
	for _, q := range r.Queries() {
		for _, m := range q.Messages {
			if _, note, ok := strings.Cut(m.Text(), noteMark); ok && strings.Contains(note, secret) {
				t.Error("a secret that was redacted came back in a note")
			}
		}
	}
	if t.Failed() {
		dump(t, r)
	}
}
