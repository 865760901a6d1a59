package phases_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// timed is a plugin with a time limit of its own.
type timed struct {
	phases.Plugin

	limit time.Duration
}

func (p timed) HookTimeout() time.Duration { return p.limit }

// TestOwnTimeLimit: the limit of a plugin replaces that of the runtime, above and below it, and
// for no other plugin.
func TestOwnTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		after := func(d time.Duration) func(context.Context, *abi.Event) (*abi.Reply, error) {
			return func(ctx context.Context, _ *abi.Event) (*abi.Reply, error) {
				select {
				case <-time.After(d):
					return &abi.Reply{}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		}
		deaf := func(context.Context, *abi.Event) (*abi.Reply, error) {
			sleep(time.Hour)
			return &abi.Reply{}, nil
		}
		hook := abi.Hook{Phase: abi.BeforeInference}
		cfg := phases.Config{HookTimeout: time.Second, Grace: 100 * time.Millisecond}
		g := build(t, cfg,
			timed{plug("long", hook, after(10*time.Second)), 20 * time.Second},
			timed{plug("longer", hook, after(time.Minute)), 20 * time.Second},
			timed{plug("short", hook, after(900*time.Millisecond)), 200 * time.Millisecond},
			timed{plug("unlimited", hook, after(5*time.Second)), 0},
			timed{plug("deaf-short", hook, deaf), 300 * time.Millisecond},
			plug("default", hook, after(5*time.Second)),
			plug("deaf", hook, deaf),
		)
		if _, err := g.Fire(t.Context(), g.state, step(1)); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]time.Duration{
			"long": 10 * time.Second, "longer": 20 * time.Second, "short": 200 * time.Millisecond, "unlimited": time.Second,
			"deaf-short": 400 * time.Millisecond, "default": time.Second, "deaf": 1100 * time.Millisecond,
		} {
			r := g.only(t, name)
			if r.Duration != want || (r.Err == "") != (name == "long") || r.Err != "" && !strings.Contains(r.Err, "missed its deadline") {
				t.Errorf("%s took %v, want %v: %s", name, r.Duration, want, r.Err)
			}
		}
		// The end of the run is that of all.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		_, _ = g.Fire(ctx, g.state, step(2))
		if d := time.Since(start); d > 2100*time.Millisecond {
			t.Errorf("a run that ended waits for %v", d)
		}
		sleep(2 * time.Hour) // the deaf ones are back
	})
}
