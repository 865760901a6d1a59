package pgstore_test

import (
	"context"
	"fmt"
	"os"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// The URL comes from the environment, so that no argument and no file of the program has the password.
func Example() {
	ctx := context.Background()
	s, err := pgstore.Open(ctx, pgstore.Config{URL: os.Getenv("MORTISE_EXAMPLE_POSTGRES"), Schema: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	hello := store.Entry{Log: "messages", Data: []byte("hello")}
	revision, err := s.Apply(ctx, store.Batch{Thread: "t", Base: store.AnyRevision, Append: []store.Entry{hello}})
	fmt.Println(revision > 0, err, s.Close(ctx))
	// Output: pgstore: Config.URL is empty; give a URL such as postgres://user@host/database
}
