//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// inherited lists the variables that a child gets from the host.
func inherited() []string { return []string{"PATH", "HOME", "LANG", "TMPDIR"} }

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
