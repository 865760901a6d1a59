//go:build linux

package daemon_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/hook/frame"
)

// TestEnding: a daemon that ends before it has read the event is asked no more: the next one is.
func TestEnding(t *testing.T) {
	t.Parallel()
	p := newPlace(t, guard())
	if err := os.MkdirAll(filepath.Dir(p.socket()), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", p.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := frame.ReadHello(c); n > 0 && err == nil {
				_, _ = frame.Read(c, frame.MaxInput)
				_ = (&frame.Reply{Status: frame.StatusOK, Stdout: []byte("the next one")}).Write(c)
			}
			_ = c.Close()
		}
	}()
	if o := p.call(t, long, "claude", "PreToolUse", bash(1, strings.Repeat("x", 4<<20))); o.stdout != "the next one" {
		t.Errorf("%+v", o)
	}
}

// TestEnding_unread: a daemon that ends before it has read an event did not see it: the next one gets it.
func TestEnding_unread(t *testing.T) {
	t.Parallel()
	p := newPlace(t, counter(), guard(), slow(func() {}))
	ending, err := net.Listen("unix", p.socket())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c, err := ending.Accept()
		time.Sleep(100 * time.Millisecond) // the event is there, and is not read
		_ = ending.Close()
		if err == nil {
			_ = c.Close()
		}
	}()
	if o := p.call(t, long, "claude", "PreToolUse", bash(1, "ls"), "MORTISE_TEST_DAEMON="+p.dir); !strings.Contains(o.stdout, "n=1.") {
		t.Errorf("%+v", o)
	}
	if pid := daemonOf(p.socket()); pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}
