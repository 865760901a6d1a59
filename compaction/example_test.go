package compaction_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
)

// A plan says what a summary would stand for, and a marker shows the log with it.
func ExamplePlan() {
	text := func(s string) []abi.ContentBlock { return []abi.ContentBlock{abi.Text(s)} }
	log := []abi.Message{
		{ID: "1", Role: abi.RoleSystem, Content: text("You mend builds.")},
		{ID: "2", Role: abi.RoleUser, Content: text("Why does the build fail?")},
		{ID: "3", Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c1", Name: "read_file", Arguments: map[string]any{"path": "go.mod"}}}},
		{ID: "4", Role: abi.RoleTool, ToolCallID: "c1", Content: text(strings.Repeat("module ", 2000))},
		{ID: "5", Role: abi.RoleAssistant, Content: text("A module is missing.")},
		{ID: "6", Role: abi.RoleUser, Content: text("Add it.")},
	}
	r, ok := compaction.Plan(log, nil, compaction.Policy{KeepRecentMessages: 2, MinRangeTokens: 1024})
	fmt.Println(ok, "from", r.FromID, "to", r.ToID, "read", r.ReadFiles)
	marker := &compaction.Marker{ID: "m1", FromID: r.FromID, ToID: r.ToID, Summary: "The build lacks a module."}
	for _, m := range compaction.View(log, marker) {
		fmt.Println(m.ID, m.Role)
	}
	// Output:
	// true from 2 to 4 read [go.mod]
	// 1 system
	// summary/m1 system
	// 5 assistant
	// 6 user
}

// The run goes on while a summarizer works in the background, and swaps its
// summary in when the notice comes.
func ExampleCompactor() {
	ctx := context.Background()
	notices := make(chan abi.Notice, 8)
	tasks, err := background.New(background.Config{
		Deliver: func(_ context.Context, _ string, n abi.Notice) error { notices <- n; return nil },
	})
	if err != nil {
		panic(err)
	}
	c, err := compaction.New(compaction.Config{
		Policy:     compaction.Policy{WindowTokens: 8_000, KeepRecentTokens: 500},
		Summarizer: says("The user asked for three reports."),
		Spawn:      tasks.Housekeep,
		Observe:    func(e compaction.Event) { fmt.Println(e.Kind) },
	})
	if err != nil {
		panic(err)
	}
	var log []abi.Message
	for i := range 3 {
		log = append(log,
			user(fmt.Sprintf("u%d", i), "Write a report."), assistant(fmt.Sprintf("a%d", i), strings.Repeat("report ", 2000)))
	}
	log = append(log, user("u3", "Thank you."))
	fmt.Println("started:", c.Consider(ctx, "thread-1", log), "messages:", len(c.View("thread-1", log)))
	for range 2 { // the result, and the end of the task
		c.Consume("thread-1", log, <-notices)
	}
	fmt.Println("messages:", len(c.View("thread-1", log)))
	c.Undo("thread-1")
	fmt.Println("messages:", len(c.View("thread-1", log)))
	_ = tasks.Close(ctx)
	// Output:
	// admission
	// started
	// started: true messages: 7
	// swapped
	// messages: 3
	// undone
	// messages: 7
}
