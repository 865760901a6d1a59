//go:build !unix

package frame

import (
	"errors"
	"os"
	"syscall"
)

// Lock takes a lock that ends with the process.
func Lock(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// Detached are the attributes of a process that outlives the one that starts it.
func Detached() *syscall.SysProcAttr { return nil }
