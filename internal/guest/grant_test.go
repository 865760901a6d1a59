package guest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/fs"
	"github.com/mortise-dev/mortise/host/capability/http"
	"github.com/mortise-dev/mortise/host/capability/kv"
	logcap "github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/capability/model"
	"github.com/mortise-dev/mortise/internal/guest"
)

func asks(t *testing.T, c ...abi.Capability) *guest.Guest {
	t.Helper()
	d := description()
	d.Capabilities = c
	g, err := guest.Open(t.Context(), describes(t, d))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func everything() host.Grants {
	return host.Grants{Config: map[string]string{"a": "1"}, Clock: true, Random: true, Sticky: true, Functions: []host.Function{{Name: "look\x1b"}}, Capabilities: []host.Capability{&kv.Grant{Store: kv.NewMemory(), Namespace: "shared", ReadOnly: true}, &fs.Grant{Mounts: []fs.Mount{{Host: "/srv/docs", Guest: "/docs"}}}, &model.Grant{Roles: map[string]model.Role{"writer": {}}}, &http.Grant{Hosts: []string{"*.example.com", "tracker.example.org:8443"}, Secrets: map[string]http.Secret{"TOKEN": {}}}, logcap.Grant{}}}
}

// TestCheckGrantsNamesAllThatIsMissing: each capability is an error of its own when it
// is asked for and not granted, and none when it is.
func TestCheckGrantsNamesAllThatIsMissing(t *testing.T) {
	t.Parallel()
	for name, hint := range map[string]string{
		abi.CapabilityHTTP:    `write grants: {http: {hosts: ["x"]}} (in Go: http.Grant)`,
		abi.CapabilityKV:      `write grants: {kv: {path: plugins.db}} (in Go: kv.Grant)`,
		abi.CapabilityConfig:  `write grants: {values: {KEY: value}} (in Go: Grants.Config)`,
		abi.CapabilitySecrets: `write grants: {secrets: {"x": {env: VARIABLE, hosts: [api.example.com]}}} (in Go: http.Grant.Secrets)`,
		abi.CapabilityClock:   `write grants: {clock: true} (in Go: Grants.Clock)`,
		abi.CapabilityRandom:  `write grants: {random: true} (in Go: Grants.Random)`,
		abi.CapabilityFS:      `write grants: {files: [{host: FOLDER, guest: "x"}]} (in Go: fs.Grant)`,
		abi.CapabilityLog:     `write grants: {log: true} (in Go: log.Grant)`,
		abi.CapabilityModel:   `set model.Grant`,
	} {
		g := asks(t, abi.Capability{Name: name, Reason: "Because.", Scope: []string{"x"}})
		want := fmt.Sprintf(`guest: module "m": asks for what is not granted: plugin "g" asks for %s (it says: "Because."); to let it, %s`, name, hint)
		if _, err := g.CheckGrants(host.Grants{}); err == nil || err.Error() != want || !errors.Is(err, guest.ErrNotGranted) {
			t.Errorf("%s: %v\nwant %s", name, err, want)
		}
		if _, err := g.CheckGrants(everything()); err != nil {
			t.Errorf("%s is granted: %v", name, err)
		}
		optional := asks(t, abi.Capability{Name: name, Optional: true})
		if a, err := optional.CheckGrants(host.Grants{}); err != nil || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "optional and not granted") {
			t.Errorf("%s is optional: %+v, %v", name, a, err)
		}
	}
	_, err := asks(t, abi.Capability{Name: "kv"}, abi.Capability{Name: "clock"}).CheckGrants(host.Grants{})
	if err == nil || !strings.Contains(err.Error(), "kv (it gives no reason), clock (it gives no reason); to let it, write grants: {kv: {path: plugins.db}, clock: true}") {
		t.Errorf("error %v", err)
	}
}

func TestCheckGrantsShowsWhatIsGranted(t *testing.T) {
	t.Parallel()
	a, err := asks(t).CheckGrants(everything())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"http (*.example.com, tracker.example.org:8443)", "kv (shared, read-only)", "config (a)", "secrets (TOKEN)",
		"clock", "random", "fs (/docs)", "log", "model (writer)", "sticky", `function ("look\x1b")`,
	}
	if !slices.Equal(a.Granted, want) {
		t.Errorf("granted %q", a.Granted)
	}
	if len(a.Notes) != 10 { // each capability, without being asked for
		t.Errorf("notes %q", a.Notes)
	}
}

