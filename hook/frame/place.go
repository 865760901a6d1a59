package frame

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrForeign is a place or a peer that another user could control.
var ErrForeign = errors.New("frame: it belongs to another user, or others may change it")

// maxSocket is the longest path of a socket, on every system.
const maxSocket = 104

// SocketPath returns the socket in the folder of a profile. It depends on no variable, and is in no temporary folder: an agent
// that may write there, as in a sandbox, could answer in place of the daemon.
func SocketPath(profile string) (string, error) {
	path := filepath.Join(profile, "socket")
	if len(path) >= maxSocket {
		return "", fmt.Errorf("frame: %s: the path of a socket has at most %d bytes; name a shorter folder with --profile", path, maxSocket-1)
	}
	return path, nil
}

// CheckFolder returns an error unless a folder is the user's own, and closed to all others. It may be no link.
func CheckFolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !owned(info) {
		return &os.PathError{Op: "check", Path: dir, Err: ErrForeign}
	}
	return nil
}

// CheckSocket returns an error unless a socket is the user's own, in a folder of the user's own.
func CheckSocket(path string) error {
	if err := CheckFolder(filepath.Dir(path)); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket || !owned(info) {
		return &os.PathError{Op: "check", Path: path, Err: ErrForeign}
	}
	return nil
}

// Conn is a connection to a daemon.
type Conn interface {
	io.ReadWriteCloser
	syscall.Conn
	SetDeadline(time.Time) error
}

// Dial connects to a daemon of the same user.
func Dial(path string) (Conn, error) {
	if err := CheckSocket(path); err != nil {
		return nil, err
	}
	c, err := dial(path)
	if err != nil {
		return nil, err
	}
	if err := CheckPeer(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// CheckPeer returns an error unless the other end is a process of the same user.
func CheckPeer(c syscall.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	uid, failed := -1, error(nil)
	if err := raw.Control(func(fd uintptr) { uid, failed = peer(fd) }); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if uid != os.Getuid() {
		return ErrForeign
	}
	return nil
}
