package natsstore_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// childEnv makes the test binary a server or a worker, as JSON of [childSpec].
const childEnv = "MORTISE_TEST_NATS_CHILD"

// childSpec is what a child process is.
type childSpec struct {
	// A server has a name, a folder and ports; a worker has a URL.
	Node, Dir, Host string
	Port, Routed    int
	Routes          []string
	URL, Name       string
	// Thread says that it enqueues there and dies before it has.
	Thread string
	// Via are the words before the command that starts it, such as those that put it into a network.
	Via []string `json:"-"`
}

// beChild does what a child does, if this process is one, until it is killed or its parent has gone.
func beChild() {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	var spec childSpec
	err := json.Unmarshal([]byte(text), &spec)
	switch {
	case err != nil:
	case spec.Node != "":
		err = beNode(spec)
	case spec.Thread != "":
		err = beDying(context.Background(), spec)
	default:
		err = beWorker(context.Background(), spec)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func beNode(spec childSpec) error {
	o := servertest.Options(spec.Dir)
	syncAlways(o)
	o.ServerName, o.Host, o.Port = spec.Node, spec.Host, spec.Port
	o.Cluster = server.ClusterOpts{Name: "test", Host: spec.Host, Port: spec.Routed}
	for _, r := range spec.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: r})
	}
	if _, err := servertest.Start(o); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

// What the workers do.
const (
	workThreads = 12
	workSteps   = 2
	workPause   = 50 * time.Millisecond
	workLease   = 3 * time.Second
)

func beWorker(ctx context.Context, spec childSpec) error {
	store, err := natsstore.Open(ctx, natsstore.Config{URL: spec.URL, Name: spec.Name, Patience: time.Minute})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	box, err := mailbox.New(ctx, workConfig(store, say))
	if err == nil {
		err = box.Start(ctx)
	}
	if err != nil {
		return err
	}
	say("ready")
	for i := 0; ; i++ {
		thread := fmt.Sprint("t", (os.Getpid()+i)%workThreads)
		sub, err := box.SubmitBackground(ctx, mailbox.Request{Thread: thread, Messages: []mailbox.Input{{Data: []byte("hello")}}})
		if err != nil {
			say("refused %v", err)
			continue
		}
		say("submitted %s", sub.Dispatch)
		<-time.After(workPause)
	}
}

func workConfig(store mailbox.Store, say func(format string, args ...any)) mailbox.Config {
	return mailbox.Config{
		Store: store, Runtime: worker{say}, Lease: workLease, Renew: workLease / 4, Poll: 100 * time.Millisecond, Workers: 4,
		MaxAttempts: 10_000, RetryDelay: time.Millisecond, MaxRetryDelay: 10 * time.Millisecond, GCInterval: -1,
		Queue: mailbox.QueueConfig{Skew: 100 * time.Millisecond}, Logger: slog.New(slog.DiscardHandler),
	}
}

// worker writes messages that say by which claim they were written; the last one ends the run.
type worker struct {
	say func(format string, args ...any)
}

// Run implements mailbox.Runtime.
func (w worker) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	w.say("began %s %d", j.Dispatch.Thread, j.Fence)
	done := mailbox.Result{Status: mailbox.RunDone, Termination: "natural", Response: "done"}
	for step := range workSteps {
		id := fmt.Sprintf("%s %d %d", j.Dispatch.ID, j.Fence, step)
		c := mailbox.Commit{ID: id, From: j.Messages + step, Append: []mailbox.Message{{ID: id, Run: j.Run.ID}}}
		if step == workSteps-1 {
			c.Result = done
		}
		if err := j.Commit(ctx, c); err != nil {
			return mailbox.Result{}, err
		}
	}
	return done, nil
}

// child is a process of this test.
type child struct {
	cmd   *exec.Cmd
	ready chan struct{}
	done  chan struct{}
}

// startChild starts one and hands each line that it says to hear.
func startChild(t *testing.T, spec childSpec, hear func(line string)) *child {
	t.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words := append(slices.Clone(spec.Via), self, "-test.run=^$")
	c := &child{cmd: exec.CommandContext(t.Context(), words[0], words[1:]...), ready: make(chan struct{}), done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	var trouble strings.Builder
	c.cmd.Stderr = &trouble
	in, errIn := c.cmd.StdinPipe() // a child ends with its parent
	out, errOut := c.cmd.StdoutPipe()
	if err := cmp.Or(errIn, errOut, c.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		lines := bufio.NewScanner(out)
		for first := true; lines.Scan(); first = false {
			if first {
				close(c.ready)
			}
			hear(lines.Text())
		}
		var exit *exec.ExitError
		if err := c.cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
			t.Errorf("a child ended by itself: %v: %s", err, trouble.String())
		}
		_ = in.Close()
	}()
	t.Cleanup(c.kill)
	return c
}

// kill ends a child at once.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have been killed before
	<-c.done
}

// await waits for the first line of a child.
func (c *child) await(t *testing.T) {
	t.Helper()
	select {
	case <-c.ready:
	case <-c.done:
		t.Fatal("a child did not start")
	case <-time.After(time.Minute):
		t.Fatal("a child did not start in time")
	}
}

// killSelf ends this process at once.
func killSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill() // it does not return
	}
	select {}
}
