//go:build unix

package serve_test

import (
	"os/exec"
	"syscall"
)

// group gives a command a process group of its own, which is killed with it: a browser is many processes.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
