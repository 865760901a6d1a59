//go:build linux

package daemon_test

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/hook/frame"
)

// asOther executes fn with a thread of another user. Nothing else must be executed there.
func asOther(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with the function
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); errno != 0 {
			done <- errno
			return
		}
		done <- fn()
	}()
	return <-done
}

// TestForeign_peer: a process of another user that got hold of the place is recognized, at both ends.
func TestForeign_peer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can be another user")
	}
	t.Run("daemon", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t, guard())
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
		err = errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: p.socket()}), os.Chmod(p.socket(), 0o600), asOther(func() error { return syscall.Listen(fd, 8) }))
		if err != nil {
			t.Fatal(err)
		}
		if err := frame.CheckSocket(p.socket()); err != nil {
			t.Fatal(err)
		}
		if _, err := frame.Dial(p.socket()); !errors.Is(err, frame.ErrForeign) {
			t.Errorf("the client talks to it: %v", err)
		}
		if o := p.call(t, long, "claude", "PreToolUse", bash(1, "ls")); o.took > long/2 || !strings.Contains(o.stdout, "by policy") {
			t.Errorf("%+v", o)
		}
	})
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t, guard())
		p.serve(t)
		if o := p.call(t, long, "claude", "PreToolUse", bash(0, "ls")); o.stdout != "{}" { // it listens
			t.Fatalf("%+v", o)
		}
		if err := os.Chmod(p.dir, 0o755); err != nil { //nolint:gosec // the other user has to get to the socket
			t.Fatal(err)
		}
		if err := os.Chmod(p.socket(), 0o666); err != nil { //nolint:gosec // the same
			t.Fatal(err)
		}
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := asOther(func() error { return syscall.Connect(fd, &syscall.SockaddrUnix{Name: p.socket()}) }); err != nil {
			t.Fatal(err)
		}
		file := os.NewFile(uintptr(fd), "socket")
		defer file.Close()
		c, err := net.FileConn(file)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		hello := frame.Hello{Proto: frame.Proto, Dialect: "claude", Event: "PreToolUse", DeadlineMS: 5000}
		_ = errors.Join(c.SetDeadline(time.Now().Add(long)), frame.Write(c, hello.Marshal()), frame.Write(c, bash(1, "ls")))
		if r, err := frame.ReadReply(c); err == nil {
			t.Errorf("the daemon answers: %+v", r)
		}
	})
}
