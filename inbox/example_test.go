package inbox_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

// A run closes its box first, looks at what is left, and only then decides
// whether it is done.
func ExampleBox() {
	late := func(n abi.Notice) { fmt.Println("after the run:", n.TaskID) }
	box, err := inbox.NewBox(inbox.BoxConfig{Fallback: late})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	_ = box.Send(ctx, abi.Notice{Kind: abi.NoticeCompleted, TaskID: "bg_1"})
	for _, n := range box.Close() {
		fmt.Println("left in the box:", n.TaskID)
	}
	_ = box.Send(ctx, abi.Notice{Kind: abi.NoticeCompleted, TaskID: "bg_2"})
	// Output:
	// left in the box: bg_1
	// after the run: bg_2
}
