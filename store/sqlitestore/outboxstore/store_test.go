package outboxstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/outbox/outboxtest"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/filetest"
	"github.com/mortise-dev/mortise/store/sqlitestore/outboxstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	t.Parallel()
	outboxtest.TestStore(t, func(t *testing.T) (outbox.Store, func() outbox.Store) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "mailbox.db")
		file := filetest.Open(t, path)
		s, err := outboxstore.New(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		return s, func() outbox.Store {
			if err := file.Close(t.Context()); err != nil {
				t.Error(err)
			}
			again, err := outboxstore.New(t.Context(), filetest.Open(t, path))
			if err != nil {
				t.Fatal(err)
			}
			return again
		}
	})
}

// One file holds the mailbox and the outbox.
func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: filepath.Join(dir, "mortise.db")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close(ctx)
	store, err := outboxstore.New(ctx, file)
	if err != nil {
		fmt.Println(err)
		return
	}
	seq, err := store.Append(ctx, outbox.Change{Thread: "t", Data: []byte("the build is done"), Key: "build"})
	fmt.Println(seq, err)
	seq, err = store.Append(ctx, outbox.Change{Thread: "t", Data: []byte("the build is done"), Key: "build"})
	fmt.Println(seq, err)
	// Output:
	// 1 <nil>
	// 0 <nil>
}
