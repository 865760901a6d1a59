package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// approval is a runtime whose runs wait until a user has decided about "deploy", and then about "announce". The decisions are in
// the thread's image.
type approval struct{}

func (approval) waits(image []byte) string {
	return []string{"deploy", "announce", ""}[strings.Count(string(image), "\n")]
}

func (a approval) Judge(_ string, image []byte, list []mailbox.Decision) ([]mailbox.Decision, error) {
	for _, d := range list {
		if d.Call != a.waits(image) {
			return list, fmt.Errorf("%w: %q does not wait", mailbox.ErrRefused, d.Call)
		}
	}
	return list, nil
}

func (a approval) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	thread, image, err := j.Load(ctx)
	if err != nil {
		return mailbox.Result{}, err
	}
	_, refused := a.Judge(j.Run.ID, image, j.Request.Decisions)
	if refused == nil {
		for _, d := range j.Request.Decisions {
			image = fmt.Appendf(image, "%s: %s\n", d.Call, d.Data)
		}
		if err := j.Commit(ctx, mailbox.Commit{ID: j.Dispatch.Instance, From: thread.Messages, Image: image}); err != nil {
			return mailbox.Result{}, err
		}
	}
	if call := a.waits(image); call != "" {
		return mailbox.Result{Status: mailbox.RunWaiting, Wait: call}, refused
	}
	return mailbox.Result{Termination: "natural", Response: string(image)}, refused
}

// A decision answers what the run waits for. One that comes twice, or too early, is refused, and the run waits on.
func ExampleMailbox_Decide() {
	ctx := context.Background()
	box, err := mailbox.New(ctx, mailbox.Config{Store: memstore.New(), Runtime: approval{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close(ctx)
	if err := box.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	sub, err := box.SubmitBackground(ctx, mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("ship it")}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := box.Await(ctx, sub.Dispatch); err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []string{"announce", "deploy", "deploy", "announce"} {
		ok, err := box.Decide(ctx, sub.Run, mailbox.Decision{Call: call, Data: []byte("yes")})
		fmt.Println(call, ok, errors.Is(err, mailbox.ErrRefused))
		list, err := box.Dispatches(ctx, mailbox.DispatchQuery{Thread: "t", Limit: 10})
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err := box.Await(ctx, list[len(list)-1].ID); err != nil {
			fmt.Println(err)
			return
		}
	}
	run, _, err := box.Run(ctx, sub.Run)
	fmt.Printf("%s %q %v\n", run.Status, run.Response, err)
	// Output:
	// announce false true
	// deploy true false
	// deploy false true
	// announce true false
	// done "deploy: yes\nannounce: yes\n" <nil>
}

// A thread can be dropped when no process holds it.
func ExampleMailbox_Drop() {
	ctx := context.Background()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	box, err := mailbox.New(ctx, mailbox.Config{
		Store: memstore.New(), Runtime: approval{}, Now: func() time.Time { return now }, Lease: mailbox.Lease{Skew: -1},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close(ctx)
	_, err = box.SubmitBackground(ctx, mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("hello")}}})
	fmt.Println(err, box.Drop(ctx, "t"))
	thread, err := box.Thread(ctx, "t")
	fmt.Println(thread.Queued, err)
	// Output:
	// <nil> <nil>
	// 0 <nil>
}
