package natsstore_test

import (
	"testing"

	"github.com/mortise-dev/mortise/mailbox/agentrun/agentruntest"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

func TestRun_killed(t *testing.T) {
	t.Parallel()
	url := servertest.URL(t)
	agentruntest.TestKilled(t, openName, func(*testing.T) string { return url + " " + servertest.NewName() })
}
