package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// child is the process of a server, with our ends of its pipes.
type child struct {
	cmd           *exec.Cmd
	stdin, stdout *os.File
	grace         time.Duration
	once          sync.Once
	readers       sync.WaitGroup // of its standard error
	exited        chan struct{}
}

// transport starts what a session speaks through, and sets the connection's stop.
func (s *server) transport(ctx context.Context, c *connection) (sdk.Transport, error) {
	if s.cfg.URL != "" {
		return s.overHTTP(ctx, c), nil
	}
	p, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	c.stop = p.stop
	return &stream{child: p, in: bufio.NewReaderSize(p, 64<<10)}, nil
}

// start starts the child in a process group of its own. The context is for the log: a child outlives it.
func (s *server) start(ctx context.Context) (*child, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), s.cfg.Command, s.cfg.Args...) //nolint:gosec // the operator's command
	cmd.Dir, cmd.Env = s.cfg.Dir, s.environment()
	ownGroup(cmd)
	var files []*os.File // read and write ends of input, output, error
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		files = append(files, r, w)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &child{cmd: cmd, stdin: files[1], stdout: files[2], grace: s.all.Grace, exited: make(chan struct{})}
	stderr := files[4]
	files = []*os.File{files[0], files[3], files[5]} // those of the child
	p.readers.Go(func() {
		defer func() { _ = stderr.Close() }()
		s.logLines(context.WithoutCancel(ctx), stderr)
	})
	go p.reap(stderr)
	return p, nil
}

// environment is that of a child: what programs need to run, and what is configured.
func (s *server) environment() []string {
	var env []string
	for _, name := range inherited() {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range s.cfg.Env {
		env = append(env, name+"="+v) // the last one counts
	}
	return env
}

// reap waits for the process, and kills what it left behind. What escaped its group may hold the pipes: they are read for
// a moment only.
func (p *child) reap(stderr *os.File) {
	_ = p.cmd.Wait() // ProcessState has it
	killGroup(p.cmd)
	close(p.exited)
	soon := time.Now().Add(time.Second)
	_ = p.stdout.SetReadDeadline(soon)
	_ = stderr.SetReadDeadline(soon)
}

// Read reads the output. The error at its end names how the process ended.
func (p *child) Read(b []byte) (int, error) {
	n, err := p.stdout.Read(b)
	if err == nil {
		return n, nil
	}
	if p.ends(time.Second) {
		return n, fmt.Errorf("the process has ended: %v (see its standard error in the log, at debug level)", p.cmd.ProcessState)
	}
	return n, errors.New("it closed its output")
}

// stop ends the process: its input is closed; then it gets SIGTERM; then its group is killed. Stop returns when it has
// ended, and may be called more than once.
func (p *child) stop() {
	p.once.Do(func() {
		_ = p.stdin.Close()
		if !p.ends(p.grace) {
			terminateGroup(p.cmd)
			if !p.ends(p.grace) {
				killGroup(p.cmd)
			}
		}
		<-p.exited
		p.readers.Wait()
		_ = p.stdout.Close()
	})
}

// ends reports whether the process ends within a time.
func (p *child) ends(within time.Duration) bool {
	pause(within, p.exited, nil)
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}
