package natsstore_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// What a child is: a server with the configuration in a file, or a worker on the store of a name.
const (
	serverEnv = "MORTISE_TEST_NATS_SERVER"
	workerEnv = "MORTISE_TEST_NATS_WORKER"
	// suiteThreads is how many threads children of the suite have: a worker is one, too.
	suiteThreads = 6
)

// workPause is between two submits of a worker.
const workPause = 250 * time.Millisecond

// beChild makes this process a server or a worker, if it was started as one. A worker is a child of the suite, too, which does the rest.
func beChild() {
	conf, name := os.Getenv(serverEnv), os.Getenv(workerEnv)
	switch {
	case conf != "":
		fmt.Fprintln(os.Stderr, beServer(conf))
		os.Exit(1)
	case name != "":
		go func() { fmt.Println("wrong", submit(context.Background(), name)) }()
	}
}

// beServer runs a server until the parent has gone.
func beServer(conf string) error {
	o, err := server.ProcessConfigFile(conf)
	if err != nil {
		return err
	}
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return errors.New("the server did not start")
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// submit submits to the threads of the suite until the process is killed.
func submit(ctx context.Context, name string) error {
	s, _, err := openNamed(ctx, name)
	if err != nil {
		return err
	}
	box, err := mailbox.New(ctx, mailbox.Config{Store: s, Runtime: none{}})
	if err != nil {
		return err
	}
	for i := os.Getpid(); ; i++ {
		sub, err := box.SubmitBackground(ctx, mailbox.Request{
			Thread: fmt.Sprint("t", i%suiteThreads), Messages: []mailbox.Input{{Data: []byte("hello")}}, MaxAttempts: 10_000, // others are killed
		})
		if err != nil {
			fmt.Println("refused", err)
		} else {
			fmt.Println("submitted", sub.Dispatch)
		}
		<-time.After(workPause)
	}
}

// none executes nothing.
type none struct{}

func (none) Run(context.Context, *mailbox.Job) (mailbox.Result, error) {
	return mailbox.Result{}, errors.New("it executes nothing")
}

// child is a process: this program with another variable.
type child struct {
	cmd         *exec.Cmd
	ready, done chan struct{}
	err         error
}

// startChild starts a process, which lives until it is killed or the test is over, and calls receive with each of its lines.
func startChild(t *testing.T, at host, receive func(line string), env ...string) *child {
	t.Helper()
	c := &child{ready: make(chan struct{}), done: make(chan struct{})}
	self, err := os.Executable()
	if err != nil {
		c.err = err
		close(c.done)
		return c
	}
	words := append(slices.Clone(at.via), self, "-test.run=^$")
	c.cmd = exec.Command(words[0], words[1:]...)
	c.cmd.Env = append(os.Environ(), env...)
	var trouble strings.Builder
	c.cmd.Stderr = &trouble
	alive, errIn := c.cmd.StdinPipe() // a child ends with its parent
	out, errOut := c.cmd.StdoutPipe()
	if c.err = cmp.Or(errIn, errOut); c.err == nil {
		c.err = c.cmd.Start()
	}
	if c.err != nil {
		close(c.done)
		return c
	}
	t.Cleanup(c.kill)
	go func() {
		defer close(c.done)
		defer alive.Close()
		lines := bufio.NewScanner(out)
		for first := true; lines.Scan(); first = false {
			if first {
				close(c.ready)
			}
			receive(lines.Text())
		}
		var exit *exec.ExitError
		if err := c.cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
			c.err = fmt.Errorf("a child ended by itself: %w: %s", cmp.Or(err, io.EOF), trouble.String())
			t.Error(c.err)
		}
	}()
	return c
}

// kill ends a process at once. It may have been killed before.
func (c *child) kill() {
	if c == nil || c.cmd == nil || c.cmd.Process == nil {
		return
	}
	_ = c.cmd.Process.Kill()
	<-c.done
}

// await waits for the first line of a process.
func (c *child) await() error {
	select {
	case <-c.ready:
		return nil
	case <-c.done:
		return cmp.Or(c.err, errors.New("a child was killed"))
	case <-time.After(time.Minute):
		return errors.New("a child did not start in time")
	}
}

// said is what the workers have said.
type said struct {
	t  *testing.T
	mu sync.Mutex

	submitted []string
	by        []int
	began     map[string]bool
	refused   int
	last      time.Time
	stall     time.Duration
}

// record keeps a line of the worker of a server.
func (s *said) record(worker int, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what, rest, _ := strings.Cut(line, " ")
	switch what {
	case "submitted":
		s.submitted = append(s.submitted, rest)
		s.by[worker]++
		now := time.Now()
		s.stall, s.last = max(s.stall, now.Sub(s.last)), now
	case "refused":
		s.refused++
	case "began":
		if s.began[rest] {
			s.t.Errorf("the claim %q was executed twice", rest)
		}
		s.began[rest] = true
	case "wrong":
		s.t.Errorf("worker %d: %s", worker, rest)
	}
}

// all is how many submits were acknowledged, of how many of them to one worker.
func (s *said) all() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.submitted)
}

func (s *said) of(worker int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[worker]
}

// await waits until a count is larger.
func (s *said) await(more int, count func() int) error {
	for before, start := count(), time.Now(); count() < before+more; {
		if time.Since(start) > time.Minute {
			return errors.New("no submit is acknowledged any more")
		}
		<-time.After(20 * time.Millisecond)
	}
	return nil
}

// stalled returns the longest time without an acknowledged submit since it was called last.
func (s *said) stalled() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	longest := max(s.stall, time.Since(s.last))
	s.stall, s.last = 0, time.Now()
	return longest.Round(time.Millisecond)
}

// check checks that what was acknowledged is there. The suite checks the rest.
func (s *said) check(on store.Store) {
	q, err := mailbox.New(s.t.Context(), mailbox.Config{Store: on})
	if err != nil {
		s.t.Error(err)
		return
	}
	list, err := q.Dispatches(s.t.Context(), mailbox.DispatchQuery{Limit: 1_000_000})
	if err != nil {
		s.t.Error(err)
		return
	}
	there := map[string]bool{}
	for i := range list {
		there[list[i].ID] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.submitted {
		if !there[id] {
			s.t.Errorf("dispatch %q was acknowledged and is lost", id)
		}
	}
	s.t.Logf("the workers: %d submits acknowledged, %d refused, %d executions; %d found", len(s.submitted), s.refused, len(s.began), len(there))
}
