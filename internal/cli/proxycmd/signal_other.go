//go:build !unix

package proxycmd

import (
	"os"
	"os/exec"
	"os/signal"
)

// agentSignals receives what is for the agent.
func agentSignals() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, os.Interrupt)
	return c, func() { signal.Stop(c) }
}

// passSignal ends the agent, unless the console has sent it the same.
func passSignal(p *os.Process, _ os.Signal, terminal bool) {
	if !terminal {
		_ = p.Kill()
	}
}

func exitCode(e *exec.ExitError) int { return e.ExitCode() }
