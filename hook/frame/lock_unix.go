//go:build unix

package frame

import (
	"os"
	"syscall"
)

// Lock takes a lock that ends with the process, and returns nil where another process has it.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, nil //nolint:nilnil,nilerr // another process has it
	}
	return f, nil
}

// Detached are the attributes of a process that outlives the one that starts it.
func Detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
