package summarizers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/summarizers"
)

// TestChain_masks: a link may decline or mask; an answer of two kinds, or of a kind that was not asked for, has failed, and the
// next link writes.
func TestChain_masks(t *testing.T) {
	t.Parallel()
	mask := abi.Mask{MessageID: "r", Reason: abi.MaskSuperseded}
	r := &abi.SummarizeRequest{BudgetTokens: 50, Masking: &abi.Masking{}, Messages: []abi.Message{
		{ID: "a", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c", Name: "read"}}},
		{ID: "r", Role: abi.RoleTool, ToolCallID: "c", Content: []abi.ContentBlock{abi.Text(strings.Repeat("line ", 100))}},
	}}
	without := *r
	without.Masking = nil
	next := summarizers.Link{Name: "next", Summarizer: scripted(func(context.Context) (*abi.Summary, error) { return &abi.Summary{Text: "next"}, nil })}
	for name, c := range map[string]struct {
		request *abi.SummarizeRequest
		answer  abi.Summary
		masks   bool
	}{
		"masks":             {r, abi.Summary{Masks: []abi.Mask{mask}}, true},
		"declines":          {r, abi.Summary{Declined: "no"}, false},
		"not asked":         {&without, abi.Summary{Masks: []abi.Mask{mask}}, false},
		"masks and writes":  {r, abi.Summary{Text: "short", Masks: []abi.Mask{mask}}, false},
		"masks, declines":   {r, abi.Summary{Declined: "no", Masks: []abi.Mask{mask}}, false},
		"writes, declines":  {r, abi.Summary{Text: "short", Declined: "no"}, false},
		"masks another one": {r, abi.Summary{Masks: []abi.Mask{{MessageID: "x", Reason: abi.MaskSuperseded}}}, false},
	} {
		chain, err := summarizers.NewChain(summarizers.Link{Name: "first", Summarizer: scripted(func(context.Context) (*abi.Summary, error) { return &c.answer, nil })}, next)
		if err != nil {
			t.Fatal(err)
		}
		s, err := chain.Summarize(t.Context(), c.request)
		if err != nil || (len(s.Masks) > 0) != c.masks || !c.masks && s.Text != "next" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// TestPolicy_masks: the bundled gc masks what is dead, in which no fact is lost, and declines where that is not enough.
func TestPolicy_masks(t *testing.T) {
	t.Parallel()
	p, err := summarizers.Open(t.Context(), load(t, hosttest.Native, "summarizers"), summarizers.Config{Use: summarizers.UseSummarize, Policy: "gc"})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("the path is /srv/app/one.go\n", 200)
	r := &abi.SummarizeRequest{BudgetTokens: 300, Masking: &abi.Masking{ViewTokens: 9000, GoalTokens: 8500}, Messages: []abi.Message{
		{ID: "u", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Read it twice.")}},
		{ID: "a", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c", Name: "read", Arguments: map[string]any{"path": "/srv/app/one.go"}}}},
		{ID: "r", Role: abi.RoleTool, ToolCallID: "c", Content: []abi.ContentBlock{abi.Text(text)}},
		{ID: "b", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "d", Name: "read", Arguments: map[string]any{"path": "/srv/app/one.go"}}}},
		{ID: "s", Role: abi.RoleTool, ToolCallID: "d", Content: []abi.ContentBlock{abi.Text(text)}},
	}}
	s, err := p.Summarize(t.Context(), r)
	if err != nil || len(s.Masks) != 1 || s.Masks[0] != (abi.Mask{MessageID: "r", Reason: abi.MaskSuperseded, By: "s"}) {
		t.Fatalf("%+v, %v", s, err)
	}
	if q := compaction.NewScorer().Score(r.Messages, nil, compaction.Remains(r, s)); q.Overall != 1 {
		t.Errorf("%+v survives", q)
	}
	r.Masking.GoalTokens = 1000
	if s, err := p.Summarize(t.Context(), r); err != nil || s.Declined == "" {
		t.Errorf("%+v, %v", s, err)
	}
}
