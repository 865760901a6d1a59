package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// narrow is a model whose provider refuses what is larger than its window, in bytes of
// text.
type narrow struct {
	window   int
	requests []llm.Request
	refused  int
	answers  []abi.Message
}

func (n *narrow) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	n.requests = append(n.requests, r)
	if size := textSize(r.Messages); size > n.window {
		n.refused++
		return nil, &llm.Error{Kind: llm.KindContextOverflow, Message: fmt.Sprintf("%d is too much", size)}
	}
	m := says("fine")
	if len(n.answers) > 0 {
		m, n.answers = n.answers[0], n.answers[1:]
	}
	return &abi.Response{Message: m}, nil
}

func textSize(messages []abi.Message) int {
	n := 0
	for i := range messages {
		n += len(messages[i].Text())
	}
	return n
}

// rounds is a conversation of n rounds with a call each, of about size bytes.
func rounds(n, size int) []abi.Message {
	var out []abi.Message
	for i := range n {
		id := fmt.Sprint("old", i)
		answer := says("", calls(id, "echo", "x"))
		out = append(out, user(fmt.Sprint("question ", i)), answer,
			abi.Message{Role: abi.RoleTool, ToolCallID: id, Content: []abi.ContentBlock{abi.Text(strings.Repeat("word ", size/5))}}, says(fmt.Sprint("answer ", i)))
	}
	return out
}

// compactor is a real one that never gets to write a summary.
func compactor(t *testing.T, window int64, observe func(compaction.Event)) *compaction.Compactor {
	t.Helper()
	c, err := compaction.New(compaction.Config{
		Policy: compaction.Policy{WindowTokens: window}, Observe: observe,
		Summarizer: noSummary{},
		Spawn: func(context.Context, string, string, string, string, func(context.Context) error) error {
			return nil // it is never executed
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type noSummary struct{}

func (noSummary) Summarize(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
	return nil, context.Canceled
}

// TestContextOverflow: a refused request is cut at once, with calls and results in
// pairs, pinned messages and the user's newest, and asked once more.
func TestContextOverflow(t *testing.T) {
	t.Parallel()
	pinned := user("never forget this")
	pinned.Pinned = true
	for name, c := range map[string]struct {
		compactor bool
		window    int
		input     []abi.Message
		says      string
	}{
		"with a compactor":       {true, 30_000, append([]abi.Message{pinned}, rounds(20, 2500)...), ""},
		"without":                {false, 30_000, append([]abi.Message{pinned}, rounds(20, 2500)...), ""},
		"once is all there is":   {true, 100, append([]abi.Message{pinned}, rounds(20, 2500)...), "also after it was cut from"},
		"nothing can be cut off": {false, 1, nil, "nothing can be left out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &narrow{window: c.window}
			cfg := agent.Config{Profile: agent.Profile{Model: m, SystemPrompt: "be brief"}}
			var told []compaction.Event
			if c.compactor {
				cfg.Compactor = compactor(t, 1_000_000, func(e compaction.Event) { told = append(told, e) })
			}
			b := newBench(t, nil, cfg)
			r, err := b.agent.Run(t.Context(), request(append(slices.Clone(c.input), user("go"))...))
			checkEvents(t, b.events)
			if got := len(b.agent.Thread("t").Messages()); got < len(c.input)+1 {
				t.Errorf("the log was cut to %d messages", got)
			}
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "is too much") || r.Termination.Type != agent.Failed {
					t.Errorf("result %+v, error %v", r, err)
				}
				return
			}
			if err != nil || len(m.requests) != 2 || m.refused != 1 || r.Response != "fine" {
				t.Fatalf("%d requests, %d refused, result %+v, error %v", len(m.requests), m.refused, r, err)
			}
			second := m.requests[1].Messages
			if err := phases.CheckStructure(second); err != nil {
				t.Error(err)
			}
			if !slices.ContainsFunc(second, func(m abi.Message) bool { return m.Pinned && m.Text() == pinned.Text() }) ||
				second[0].Text() != "be brief" || second[len(second)-1].Text() != "go" {
				t.Errorf("the second request has %q", texts(second))
			}
			if c.compactor && !slices.ContainsFunc(told, func(e compaction.Event) bool { return e.Kind == compaction.EventFallback && e.PostTokens < e.PreTokens }) {
				t.Errorf("told %+v", told)
			}
		})
	}
}

// TestOverflowIsRemembered: after a refusal the next requests are cut before they are
// sent, and begin alike.
func TestOverflowIsRemembered(t *testing.T) {
	t.Parallel()
	var answers []abi.Message
	for i := range 12 {
		answers = append(answers, says("", calls(fmt.Sprint("new", i), "echo", strings.Repeat("word ", 500))))
	}
	m := &narrow{window: 30_000, answers: answers}
	told := 0
	b := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: m}, Compactor: compactor(t, 1_000_000, func(e compaction.Event) {
		if e.Kind == compaction.EventFallback {
			told++
		}
	})})
	mustRun(t, b, request(append(rounds(20, 2500), user("go"))...))
	// What was refused is above the window, and so may be what is a little less.
	if m.refused > 2 || len(m.requests) != 13+m.refused {
		t.Errorf("%d of %d requests were refused", m.refused, len(m.requests))
	}
	changes := 0
	for i := 2; i < len(m.requests); i++ {
		before, now := m.requests[i-1].Messages, m.requests[i].Messages
		if err := phases.CheckStructure(now); err != nil {
			t.Error(err)
		}
		if !slices.EqualFunc(before, now[:min(len(before), len(now))], func(a, b abi.Message) bool { return a.ID == b.ID && a.Text() == b.Text() }) {
			changes++
		}
	}
	if changes > 3 || told != changes+1 {
		t.Errorf("the beginning of the requests changed %d times, and %d cuts were reported", changes, told)
	}
}

// TestCutIsNotKeptAcrossAnEdit: what a plugin hides after a cut is hidden from the
// model too.
func TestCutIsNotKeptAcrossAnEdit(t *testing.T) {
	t.Parallel()
	m := &narrow{window: 30_000, answers: []abi.Message{says("", calls("c1", "echo", "x"))}}
	hide := &hook{name: "hide", phase: abi.StepStart, mode: abi.ModeTransform, view: abi.ViewAll, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		if e.Step != 2 {
			return nil, nil
		}
		for _, m := range e.Messages {
			if m.Text() == "answer 19" {
				return effect(abi.Effect{Type: abi.EffectMaskMessage, MessageID: m.ID, Text: "hidden"}), nil
			}
		}
		return nil, nil
	}}
	b := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: m}}, hide)
	mustRun(t, b, request(append(rounds(20, 2500), user("go"))...))
	if n := len(m.requests); n != 3 {
		t.Fatalf("%d requests", n)
	}
	for i, want := range map[int]bool{1: true, 2: false} {
		if got := strings.Contains(strings.Join(texts(m.requests[i].Messages), "\n"), "answer 19"); got != want {
			t.Errorf("request %d holds what is hidden: %v", i, got)
		}
	}
}
