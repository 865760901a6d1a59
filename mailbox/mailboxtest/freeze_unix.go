//go:build unix

package mailboxtest

import (
	"os"
	"syscall"
)

// freeze stops a process, thaw lets it continue.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func thaw(p *os.Process) error   { return p.Signal(syscall.SIGCONT) }
