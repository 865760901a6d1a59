package natsstore_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// Two processes share a mailbox: what one submits, the other may carry out. Here they share a server that runs in
// this process; give the addresses of a cluster instead.
func Example() {
	err := servertest.With(func(url string) error { return share(context.Background(), url) })
	if err != nil {
		fmt.Println(err)
	}
	// Output: true request dispatch
}

func share(ctx context.Context, url string) error {
	one, err := natsstore.Open(ctx, natsstore.Config{URL: url, Name: "agents"})
	if err != nil {
		return err
	}
	defer one.Close(ctx)
	other, err := natsstore.Open(ctx, natsstore.Config{URL: url, Name: "agents"})
	if err != nil {
		return err
	}
	defer other.Close(ctx)
	submit, err := mailbox.NewQueue(mailbox.QueueConfig{Store: one})
	if err != nil {
		return err
	}
	if _, err := submit.Enqueue(ctx, newEntry("thread", "dispatch")); err != nil {
		return err
	}
	work, err := mailbox.NewQueue(mailbox.QueueConfig{Store: other})
	if err != nil {
		return err
	}
	taken, ok, err := work.Claim(ctx, "thread", claim("token"))
	if err != nil {
		return err
	}
	fmt.Println(ok, string(taken.Dispatch.Request))
	return nil
}
