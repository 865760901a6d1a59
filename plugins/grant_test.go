package plugins_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/plugins"
)

// TestAskedAndNotGranted: a binary that imports what is not granted is explained by
// its own description.
func TestAskedAndNotGranted(t *testing.T) {
	t.Parallel()
	set, err := load(t, newHost(t), plugins.Entry{Name: "memory", Module: small("needs")})
	want := `guest: module "memory": asks for what is not granted: plugin "needs" asks for kv (it says: "To remember answers."); ` +
		`to let it, write grants: {kv: {path: plugins.db}} (in Go: kv.Grant)`
	if err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
	if !errors.Is(err, guest.ErrNotGranted) || !errors.Is(err, host.ErrImport) {
		t.Errorf("error %v is not both", err)
	}
	if s := set.Status()[0]; s.State != plugins.StateFailed || s.Reason != want {
		t.Errorf("status %+v", s)
	}
}

func TestStatusComparesGrants(t *testing.T) {
	t.Parallel()
	spec := small("needs")
	spec.Grants = host.Grants{Random: true, Capabilities: []host.Capability{&kv.Grant{Store: kv.NewMemory()}}}
	set, err := load(t, newHost(t), plugins.Entry{Module: spec})
	if err != nil {
		t.Fatal(err)
	}
	s := set.Status()[0]
	if got := strings.Join(s.Granted, "; "); got != "kv (its own namespace); random" {
		t.Errorf("granted %q", got)
	}
	got := strings.Join(s.Notes, "; ")
	for _, want := range []string{
		"asks for clock (it gives no reason), which is optional and not granted",
		"is granted random and does not ask for it; take the grant away unless something needs it",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("notes %q do not say %q", got, want)
		}
	}
	if len(s.Notes) != 2 {
		t.Errorf("%d notes", len(s.Notes))
	}
}
