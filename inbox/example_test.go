package inbox_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

// A run closes its box first, looks at what is left, and only then decides
// whether it is done.
func Example() {
	late := func(n abi.Notice) { fmt.Println("after the run:", n.TaskID) }
	box, err := inbox.New(inbox.Config{Fallback: late})
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

// A reader that keeps up with many senders takes all that there is.
func ExampleBox_RecvAll() {
	box, err := inbox.New(inbox.Config{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for round := range 2 {
		for i := range 2 {
			_ = box.Send(ctx, abi.Notice{Kind: abi.NoticeCustom, TaskID: fmt.Sprintf("bg_%d%d", round, i)})
		}
		all, err := box.RecvAll(ctx)
		if err != nil {
			panic(err)
		}
		for i := range all {
			fmt.Println(all[i].TaskID)
		}
	}
	// Output:
	// bg_00
	// bg_01
	// bg_10
	// bg_11
}
