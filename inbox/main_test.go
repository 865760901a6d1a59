package inbox_test

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/store/sqlitestore"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(agentCrashEnv); folder != "" {
		os.Exit(agentCrashChild(folder))
	}
	if path := os.Getenv(crashEnv); path != "" {
		os.Exit(crashChild(path))
	}
	goleak.VerifyTestMain(m)
}

func openFile(t *testing.T, path string) *sqlitestore.Store {
	t.Helper()
	f, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return f
}
