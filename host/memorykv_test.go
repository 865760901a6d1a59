package host_test

import (
	"testing"

	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/host/hosttest"
)

func TestMemoryKV(t *testing.T) {
	t.Parallel()
	hosttest.TestKV(t, func(*testing.T) kv.Store { return kv.NewMemory() })
}
