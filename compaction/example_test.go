package compaction_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// A plan is what a summary would replace, and a marker shows the log with it.
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

// The run continues while a summarizer works in the background, and swaps its summary in when the
// notification of it arrives.
func ExampleCompactor() {
	ctx, log := context.Background(), []abi.Message{user("u1", "Write a report."), assistant("a1", strings.Repeat("report ", 5300)), user("u2", "Thanks.")}
	box := expect(inbox.New(ctx, inbox.Config{Store: memstore.New()}))
	defer box.Close(ctx)
	tasks := expect(background.New(background.Config{Ledger: box}))
	defer tasks.Close(ctx)
	c := expect(compaction.New(compaction.Config{
		Policy:     compaction.Policy{WindowTokens: 8_000, KeepRecentTokens: 1, KeepRecentMessages: 1},
		Summarizer: compaction.Ledger{}, // needs no model
		Spawn:      tasks.Housekeep,
		Observe:    func(e compaction.Event) { fmt.Println(e.Kind) },
	}))
	fmt.Println("started:", c.Consider(ctx, "thread-1", log), "messages:", len(c.View("thread-1", log)))
	expect(0, tasks.Wait(ctx, "thread-1"))
	for _, n := range expect(box.Take(ctx, "thread-1")).All() {
		c.Consume("thread-1", log, n) // its task has ended
	}
	fmt.Println("messages:", len(c.View("thread-1", log)))
	c.Undo("thread-1")
	fmt.Println("messages:", len(c.View("thread-1", log)))
	// Output:
	// admission
	// started
	// started: true messages: 3
	// swapped
	// messages: 2
	// undone
	// messages: 3
}

// A process ends with a summary that no run has read. The next one, on the same
// store, swaps it in.
func ExampleStore() {
	ctx := context.Background()
	store := compaction.NewMemory() // thread.On keeps it in a store
	summarizer := says("The user asked for three reports.")
	process := func() (*compaction.Compactor, func()) {
		var task func(context.Context) error
		c, err := compaction.New(compaction.Config{
			Policy: compaction.Policy{WindowTokens: 8_000, KeepRecentTokens: 500}, Summarizer: summarizer, Store: store,
			Spawn: func(_ context.Context, _, _, _, _ string, body func(context.Context) error) error {
				task = body
				return nil
			},
			Observe: func(e compaction.Event) { fmt.Println(strings.TrimSpace(string(e.Kind) + " " + e.Reason)) },
		})
		if err != nil {
			panic(err)
		}
		return c, func() { _ = task(ctx) }
	}
	var log []abi.Message
	for i := range 3 {
		log = append(log,
			user(fmt.Sprintf("u%d", i), "Write a report."), assistant(fmt.Sprintf("a%d", i), strings.Repeat("report ", 2000)))
	}
	log = append(log, user("u3", "Thank you."))

	first, run := process()
	first.Consider(ctx, "thread-1", log)
	run() // and here the process ends

	second, _ := process()
	fmt.Println("messages:", len(second.View("thread-1", log)))
	// Output:
	// admission It saves about 2834 of 6046 tokens: 5668 in 20 requests for 3410 now, in tokens of fresh input.
	// started
	// recovered attempt 1 was under way when its process ended; its summary is there and is swapped in
	// swapped
	// messages: 3
}

// Two threads are over their threshold, and one may be compacted at a time.
func ExampleLimiter() {
	limiter := compaction.NewLimiter(1)
	c, err := compaction.New(compaction.Config{
		Policy: compaction.Policy{WindowTokens: 8_000, KeepRecentTokens: 1}, Summarizer: says("short"), Limiter: limiter,
		Spawn: func(context.Context, string, string, string, string, func(context.Context) error) error { return nil },
		Observe: func(e compaction.Event) {
			if e.Decision != nil {
				fmt.Println(e.Thread, e.Decision.Reason)
			}
		},
	})
	if err != nil {
		panic(err)
	}
	log := []abi.Message{assistant("a", strings.Repeat("report ", 20_000)), assistant("b", "Done."), user("u", "Thank you.")}
	c.Consider(context.Background(), "thread-1", log)
	c.Consider(context.Background(), "thread-2", log)
	fmt.Println(limiter.Taken(), "place is taken")
	// Output:
	// thread-1 allowed
	// thread-2 queue_saturated
	// 1 place is taken
}

// The ledger needs no model and keeps within its budget.
func ExampleLedger() {
	s, err := compaction.Ledger{}.Summarize(context.Background(), &abi.SummarizeRequest{
		Messages: []abi.Message{user("u", "Fix the build."), assistant("a", "The module is missing; I add it.")}, BudgetTokens: 200,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Text)
	// Output:
	// State after message m2
	//
	// ## Said, word for word
	// - m1 user: Fix the build.
	// - m2 assistant: The module is missing; I add it.
}
