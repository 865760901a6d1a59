package pgstore_test

import (
	"context"
	"fmt"
	"os"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// The URL comes from the environment, so that the password is in no argument and no file of the program.
// Without it the example only says so.
func Example() {
	ctx := context.Background()
	store, err := pgstore.Open(ctx, pgstore.Config{URL: os.Getenv("MORTISE_EXAMPLE_POSTGRES"), Schema: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	head, err := store.Load(ctx, "a thread", mailbox.Need{})
	fmt.Println(head.Head.Queued, err, store.Close(ctx))
	// Output: pgstore: Config.URL is empty; give a URL such as postgres://user@host/database
}
