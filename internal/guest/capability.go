package guest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Bounds on what a guest asks for.
const (
	maxCapabilities = 32
	maxScope        = 64
	maxScopeText    = 256
	maxReason       = 256
)

// checkCapabilities checks the form of what a guest asks for. What it says is shown
// to the operator, so it has to be text that can be shown.
func checkCapabilities(asked []abi.Capability) error {
	if len(asked) > maxCapabilities {
		return fmt.Errorf("%d capabilities are more than the %d that are allowed", len(asked), maxCapabilities)
	}
	seen := make(map[string]bool, len(asked))
	for i := range asked {
		c := &asked[i]
		switch {
		case !known(c.Name):
			return fmt.Errorf("capability %d: %.40q is not one of %s; correct the name, or use a newer mortise", i, c.Name, knownNames())
		case seen[c.Name]:
			return fmt.Errorf("capability %d: %s is there twice; ask for it once, with everything in its scope", i, c.Name)
		case !printable(c.Reason, maxReason):
			return fmt.Errorf("capability %s: reason must be one line of printable text, %d bytes at most", c.Name, maxReason)
		case len(c.Scope) > maxScope:
			return fmt.Errorf("capability %s: %d entries in scope are more than the %d that are allowed", c.Name, len(c.Scope), maxScope)
		}
		seen[c.Name] = true
		for n, s := range c.Scope {
			if s == "" || !printable(s, maxScopeText) {
				return fmt.Errorf("capability %s: scope entry %d must be one line of printable text, 1 to %d bytes", c.Name, n, maxScopeText)
			}
		}
	}
	return nil
}

func known(name string) bool {
	return slices.ContainsFunc(capabilities(), func(c capability) bool { return c.name == name })
}

func knownNames() string {
	var names []string
	for _, c := range capabilities() {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}
