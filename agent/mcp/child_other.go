//go:build !unix

package mcp

import "os/exec"

// inherited lists the variables that a child gets from the host.
func inherited() []string {
	return []string{"PATH", "PATHEXT", "SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "HOME", "LANG", "TEMP", "TMP", "TMPDIR"}
}

func ownGroup(*exec.Cmd) {}

// terminateGroup kills: there is no signal that asks a process to end.
func terminateGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
