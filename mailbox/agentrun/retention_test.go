package agentrun_test

import (
	"testing"

	"github.com/mortise-dev/mortise/mailbox/agentrun/agentruntest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestRetention(t *testing.T) {
	t.Parallel()
	agentruntest.TestRetention(t, func(*testing.T) (one, other store.Store) {
		s := memstore.New()
		return s, s
	})
}
