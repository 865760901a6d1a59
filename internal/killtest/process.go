package killtest

import (
	"bufio"
	"io"
	"iter"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// Process is a child that lives. The caller reads [Process.Said] to its end, and calls [Process.Kill].
type Process struct {
	*os.Process

	t       *testing.T
	cmd     *exec.Cmd
	alive   io.Closer // a child ends with its parent
	out     *bufio.Reader
	trouble strings.Builder
	killed  atomic.Bool
}

// Start starts a child of a kind. Without one it returns nil, and the test has failed.
func Start(t *testing.T, kind string, l Life) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Error(err)
		return nil
	}
	p := &Process{t: t, cmd: exec.CommandContext(t.Context(), self, "-test.run=^$")}
	p.cmd.Env = append(os.Environ(), Variable(kind, l))
	p.cmd.Stderr = &p.trouble
	alive, err := p.cmd.StdinPipe()
	if err != nil {
		t.Error(err)
		return nil
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	p.Process, p.alive, p.out = p.cmd.Process, alive, bufio.NewReader(out)
	return p
}

// Kill ends the child, from any goroutine. What it has said before comes still.
func (p *Process) Kill() {
	p.killed.Store(true)
	_ = p.Process.Kill() // it may have ended by itself in this moment: Said looks
}

// Said are the lines that the child says, until it has ended. One that ended by itself fails the test.
func (p *Process) Said() iter.Seq[string] {
	return func(yield func(string) bool) {
		defer p.alive.Close()
		for more := true; ; {
			line, err := p.out.ReadString('\n')
			if err != nil { // half a line was not said
				break
			}
			more = more && yield(strings.TrimSuffix(line, "\n"))
		}
		_ = p.cmd.Wait()
		if !p.killed.Load() || p.cmd.ProcessState.Exited() && runtime.GOOS != "windows" {
			p.t.Errorf("a child ended by itself: %s", p.trouble.String())
		}
	}
}
