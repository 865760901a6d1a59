package natsstore_test

import (
	"context"
	"fmt"
	"os"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
)

// Two processes share a mailbox: what one submits, the other may carry out. Here they share a server that runs in
// this process; give the addresses of a cluster instead.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	server, err := startServer(options(dir))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.WaitForShutdown()
	defer server.Shutdown()
	if err := share(context.Background(), server.ClientURL()); err != nil {
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
