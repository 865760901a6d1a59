//go:build linux

package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/hook/daemon"
)

// TestReload: another config is taken over between events; one that is wrong changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	p := newPlace(t, counter())
	var version atomic.Int64
	cfg := p.config()
	load := cfg.Load
	cfg.Changed = func() string { return fmt.Sprint(version.Load()) }
	cfg.Load = func(ctx context.Context) (*daemon.Loaded, error) {
		switch version.Load() {
		case 1:
			return nil, errors.New("wrong")
		case 2:
			p.plugins = append(p.plugins, guard())
		}
		return load(ctx)
	}
	d, err := daemon.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	time.Sleep(100 * time.Millisecond)
	for i, want := range []string{"n=1.", "n=2.", "deny"} {
		version.Store(int64(i))
		if o := p.call(t, long, "claude", "PreToolUse", bash(i, "forbidden")); !strings.Contains(o.stdout, want) {
			t.Errorf("version %d: %+v", i, o)
		}
	}
}

// TestIdle: a daemon that no event comes to ends, and the next client starts another.
func TestIdle(t *testing.T) {
	t.Parallel()
	p := newPlace(t, guard())
	cfg := p.config()
	cfg.Idle = 50 * time.Millisecond
	d, err := daemon.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Serve(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(p.socket()); err == nil {
		t.Error("the socket is still there")
	}
}
