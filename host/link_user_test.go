package host_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// TestLinks_user links a module where the Extism PDKs look for functions of the embedder, as the
// error of a missing import advises. The embedder's own functions are never replaced by it.
func TestLinks_user(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		spec := host.Spec{Path: wat("link_user")}
		h := newHost(t, host.Config{Engine: hosttest.Engine(e)})
		if _, err := h.Load(t.Context(), spec); !errors.Is(err, host.ErrImport) || !strings.Contains(err.Error(), "link a module of that name (Spec.Links)") {
			t.Errorf("without the link: %v", err)
		}
		spec.Links = []host.Link{{Name: "extism:host/user", Path: wat("link_user_code")}}
		m, err := h.Load(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Call(t.Context(), "run", nil)
		if refused, ok := errors.AsType[*host.GuestError](err); !ok || refused.Code != 41 {
			t.Errorf("got %v, want code 41", err)
		}
		spec.Grants.Functions = []host.Function{{Name: "other", Call: mine()[0].Call}}
		if _, err := h.Load(t.Context(), spec); !errors.Is(err, host.ErrInvalid) || !strings.Contains(err.Error(), `has a link named "extism:host/user", and Grants.Functions offers`) {
			t.Errorf("a link and functions of one name: %v", err)
		}
		for _, name := range []string{"extism:host/env", "extism:host", "extism:host/user2", "extism:"} {
			spec := host.Spec{Path: wat("echo"), Links: []host.Link{{Name: name, Path: wat("link_user_code")}}}
			if _, err := h.Load(t.Context(), spec); !errors.Is(err, host.ErrInvalid) {
				t.Errorf("a link named %s: %v", name, err)
			}
		}
	})
}
