package sqlitestore_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/viewtest"
)

func opened(b *testing.B) store.Store {
	b.Helper()
	s, err := sqlitestore.Open(b.Context(), sqlitestore.Config{Path: filepath.Join(b.TempDir(), "store.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func BenchmarkCycle(b *testing.B) { viewtest.BenchmarkCycle(b, opened) }

func BenchmarkBacklog(b *testing.B) { viewtest.BenchmarkBacklog(b, opened) }
