package recordstore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/record/recordtest"
	"github.com/mortise-dev/mortise/store/pgstore/internal/schematest"
	"github.com/mortise-dev/mortise/store/pgstore/recordstore"
)

var server schematest.Server

func TestMain(m *testing.M) {
	recordtest.CrashChild(openName)
	server.Main(m)
}

func openName(ctx context.Context, name string) (record.Store, func() error, error) {
	store, err := schematest.Open(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	s, err := recordstore.New(ctx, store, record.Config{})
	return s, func() error { return store.Close(ctx) }, err
}

func TestStore(t *testing.T) {
	t.Parallel()
	recordtest.TestStore(t, func(t *testing.T) func(record.Config) record.Store {
		t.Helper()
		name := server.Name(t)
		return func(cfg record.Config) record.Store {
			s, err := recordstore.New(t.Context(), server.Open(t, name), cfg)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}

func TestStore_killed(t *testing.T) {
	t.Parallel()
	recordtest.TestCrash(t, openName, server.Name(t))
}

// TestNewer holds that tables of a newer program are refused, also by who only looks.
func TestNewer(t *testing.T) {
	t.Parallel()
	store := server.Open(t, server.Name(t))
	if _, err := recordstore.Look(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	schematest.Exec(t, store, "INSERT INTO @.record_migration (version) VALUES (7)")
	if _, err := recordstore.Look(t.Context(), store); err == nil || !strings.Contains(err.Error(), "it has version 7 and this program knows versions up to 1") {
		t.Error(err)
	}
}
