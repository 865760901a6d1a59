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
	for seq := uint64(0); ; {
		e, err := sub.Events.Next(ctx, seq)
		if errors.Is(err, mailbox.ErrEnd) {
			break
		}
		seq = e.Seq
		fmt.Println(e.Seq, e.Type, string(e.Data))
	}
	// Output:
	// 1 text you said: hello
	// 2 mailbox_settled acked
}

// What is queued is executed between Start and Stop. A client that lost its connection continues from the last event
// that it has.
func ExampleMailbox_Start() {
	ctx := context.Background()
	box, err := mailbox.New(ctx, mailbox.Config{Store: memstore.New(), Runtime: upper{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close(ctx)
	sub, err := box.SubmitBackground(ctx, mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("later")}}})
	fmt.Println("running:", sub.Running, err)
	if err := box.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	d, err := box.Await(ctx, sub.Dispatch)
	fmt.Println(d.Status, d.Termination, err)
	if err := box.Stop(ctx); err != nil {
		fmt.Println(err)
		return
	}
	feed, err := box.Attach(ctx, sub.Dispatch)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := feed.Next(ctx, 0)
	fmt.Println(e.Seq, e.Type, string(e.Data), err)
	// Output:
	// running: false <nil>
	// acked natural <nil>
	// 1 text you said: later <nil>
}

// A client that lost its connection reads on from another process, from the last number that it has.
func ExampleMailbox_Attach() {
	ctx := context.Background()
	store := memstore.New() // or one of the others, opened by each process
	worker, err := mailbox.New(ctx, mailbox.Config{Store: store, Runtime: upper{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer worker.Close(ctx)
	front, err := mailbox.New(ctx, mailbox.Config{Store: store, Runtime: upper{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer front.Close(ctx)
	sub, err := worker.Submit(ctx, mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("hello")}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	feed, err := front.Attach(ctx, sub.Dispatch)
	if err != nil {
		fmt.Println(err)
		return
	}
	var gap *mailbox.GapError
	for seq := uint64(0); ; {
		e, err := feed.Next(ctx, seq)
		switch {
		case errors.Is(err, mailbox.ErrEnd):
			return
		case errors.As(err, &gap): // what was in between is not kept any more
			seq = gap.Next
			continue
		case err != nil:
			fmt.Println(err)
			return
		}
		seq = e.Seq
		fmt.Println(e.Seq, e.Type, string(e.Data))
	}
	// Output:
	// 1 text you said: hello
	// 2 mailbox_settled acked
}
