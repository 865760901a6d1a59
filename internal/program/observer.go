package program

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/term"
)

// Observer receives what happens to modules. The zero value ignores it.
type Observer struct {
	// Say prints a line for the user.
	Say func(format string, args ...any)
	// Swapped receives each change of a module's generation.
	Swapped func(host.SwapEvent)
}

// swap reports a change of a module's generation. A swap that was taken back is said.
func (o Observer) swap(e host.SwapEvent) {
	if e.Kind == host.SwapRolledBack && o.Say != nil {
		o.Say("reload: %s was rolled back: sha256 %s -> %s: %s", e.Module, term.Clip(e.SHA256, 13), term.Clip(e.CurrentSHA256, 13),
			strings.TrimPrefix(RollBackReason(e), "rolled back "))
	}
	if o.Swapped != nil {
		o.Swapped(e)
	}
}

// RollBackReason is why a swap was taken back.
func RollBackReason(e host.SwapEvent) string {
	return fmt.Sprintf("rolled back after %d failures in %d calls: %s", e.Failures, e.Calls, cmp.Or(e.Reason, "it gives no reason"))
}