// TestScopeBeyondTheGrant names exactly the part that the grant does not cover.
func TestScopeBeyondTheGrant(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ inside, beyond []string }{
		abi.CapabilityHTTP: {
			[]string{"api.example.com", "API.Example.com.", "*.example.com", "*.api.example.com", "tracker.example.org:8443"},
			[]string{"example.com", "badexample.com", "api.example.com:8080", "tracker.example.org", "*", ":", "::1", "[::1]:8443"},
		},
		abi.CapabilityFS: {
			[]string{"/docs", "/docs/", "/docs/a/b", "/docs/a/../b"},
			[]string{"/", "/documents", "/docs/../etc", "docs", ""},
		},
		abi.CapabilitySecrets: {[]string{"TOKEN"}, []string{"token", "OTHER"}},
		abi.CapabilityModel:   {[]string{"writer"}, []string{"reader"}},
		abi.CapabilityKV:      {[]string{"any"}, nil}, // prefixes are not compared
	} {
		for _, scope := range slices.Concat(tc.inside, tc.beyond) {
			if scope == "" {
				continue // refused by Open
			}
			a, err := asks(t, abi.Capability{Name: name, Scope: []string{scope}}).CheckGrants(everything())
			if err != nil {
				t.Fatal(err)
			}
			noted := slices.ContainsFunc(a.Notes, func(n string) bool { return strings.Contains(n, "asks for "+name+" ("+scope+"), which is beyond") })
			if noted != slices.Contains(tc.beyond, scope) {
				t.Errorf("%s to %q: noted %v: %q", name, scope, noted, a.Notes)
			}
		}
	}
}

// TestHostileCapabilities: what a guest asks for is shown to people, so it is bounded
// and cannot draw, and a hint that names it cannot grant more than it says.
func TestHostileCapabilities(t *testing.T) {
	t.Parallel()
	many := make([]abi.Capability, 33)
	for says, list := range map[string][]abi.Capability{
		"33 capabilities are more than the 32":               many,
		`"htpp" is not one of http, kv, config, secrets`:     {{Name: "htpp"}},
		`capability 0: "" is not one of`:                     {{}},
		`capability 0: "a\x1b[2J" is not one of`:             {{Name: "a\x1b[2J"}},
		"kv is there twice":                                  {{Name: "kv"}, {Name: "kv", Optional: true}},
		"reason must be one line of printable text":          {{Name: "kv", Reason: "two\nlines"}},
		"capability kv: reason must be one line":             {{Name: "kv", Reason: strings.Repeat("x", 257)}},
		"65 entries in scope are more than":                  {{Name: "kv", Scope: make([]string, 65)}},
		"scope entry 1 must be one line":                     {{Name: "kv", Scope: []string{"a", "\u202e"}}},
		"scope entry 0 must be one line of printable text, ": {{Name: "kv", Scope: []string{""}}},
	} {
		d := description()
		d.Capabilities = list
		if _, err := guest.Open(t.Context(), describes(t, d)); !errors.Is(err, guest.ErrDescription) || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
	g := asks(t, abi.Capability{Name: "http", Scope: []string{`x"], private: ["0.0.0.0/0`}})
	if _, err := g.CheckGrants(host.Grants{}); !strings.Contains(err.Error(), `hosts: ["x\"], private: [\"0.0.0.0/0"]`) {
		t.Errorf("the hint can be broken out of: %v", err)
	}
}

// TestExplainKeepsOtherErrors: what is not about a capability stays as it was.
func TestExplainKeepsOtherErrors(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	for _, spec := range []host.Spec{{Path: "gone.wasm"}, {Name: "text", Wasm: []byte("(module)")}, {Path: "../../host/testdata/echo.wasm", SHA256: strings.Repeat("0", 64)}} {
		_, err := h.Load(t.Context(), spec)
		if err == nil {
			t.Fatalf("%+v was loaded", spec)
		}
		if got := guest.Explain(t.Context(), h, spec, err); got.Error() != err.Error() {
			t.Errorf("%v became %v", err, got)
		}
	}
}

// FuzzScope compares any scope with a grant: nothing panics, and an exact match is
// always covered.
func FuzzScope(f *testing.F) {
	for _, s := range []string{"", ":", "[::1]:80", "*.", "*:*", "..", "a:b:c", "/../x"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, asked, granted string) {
		asked = strings.ToValidUTF8(asked, "") // the encoding does so, too
		for _, name := range []string{abi.CapabilityHTTP, abi.CapabilityFS, abi.CapabilitySecrets} {
			d := description()
			d.Capabilities = []abi.Capability{{Name: name, Scope: []string{asked}}}
			g, err := guest.Open(t.Context(), describes(t, d))
			if err != nil {
				continue // not printable, or too long
			}
			grants := func(to string) host.Grants {
				return host.Grants{Capabilities: []host.Capability{&fs.Grant{Mounts: []fs.Mount{{Guest: to}}}, &http.Grant{Hosts: []string{to}, Secrets: map[string]http.Secret{to: {}}}}}
			}
			if _, err := g.CheckGrants(grants(granted)); err != nil {
				t.Error(err)
			}
			a, err := g.CheckGrants(grants(asked))
			if err != nil || slices.ContainsFunc(a.Notes, func(n string) bool { return strings.Contains(n, "beyond the grant") }) {
				t.Errorf("%s %q is not covered by itself: %q, %v", name, asked, a.Notes, err)
			}
			if _, err := g.CheckGrants(host.Grants{}); !errors.Is(err, guest.ErrNotGranted) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("error %v", err)
			}
		}
	})
}
