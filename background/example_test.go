package background_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
)

// A task reports to the thread that owns it, first progress, then its end.
func Example() {
	ctx := context.Background()
	m, err := background.New(background.Config{
		Deliver: func(_ context.Context, thread string, n abi.Notice) error {
			fmt.Println(thread, n.Kind, n.EventType, n.Payload, n.Result)
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	_, err = m.Spawn(ctx, background.Spec{
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
	_ = m.Close(ctx)
	// Output:
	// thread-1 custom progress half <nil>
	// thread-1 completed  <nil> 42 pages
}
