package sessionstore_test

import (
	"context"
	"fmt"
	"os"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/store/pgstore"
	"github.com/mortise-dev/mortise/store/pgstore/sessionstore"
)

// One schema holds the mailbox and sessions. The URL comes from the environment; without it the example only says so.
func ExampleNew() {
	ctx := context.Background()
	store, err := pgstore.Open(ctx, pgstore.Config{URL: os.Getenv("MORTISE_EXAMPLE_POSTGRES"), Schema: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close(ctx)
	sessions, err := sessionstore.New(ctx, store)
	if err == nil {
		err = sessions.Append("t", abi.Message{ID: "m1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Mend the build.")}})
	}
	fmt.Println(err)
	// Output: pgstore: Config.URL is empty; give a URL such as postgres://user@host/database
}
