package inbox_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/killtest"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

func TestMain(m *testing.M) {
	killtest.Child("AGENT", agentCrashChild)
	killtest.Child("INBOX", crashChild)
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
