package background_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// A task reports to the thread that owns it, first progress, then its end.
func Example() {
	ctx := context.Background()
	box := expect(inbox.New(ctx, inbox.Config{Store: memstore.New()}))
	m := expect(background.New(background.Config{Ledger: box}))
	_, err := m.Spawn(ctx, background.Spec{
		Thread: "thread-1", Type: "build", Name: "build", Description: "builds the docs",
		Body: func(_ context.Context, t *background.Task) (any, error) {
			t.Emit("progress", "half")
			return "42 pages", nil
		},
	})
	if err != nil {
		panic(err)
	}
	_ = m.Wait(ctx, "thread-1")
	for _, n := range expect(box.Take(ctx, "thread-1")).All() {
		fmt.Println(n.Kind, n.EventType, n.Payload, n.Result)
	}
	_ = m.Close(ctx)
	_ = box.Close(ctx)
	// Output:
	// custom progress half <nil>
	// completed  <nil> 42 pages
}

// expect returns what cannot fail here.
func expect[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A sub-agent has an inbox of its own; who spawned it sends messages to it.
func ExampleManager_SpawnAgent() {
	ctx := context.Background()
	own := expect(inbox.New(ctx, inbox.Config{Store: memstore.New()}))
	m := expect(background.New(background.Config{Ledger: own}))
	id, err := m.SpawnAgent(ctx, background.Spec{Thread: "thread-1", Name: "critic"},
		func(ctx context.Context, _ *background.Task, box *inbox.Box) (any, error) {
			n, err := box.Recv(ctx)
			return n.Payload, err
		})
	if err != nil {
		panic(err)
	}
	_ = m.SendMessage(ctx, id, "thread-1", "author", "what do you think?")
	_ = m.Wait(ctx, "thread-1")
	for _, n := range expect(own.Take(ctx, "thread-1")).All() {
		fmt.Println(n.Kind, n.Result)
	}
	_ = m.Close(ctx)
	_ = own.Close(ctx)
	// Output:
	// completed map[content:what do you think? from:author]
}

// The tools with which a model looks after its tasks.
func ExampleManager_Tools() {
	ctx := context.Background()
	box := expect(inbox.New(ctx, inbox.Config{Store: memstore.New()}))
	m := expect(background.New(background.Config{Ledger: box, NewID: func() string { return "bg_0" }}))
	tools, err := m.Tools(background.ToolsConfig{Thread: "thread-1"})
	if err != nil {
		panic(err)
	}
	_, err = m.Spawn(ctx, background.Spec{
		Thread: "thread-1", Type: "build",
		Body: func(context.Context, *background.Task) (any, error) { return "42 pages", nil },
	})
	if err != nil {
		panic(err)
	}
	result, _ := tools.CallTool(ctx, abi.ToolCall{Name: background.ToolWaitTask, Arguments: map[string]any{"task_id": "bg_0"}})
	fmt.Println(result.Content[0].Text)
	_ = m.Close(ctx)
	_ = box.Close(ctx)
	// Output:
	// task_id: bg_0
	// state: completed
	//
	// 42 pages
}
