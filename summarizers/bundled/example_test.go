package bundled_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/summarizers"
	"github.com/mortise-dev/mortise/summarizers/bundled"
)

// A program that embeds the host chooses a bundled policy by its name.
func ExampleSummarizers() {
	ctx := context.Background()
	h, err := host.New(host.Config{CacheDir: cacheDir()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	spec, err := bundled.Summarizers()
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := h.Load(ctx, spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := summarizers.Open(ctx, m, summarizers.Config{Use: summarizers.UseSummarize, Policy: "ledger"})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := policy.Summarize(ctx, &abi.SummarizeRequest{
		ThreadID: "t", BudgetTokens: 200,
		Messages: []abi.Message{
			{ID: "1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Why does the build fail?")}},
			{ID: "2", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c", Name: "read", Arguments: map[string]any{"path": "go.mod"}}}},
			{ID: "3", Role: abi.RoleTool, ToolCallID: "c", Content: []abi.ContentBlock{abi.Text(strings.Repeat("require example.com/m v1.0.0\n", 40) + "error: a module is missing")}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Text)
	// Output:
	// State after message m3
	//
	// ## Goal
	// - Request, m1: “Why does the build fail?”
	//
	// ## Last steps
	// - m2 read go.mod
	//
	// ## Files
	// - read go.mod (m2)
	//
	// ## Other names
	// - Paths: example.com/m
	// - Identifiers: v1.0.0
}
