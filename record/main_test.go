package record_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/record/recordtest"
)

func TestMain(m *testing.M) {
	recordtest.CrashChild(openName)
	goleak.VerifyTestMain(m)
}

func openName(_ context.Context, name string) (record.Store, func() error, error) {
	f, err := record.Open(name, record.Config{})
	return f, func() error { return nil }, err
}

func TestStore_killed(t *testing.T) {
	t.Parallel()
	recordtest.TestCrash(t, openName, t.TempDir())
}
