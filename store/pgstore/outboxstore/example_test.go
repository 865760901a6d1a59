package outboxstore_test

import (
	"context"
	"fmt"
	"os"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/store/pgstore"
	"github.com/mortise-dev/mortise/store/pgstore/outboxstore"
)

// One schema holds the mailbox and the outbox. The URL comes from the environment; without it the example only says so.
func ExampleNew() {
	ctx := context.Background()
	store, err := pgstore.Open(ctx, pgstore.Config{URL: os.Getenv("MORTISE_EXAMPLE_POSTGRES"), Schema: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close(ctx)
	box, err := outboxstore.New(ctx, store)
	if err == nil {
		_, err = box.Append(ctx, outbox.Change{Thread: "t", Data: []byte("the build is done"), Key: "build"})
	}
	fmt.Println(err)
	// Output: pgstore: Config.URL is empty; give a URL such as postgres://user@host/database
}
