package plugins_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
	"github.com/mortise-dev/mortise/plugins"
)

// cacheDir has the compiled guests of all tests.
var cacheDir string

func TestMain(m *testing.M) {
	if dir, err := os.UserCacheDir(); err == nil {
		cacheDir = filepath.Join(dir, "mortise-test")
	}
	goleak.VerifyTestMain(m)
}

func module(name string) host.Spec {
	return host.Spec{Path: filepath.Join("..", "testdata", "guests", name+".wasm")}
}

func newHost(t *testing.T) *host.Host {
	t.Helper()
	h, err := host.New(host.Config{CacheDir: cacheDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return h
}

func load(t *testing.T, h *host.Host, entries ...plugins.Entry) (*plugins.Set, error) {
	t.Helper()
	s, err := plugins.Load(t.Context(), h, entries)
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s, err
}

func TestLoadReportsEveryEntry(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	priority := -7
	set, err := load(t, h,
		plugins.Entry{Module: module("redact"), Priority: &priority, OnFailure: abi.FailQuarantine},
		plugins.Entry{Name: "off", Module: module("index"), Disabled: true},
		plugins.Entry{Name: "gone", Module: module("nowhere")},
		plugins.Entry{Name: "policy", Module: module("admission")},
		plugins.Entry{Name: "redact", Module: module("redact")},
		plugins.Entry{Name: "picky", Module: module("redact"), Config: map[string]any{"no_such_key": true}},
	)
	if err == nil {
		t.Fatal("four of six entries are wrong, and there is no error")
	}
	want := []struct {
		name  string
		state plugins.State
		says  string
	}{
		{"redact", plugins.StateLoaded, ""},
		{"off", plugins.StateSkipped, "disabled"},
		{"gone", plugins.StateFailed, "nowhere.wasm"},
		{"policy", plugins.StateFailed, "not a phase plugin"},
		{"redact", plugins.StateFailed, "the name is taken"},
		{"picky", plugins.StateFailed, "no_such_key"},
	}
	status := set.Status()
	if len(status) != len(want) {
		t.Fatalf("%d statuses: %+v", len(status), status)
	}
	for i, w := range want {
		got := status[i]
		if got.Name != w.name || got.State != w.state || !strings.Contains(got.Reason, w.says) {
			t.Errorf("entry %d: %q %s %q, want %q %s saying %q", i, got.Name, got.State, got.Reason, w.name, w.state, w.says)
		}
		if w.state == plugins.StateFailed && !strings.Contains(err.Error(), got.Reason) {
			t.Errorf("the error does not say %q", got.Reason)
		}
	}
	if !errors.Is(err, guest.ErrConfig) || !errors.Is(err, host.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	loaded := set.Plugins()
	if len(loaded) != 1 {
		t.Fatalf("%d plugins", len(loaded))
	}
	for _, hook := range loaded[0].Describe().Hooks {
		if hook.Priority != -7 || hook.OnFailure != abi.FailQuarantine {
			t.Errorf("hook %+v does not follow the operator", hook)
		}
	}
}

// TestGuestsKeepThePluginContract runs the suite that every plugin must pass on
// the built guests.
func TestGuestsKeepThePluginContract(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"redact", "index", "guard"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			phasestest.TestPlugin(t, func() phases.Plugin {
				set, err := load(t, h, plugins.Entry{Module: module(name)})
				if err != nil {
					t.Fatal(err)
				}
				return set.Plugins()[0]
			})
		})
	}
}
