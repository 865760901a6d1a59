package host_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// TestInstance_startData looks at what data and start function left, in the first
// instance and in those made from its template.
func TestInstance_startData(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("start_data")})
		for range 3 {
			for range 2 {
				var refused *host.GuestError
				if _, err := m.Call(t.Context(), "look", nil); !errors.As(err, &refused) || refused.Code != 21 {
					t.Errorf("a look found %v, want code 21", err)
				}
			}
			_, err := m.Call(t.Context(), "break", nil)
			_ = wantTrap(t, err, host.TrapFault)
		}
	})
}

// TestInstance_dataOutOfBounds wants the engine's own words, whichever side copies.
func TestInstance_dataOutOfBounds(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		_, err := newHost(t, host.Config{Engine: hosttest.Engine(e)}).Load(t.Context(), host.Spec{Path: wat("data_out_of_bounds")})
		const want = "data[1]: out of bounds memory access; see what the module does when it starts"
		var bad *host.LoadError
		if !errors.As(err, &bad) || bad.Module != "data_out_of_bounds" || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}
