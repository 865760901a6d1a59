package host_test

import (
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

func TestMemoryKV(t *testing.T) {
	t.Parallel()
	hosttest.TestKV(t, func(*testing.T) host.KV { return host.NewMemoryKV() })
}
