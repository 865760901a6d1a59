//go:build linux

package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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
	p.listens(t)
	for i, want := range []string{"n=1.", "n=2.", "deny"} {
		version.Store(int64(i))
		if o := p.call(t, long, "claude", "PreToolUse", bash(i, "forbidden")); !strings.Contains(o.stdout, want) {
			t.Errorf("version %d: %+v", i, o)
		}
	}
}

// TestUpgrade: a daemon of an older program makes room for a new one while 20 agents send events; no event passes the gate unasked, and
// the sessions continue.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	p := newPlace(t, counter(), guard())
	env := "MORTISE_TEST_DAEMON=" + p.dir
	var newer atomic.Bool
	cfg := p.config()
	cfg.Outdated = newer.Load
	d, err := daemon.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- d.Serve(context.Background()) }()
	event := func(agent, call int) []byte {
		return fmt.Appendf(nil, `{"session_id":"s%d","cwd":"/w","tool_name":"Bash","tool_use_id":"c%d","tool_input":{"command":"ls"}}`, agent, call)
	}
	send := func(agent, call int) {
		for try := range 20 { // a daemon may start slowly on a machine that is busy; then the policy denies
			o := p.call(t, long, "claude", "PreToolUse", event(agent, 100*call+try), env)
			if strings.Contains(o.stdout, fmt.Sprintf("n=%d.", call)) {
				return
			}
			if !strings.Contains(o.stdout, `"deny"`) || !strings.Contains(o.stdout, "by policy") {
				t.Errorf("agent %d, call %d: %+v", agent, call, o)
				return
			}
		}
		t.Errorf("agent %d, call %d: no plugin answers", agent, call)
	}
	for call := 1; call <= 2; call++ {
		var agents sync.WaitGroup
		for agent := range 20 {
			agents.Go(func() { send(agent, call) })
		}
		agents.Wait()
		newer.Store(true)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(long):
		t.Error("the old daemon is still there")
	}
	if pid := daemonOf(p.socket()); pid > 0 && pid != os.Getpid() {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	} else {
		t.Errorf("there is no new daemon: %d", pid)
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
