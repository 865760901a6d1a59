package mailbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// upper is a runtime that answers at once.
type upper struct{}

func (upper) Run(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
	j.Emit("text", []byte("you said: "+string(j.Request.Messages[0].Data)))
	return mailbox.Result{Termination: "natural"}, nil
}

// A request in the foreground comes with the events of its run.
func ExampleMailbox_Submit() {
	ctx := context.Background()
	box, err := mailbox.New(ctx, mailbox.Config{Store: memstore.New(), Runtime: upper{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close(ctx)
	sub, err := box.Submit(ctx, mailbox.Request{
		Thread: "inbox", Messages: []mailbox.Input{{Data: []byte("hello")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for seq := uint64(0); ; seq++ {
		e, err := sub.Events.Next(ctx, seq)
		if errors.Is(err, mailbox.ErrEnd) {
			break
		}
		fmt.Println(e.Seq, e.Type, string(e.Data))
	}
	// Output:
	// 1 text you said: hello
	// 2 mailbox_settled acked
}
