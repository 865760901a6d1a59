package sqlitekv_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/host/sqlitekv"
)

// A store outlives the process; its Store is what a kv.Grant asks for.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := sqlitekv.Open(ctx, sqlitekv.Config{Path: filepath.Join(dir, "plugins.db")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	quota := kv.Quota{Keys: 10, Bytes: 1000}
	err = store.Set(ctx, "guard", "seen/rm", []byte("3"), quota)
	fmt.Println(err)
	keys, err := store.List(ctx, "guard", "seen/", "", 10)
	fmt.Println(keys, err)
	// Output:
	// <nil>
	// [seen/rm] <nil>
}
