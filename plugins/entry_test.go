package plugins_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/plugins"
)

// TestBadEntryIsFoundByLoad: what an operator wrote wrongly is said at that entry,
// not later by phases for all plugins together, or by no one.
func TestBadEntryIsFoundByLoad(t *testing.T) {
	t.Parallel()
	for says, entry := range map[string]plugins.Entry{
		"the name must match":            {Name: "Not A Name", Module: small("json")},
		`on_failure "explode" is not`:    {OnFailure: "explode", Module: small("json")},
		"config: ":                       {Config: map[string]any{"since": time.Unix(0, 0)}, Module: module("guard")},
		"config:  a channel":             {Config: make(chan int), Module: small("json")},
		"the name must match ^[a-z0-9][": {Name: "-x", Module: small("trap"), OnFailure: abi.FailIgnore},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			set, err := load(t, newHost(t), entry)
			if err == nil || len(set.Plugins()) != 0 || set.Status()[0].State != plugins.StateFailed {
				t.Fatalf("loaded %d plugins, error %v", len(set.Plugins()), err)
			}
			if want, _, _ := strings.Cut(says, "  "); !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		})
	}
}
