package memstore_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// greeter is a runtime that answers at once.
type greeter struct{}

func (greeter) Run(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
	return mailbox.Result{Termination: "natural", Response: "hello, " + string(j.Request.Messages[0].Data)}, nil
}

// Two mailboxes share a store as two processes share a database: one takes requests,
// the other carries them out.
func ExampleNew() {
	ctx := context.Background()
	store := memstore.New()
	front, err := mailbox.New(ctx, mailbox.Config{Store: store, Runtime: greeter{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer front.Close(ctx)
	sub, err := front.SubmitBackground(ctx, mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("Ada")}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	worker, err := mailbox.New(ctx, mailbox.Config{Store: store, Runtime: greeter{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer worker.Close(ctx)
	if err := worker.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	d, err := front.Await(ctx, sub.Dispatch)
	fmt.Println(d.Status, d.Response, err)
	// Output: acked hello, Ada <nil>
}
