//go:build unix

package proxycmd

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// agentSignals receives what is for the agent.
func agentSignals() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	return c, func() { signal.Stop(c) }
}

// passSignal passes a signal on. What a terminal sends the agent has received already.
func passSignal(p *os.Process, sig os.Signal, terminal bool) {
	if terminal && (sig == syscall.SIGINT || sig == syscall.SIGQUIT) {
		return
	}
	_ = p.Signal(sig)
}

// exitCode is that of a process, as shells have it for one that a signal ended.
func exitCode(e *exec.ExitError) int {
	const signalled = 128
	if w, ok := e.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return signalled + int(w.Signal())
	}
	return e.ExitCode()
}
