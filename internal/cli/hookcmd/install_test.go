package hookcmd_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/cli/hookcmd"
)

// TestHook_systems: where hooks do not run, install says so, and what runs there.
func TestHook_systems(t *testing.T) {
	t.Parallel()
	for system, runs := range map[string]bool{"linux": true, "darwin": true, "windows": false, "freebsd": false} {
		if err := hookcmd.HooksRun(system); (err == nil) != runs || err != nil && (!strings.Contains(err.Error(), system) || !strings.Contains(err.Error(), "mortise proxy")) {
			t.Errorf("%s: %v", system, err)
		}
	}
}
