package outboxstore_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/outboxstore"
)

// The end of a task is queued once, however often it is reported, and another process finds it. Here the server runs in this
// process; give the addresses of a cluster instead.
func ExampleNew() {
	err := servertest.With(func(url string) error {
		ctx := context.Background()
		mailbox, err := natsstore.Open(ctx, natsstore.Config{URL: url, Name: "agents"})
		if err != nil {
			return err
		}
		defer mailbox.Close(ctx)
		store, err := outboxstore.New(ctx, mailbox, outboxstore.Config{})
		if err != nil {
			return err
		}
		end := outbox.Change{Thread: "t", Task: "build", Record: []byte("done"), Data: []byte("the build is done"), Key: "build"}
		for range 2 {
			seq, err := store.Append(ctx, end)
			if err != nil {
				return err
			}
			fmt.Println("new:", seq != 0)
		}
		again, err := outboxstore.New(ctx, mailbox, outboxstore.Config{})
		if err != nil {
			return err
		}
		entries, err := again.Pending(ctx, "t", 0, 10)
		fmt.Printf("%s\n", entries[0].Data)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// new: true
	// new: false
	// the build is done
}
