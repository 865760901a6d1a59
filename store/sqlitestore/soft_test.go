package sqlitestore_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// TestFile_softIsNotFlushed counts at the disk. It runs alone, since all files count.
func TestFile_softIsNotFlushed(t *testing.T) { //nolint:paralleltest // see above
	countFlushes()
	s, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: filepath.Join(t.TempDir(), "mailbox.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.WithoutCancel(t.Context()))
	create := func(c *engine.Conn) error { return c.Script("CREATE TABLE IF NOT EXISTS own (x)") }
	if err := s.File().Write(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	insert := func(c *engine.Conn) error {
		_, err := c.Exec("INSERT INTO own VALUES (1)")
		return err
	}
	before := flushes.Load()
	for range 20 {
		if err := s.File().WriteSoft(t.Context(), insert); err != nil {
			t.Fatal(err)
		}
	}
	if n := flushes.Load() - before; n != 0 {
		t.Errorf("20 soft writes were flushed %d times", n)
	}
	for range 5 {
		if err := s.File().Write(t.Context(), insert); err != nil {
			t.Fatal(err)
		}
	}
	if n := flushes.Load() - before; n < 5 {
		t.Errorf("5 writes were flushed %d times", n)
	}
}
