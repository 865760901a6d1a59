package natsstore_test

import (
	"os"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mortise-dev/mortise/mailbox/agentrun/agentruntest"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// TestMain runs the tests on one server with JetStream on disk, which is made when it is
// needed and writes before it acknowledges.
func TestMain(m *testing.M) {
	beChild()
	mailboxtest.CrashChild(openName)
	agentruntest.Child(openName)
	os.Exit(servertest.Main(m, syncAlways))
}

func syncAlways(o *server.Options) { o.SyncAlways = true }

// open opens a new store and closes it with the test.
func open(tb testing.TB, change ...func(*natsstore.Config)) *natsstore.Store {
	tb.Helper()
	return servertest.Open(tb, change...)
}
