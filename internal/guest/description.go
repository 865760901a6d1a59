package guest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
)

// Bounds on a description. They are far above what an honest guest needs.
const (
	maxHooks    = 64
	maxTools    = 128
	maxState    = 128
	maxPolicies = 64
	maxHandlers = 64
	maxOrder    = 64
	maxVersion  = 64
	maxSummary  = 512
)

func checkDescription(d *abi.Description) error {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`).MatchString(d.Name) {
		return fmt.Errorf("name %.80q must match ^[a-z0-9][a-z0-9._-]{0,63}$", d.Name)
	}
	if d.ABI.Min < 1 || d.ABI.Max < d.ABI.Min {
		return fmt.Errorf("abi range %d to %d is not a range; name the contract versions that the module speaks", d.ABI.Min, d.ABI.Max)
	}
	if !printable(d.Version, maxVersion) {
		return fmt.Errorf("version must be one line of printable text, %d bytes at most", maxVersion)
	}
	if !printable(d.Summary, maxSummary) {
		return fmt.Errorf("summary must be one line of printable text, %d bytes at most", maxSummary)
	}
	if err := checkBounds(d); err != nil {
		return err
	}
	for _, name := range d.LedgerPolicies {
		if !slices.Contains(d.Policies, name) {
			return fmt.Errorf("ledger_policies has %.80q, which is not in policies; list it there, too", name)
		}
	}
	if err := checkCapabilities(d.Capabilities); err != nil {
		return err
	}
	first := make(map[abi.Phase]int, len(d.Hooks))
	for i := range d.Hooks {
		p := d.Hooks[i].Phase
		if at, ok := first[p]; ok {
			return fmt.Errorf("hook %d: hook %d is for the phase %.40q, too; a plugin has one hook of a phase, else it would be called twice", i, at, p)
		}
		first[p] = i
		if n := max(len(d.Hooks[i].Before), len(d.Hooks[i].After)); n > maxOrder {
			return fmt.Errorf("hook %d: %d names in before or after are more than the %d that are allowed", i, n, maxOrder)
		}
	}
	return nil
}

// printable reports whether text can be shown to people as it is: nothing in it
// moves a cursor, breaks a line or turns the direction round.
func printable(s string, limit int) bool {
	if len(s) > limit || !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

func checkBounds(d *abi.Description) error {
	for _, bound := range []struct {
		what     string
		got, max int
	}{
		{"hooks", len(d.Hooks), maxHooks},
		{"tools", len(d.Tools), maxTools},
		{"state keys", len(d.State), maxState},
		{"policies", len(d.Policies), maxPolicies},
		{"actions", len(d.Actions), maxHandlers},
		{"effects", len(d.Effects), maxHandlers},
	} {
		if bound.got > bound.max {
			return fmt.Errorf("%d %s are more than the %d that are allowed", bound.got, bound.what, bound.max)
		}
	}
	return nil
}
