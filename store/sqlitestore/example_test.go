package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// What one process wrote is there for the next one.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	process := func(work func(*sqlitestore.Store) error) {
		s, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: filepath.Join(dir, "mortise.db")})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer s.Close(ctx)
		if err := work(s); err != nil {
			fmt.Println(err)
		}
	}
	process(func(s *sqlitestore.Store) error {
		_, err := s.Apply(ctx, store.Batch{
			Thread: "conversation",
			Put:    []store.Cell{{Kind: "state", Value: []byte("waiting"), Index: []store.IndexKey{{Name: "status", Group: "waiting"}}}},
			Append: []store.Entry{{Log: "messages", Data: []byte("hello")}},
		})
		return err
	})
	process(func(s *sqlitestore.Store) error {
		list, err := s.Scan(ctx, store.Scan{Index: "status", Group: "waiting", Limit: 10, Values: true})
		for _, ref := range list {
			fmt.Printf("%s: %s\n", ref.Thread, ref.Value)
		}
		return err
	})
	// Output: conversation: waiting
}
