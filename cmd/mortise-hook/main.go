// Command mortise-hook is what an agent starts at each event of its hooks. It passes the event to the daemon of
// mortise and prints the answer. It reads no event: when the daemon does not answer in time, the policy file decides what to print.
//
//	mortise-hook PROFILE DIALECT EVENT [closed]
//
// PROFILE is the folder that mortise hook install made. With "closed" a client that finds no policy fails, so that the
// line in which it is registered denies the call. Every other exit code is 0, and standard error stays empty.
package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/hook/frame"
)

const (
	// patience is how long the agent waits for the client, which is less than any agent's own timeout.
	patience = 5 * time.Second
	// margin is what is left for the answer by policy.
	margin = 250 * time.Millisecond
	// startTime is how long a daemon may take to listen, and a quarter of what a variable adds to patience.
	startTime = 500 * time.Millisecond
	pollTime  = 5 * time.Millisecond
	// maxPatience bounds the variable that changes patience: agents wait 30 s, and some continue then.
	maxPatience = 25 * time.Second
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout))
}

// call is one event on its way.
type call struct {
	dir, dialect, event string
	closed              bool
	deadline            time.Time
	policy              *frame.Policy
	socket              string
}

func run(args []string, in io.Reader, out io.Writer) int {
	if len(args) < 3 {
		return 1
	}
	c := &call{dir: args[0], dialect: args[1], event: args[2], closed: len(args) > 3 && args[3] == "closed"}
	c.deadline = time.Now().Add(wait() - margin)
	var err error
	if c.socket, err = frame.SocketPath(c.dir); err == nil {
		c.policy, err = frame.ReadPolicy(c.dir)
	}
	if err != nil {
		if c.closed {
			return 1
		}
		return 0
	}
	type answer struct {
		reply *frame.Reply
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		reply, err := c.ask(in)
		answers <- answer{reply, err}
	}()
	timer := time.NewTimer(time.Until(c.deadline))
	select {
	case a := <-answers:
		if a.err == nil {
			_, _ = out.Write(a.reply.Stdout)
			return int(a.reply.Exit)
		}
	case <-timer.C:
	}
	return c.byPolicy(out)
}

// wait is how long to wait. A variable may say more, up to a bound, for slow machines. Less would be a switch: a project may set
// variables of its agent, and events after which an agent continues without an answer would pass unseen.
func wait() time.Duration {
	ms, _ := strconv.Atoi(os.Getenv("MORTISE_HOOK_WAIT_MS"))
	return min(max(time.Duration(ms)*time.Millisecond, patience), maxPatience)
}

// byPolicy answers without the daemon.
func (c *call) byPolicy(out io.Writer) int {
	r, ok := c.policy.Rule(c.dialect, c.event)
	switch {
	case ok:
		_, _ = io.WriteString(out, r.Stdout)
	case c.closed:
		return 1
	}
	return 0
}

// ask sends the event to the daemon, which is started if it is not there.
func (c *call) ask(in io.Reader) (*frame.Reply, error) {
	event, err := io.ReadAll(io.LimitReader(in, frame.MaxInput+1))
	if err != nil {
		return nil, err
	}
	if len(event) > frame.MaxInput {
		_, _ = io.Copy(io.Discard, in) // or the agent would see a broken pipe
		return nil, frame.ErrTooLarge
	}
	for range 2 {
		var reply *frame.Reply
		switch reply, err = c.exchange(event); {
		case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET): // it was ending, and did not read all of the event
		case err != nil || reply.Status == frame.StatusOK:
			return reply, err
		default:
			err = errors.New("the daemon does not speak this protocol")
		}
	}
	return nil, err
}

func (c *call) exchange(event []byte) (*frame.Reply, error) {
	conn, err := c.connect()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(c.deadline); err != nil {
		return nil, err
	}
	cwd, _ := os.Getwd()
	hello := &frame.Hello{
		Proto: frame.Proto, Dialect: c.dialect, Event: c.event, Cwd: cwd, DeadlineMS: int(time.Until(c.deadline).Milliseconds()),
		Headless: headless(c.dialect),
	}
	if err := frame.Write(conn, hello.Marshal()); err != nil {
		return nil, err
	}
	if err := frame.Write(conn, event); err != nil {
		return nil, err
	}
	return frame.ReadReply(conn)
}

// headless reports whether no person is in front of the agent. Nothing else of the environment is sent.
func headless(dialect string) bool {
	return dialect == "claude" && strings.HasPrefix(os.Getenv("CLAUDE_CODE_ENTRYPOINT"), "sdk")
}

// connect connects to the daemon, and starts it once if that fails.
func (c *call) connect() (frame.Conn, error) {
	conn, err := frame.Dial(c.socket)
	if err == nil || errors.Is(err, frame.ErrForeign) || len(c.policy.Daemon) == 0 {
		return conn, err
	}
	c.start()
	limit := time.Now().Add(startTime + max(0, wait()-patience)/4)
	for time.Now().Before(limit) && time.Now().Before(c.deadline) {
		<-time.After(pollTime)
		if conn, err = frame.Dial(c.socket); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// start starts a daemon that outlives the agent. Of several clients one does it.
func (c *call) start() {
	lock, err := frame.Lock(filepath.Join(c.dir, frame.StartFile))
	if err != nil || lock == nil {
		return
	}
	defer lock.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	log, err := os.OpenFile(filepath.Join(c.dir, frame.LogFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer log.Close()
	p, err := os.StartProcess(c.policy.Daemon[0], c.policy.Daemon, &os.ProcAttr{
		Dir: c.dir, Env: c.environment(), Files: []*os.File{null, null, log}, Sys: frame.Detached(),
	})
	if err == nil {
		_ = p.Release()
	}
}

// environment is what the daemon gets of the agent's environment, which has tokens in it.
func (c *call) environment() []string {
	allowed := append([]string{"HOME", "PATH", "USER", "LANG", "TZ"}, c.policy.Env...)
	var out []string
	for _, name := range allowed {
		if v, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}
