package recordstore_test

import (
	"context"
	"fmt"
	"os"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/pgstore"
	"github.com/mortise-dev/mortise/store/pgstore/recordstore"
)

// One schema holds the mailbox and records. The URL comes from the environment; without it the example only says so.
func ExampleNew() {
	ctx := context.Background()
	store, err := pgstore.Open(ctx, pgstore.Config{URL: os.Getenv("MORTISE_EXAMPLE_POSTGRES"), Schema: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close(ctx)
	records, err := recordstore.New(ctx, store, record.Config{Keep: 100})
	if err == nil {
		err = records.Start(record.Start{Run: abi.RunIdentity{RunID: "run1"}})
	}
	fmt.Println(err)
	// Output: pgstore: Config.URL is empty; give a URL such as postgres://user@host/database
}
