package inbox_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

// A reader closes its box first, looks at what is left, and only then decides
// whether it is done: what comes later stays with its sender.
func ExampleBox() {
	box := inbox.NewBox(0, nil)
	ctx := context.Background()
	_ = box.Send(ctx, abi.Notice{Kind: abi.NoticeCompleted, TaskID: "bg_1"})
	for _, n := range box.Close() {
		fmt.Println("left in the box:", n.TaskID)
	}
	fmt.Println(box.Send(ctx, abi.Notice{Kind: abi.NoticeCompleted, TaskID: "bg_2"}))
	// Output:
	// left in the box: bg_1
	// inbox: closed
}
