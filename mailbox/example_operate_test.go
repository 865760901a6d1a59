package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// fixed is a runtime that fails for good until an operator has fixed what it needs.
type fixed struct{ works atomic.Bool }

func (r *fixed) Run(context.Context, *mailbox.Job) (mailbox.Result, error) {
	if !r.works.Load() {
		return mailbox.Result{}, fmt.Errorf("no such model: %w", mailbox.ErrPermanent)
	}
	return mailbox.Result{Termination: "natural"}, nil
}

// What failed for good is kept as a dead letter, until an operator replays or discards it.
func ExampleMailbox_Replay() {
	ctx := context.Background()
	runtime := &fixed{}
	box, err := mailbox.New(ctx, mailbox.Config{Store: memstore.New(), Runtime: runtime})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close(ctx)
	if err := box.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for _, thread := range []string{"wanted", "given up"} {
		sub, err := box.SubmitBackground(ctx, mailbox.Request{Thread: thread, Messages: []mailbox.Input{{Data: []byte("hello")}}})
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err := box.Await(ctx, sub.Dispatch); err != nil {
			fmt.Println(err)
			return
		}
	}
	runtime.works.Store(true)
	dead, err := box.DeadLetters(ctx, mailbox.Dispatch{}, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range dead {
		fmt.Println(d.Thread, d.Status, d.LastError)
		if d.Thread != "wanted" {
			fmt.Println("discarded:", box.Discard(ctx, d.ID))
			continue
		}
		again, err := box.Replay(ctx, d.ID)
		if err != nil {
			fmt.Println(err)
			return
		}
		d, err := box.Await(ctx, again.Dispatch)
		fmt.Println("replayed:", d.Status, err)
	}
	dead, err = box.DeadLetters(ctx, mailbox.Dispatch{}, 10)
	fmt.Println("left:", len(dead), err)
	// Output:
	// wanted dead_letter no such model: permanent failure
	// replayed: acked <nil>
	// given up dead_letter no such model: permanent failure
	// discarded: <nil>
	// left: 0 <nil>
}

// patient is a runtime that works until it is asked to stop.
type patient struct{ began chan string }

func (r patient) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	r.began <- j.Request.Thread
	<-ctx.Done()
	return mailbox.Result{}, context.Cause(ctx)
}

// One run at a time, and one is cancelled: what may not begin now is refused, and what
// was queued begins when there is room.
func ExampleMailbox_Cancel() {
	ctx := context.Background()
	runtime := patient{began: make(chan string, 1)}
	box, err := mailbox.New(ctx, mailbox.Config{Store: memstore.New(), Runtime: runtime, Limits: mailbox.Limits{Claims: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close(ctx)
	if err := box.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	request := func(thread string) mailbox.Request {
		return mailbox.Request{Thread: thread, Messages: []mailbox.Input{{Data: []byte("hello")}}}
	}
	first, err := box.Submit(ctx, request("first"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("runs:", <-runtime.began)
	_, err = box.Submit(ctx, request("second"))
	fmt.Println("full:", errors.Is(err, mailbox.ErrFull))
	third, err := box.SubmitBackground(ctx, request("third"))
	fmt.Println("queued:", !third.Running, err)

	found, err := box.Cancel(ctx, first.Dispatch)
	fmt.Println("cancelled:", found, err)
	d, err := box.Await(ctx, first.Dispatch)
	fmt.Println(d.Thread, d.Status, err)
	fmt.Println("runs:", <-runtime.began)
	found, err = box.CancelThread(ctx, "third")
	fmt.Println("cancelled:", found, err)
	// Output:
	// runs: first
	// full: true
	// queued: true <nil>
	// cancelled: true <nil>
	// first cancelled <nil>
	// runs: third
	// cancelled: true <nil>
}
