package summarizers

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/guest"
)

// probe asks a guest that takes no requests yet for an answer to a sample, and returns why
// compaction could not use it.
func (p *Policy) probe(ctx context.Context, g *guest.Guest) (err error) {
	if p.cfg.Use == UseSummarize {
		err = p.probeSummary(ctx, g)
	} else {
		err = p.probeDecision(ctx, g)
	}
	if err != nil {
		return fmt.Errorf("summarizers: module %q: %s fails on the built-in sample: %w", g.Module(), p.cfg.Use, err)
	}
	return nil
}

func (p *Policy) probeSummary(ctx context.Context, g *guest.Guest) error {
	r := sample()
	s, err := p.summarize(ctx, g, r)
	if err != nil {
		return err
	}
	return check(r, s)
}

func (p *Policy) probeDecision(ctx context.Context, g *guest.Guest) error {
	tokens := int64(130_000)
	d, err := p.decide(ctx, g, &abi.AdmitRequest{
		ThreadID: "sample", NowMS: 1_767_225_600_000, TokensBefore: &tokens, RangeTokens: 90_000,
		ThresholdTokens: 120_000, WindowTokens: 200_000, MaxAttempts: 100, CooldownMS: 60_000,
	})
	if err != nil {
		return err
	}
	return compaction.CheckDecision(d)
}

// sampleRounds is how many requests, calls and answers a sample has.
const sampleRounds = 8

// sample is a conversation with what summarizers look for: wishes, files, a failing command and
// answers, some 10 KB.
func sample() *abi.SummarizeRequest {
	r := &abi.SummarizeRequest{ThreadID: "sample", BudgetTokens: 1000}
	add := func(m abi.Message) {
		m.ID = fmt.Sprintf("s%d", len(r.Messages))
		r.Messages = append(r.Messages, m)
	}
	for i := range sampleRounds {
		call, file := fmt.Sprintf("call_%d", i), fmt.Sprintf("services/billing/retry_%d.go", i)
		add(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(
			fmt.Sprintf("Request %d: make %s retry at most %d times, and keep the tests as they are. ", i, file, i+2) +
				strings.Repeat("A failed payment must never be sent twice. ", 6))}})
		add(abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{
			ID: call, Name: "bash", Arguments: map[string]any{"command": "go test ./services/billing -run Retry"},
		}}})
		add(abi.Message{Role: abi.RoleTool, ToolCallID: call, Content: []abi.ContentBlock{abi.Text(
			fmt.Sprintf("--- FAIL: TestRetry%d\n    %s:%d: got 3 attempts, want %d\n", i, file, 40+i, i+2) +
				strings.Repeat("ok  example.org/services/billing/ledger 0.012s\n", 8))}})
		add(abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text(
			fmt.Sprintf("I changed %s: the loop counted the first attempt as a retry. ", file) + strings.Repeat("The test passes now. ", 8))}})
	}
	return r
}
