package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// State is what a server does at the moment.
type State string

// States of servers.
const (
	StateStarting   State = "starting"
	StateReady      State = "ready"
	StateRestarting State = "restarting" // it failed, and the back-off is not over
	StateClosed     State = "closed"
)

// Status describes a server to an operator. It has no secrets.
type Status struct {
	Name  string
	State State
	// Tools is how many it offers.
	Tools int
	// Restarts counts the starts after the first one, whether or not they succeeded.
	Restarts int
	// LastError is why it was closed or did not start the last time; empty when that never happened.
	LastError string
}

// relistPause is the least time between two listings of a server that keeps announcing changes.
const relistPause = time.Second

// server runs one server: it starts it, and starts it again when it has ended.
type server struct {
	cfg    *ServerConfig
	all    *Config
	log    *slog.Logger
	redact *strings.Replacer
	relist func() // is called when offered has changed

	mu     sync.Mutex
	status Status
	tools  []*tool
	live   *connection // nil while there is none
}

func newServer(all *Config, cfg *ServerConfig, relist func()) *server {
	return &server{
		cfg: cfg, all: all, log: all.Logger.With("mcp_server", cfg.Name), redact: cfg.redactor(), relist: relist,
		status: Status{Name: cfg.Name, State: StateStarting},
	}
}

// run keeps the server running until ctx is done. It calls first once, with the outcome of the first start when the server
// is required.
func (s *server) run(ctx context.Context, first func(error)) {
	first = once(first)
	wait := s.all.Backoff
	for {
		begun := time.Now()
		err := s.session(ctx, first)
		if ctx.Err() != nil {
			break
		}
		if time.Since(begun) > s.all.MaxBackoff {
			wait = s.all.Backoff
		}
		s.log.WarnContext(ctx, "mcp server is not running", "error", s.text(err), "retry_in", wait)
		if s.cfg.Required {
			first(fmt.Errorf("mcp: server %q did not start: %s", s.cfg.Name, s.text(err)))
		}
		first(nil)
		pause(wait, ctx.Done(), nil)
		if ctx.Err() != nil {
			break
		}
		wait = min(2*wait, s.all.MaxBackoff)
		s.set(func(t *Status) { t.State, t.Restarts = StateStarting, t.Restarts+1 })
	}
	s.set(func(t *Status) { t.State = StateClosed })
	first(nil)
}

// session runs the server once, and returns why that has ended.
func (s *server) session(ctx context.Context, first func(error)) error {
	c, err := s.dial(ctx)
	if err == nil {
		err = s.use(ctx, c, first)
	}
	if ctx.Err() != nil {
		err = errClosed
	}
	text := s.text(err)
	s.mu.Lock()
	s.live = nil // no new call can use it
	s.status.State, s.status.LastError = StateRestarting, text
	s.mu.Unlock()
	if c != nil {
		c.close(err)
	}
	return err
}

// use offers the tools of a connection until it is over.
func (s *server) use(ctx context.Context, c *connection, first func(error)) error {
	var listed time.Time
	for {
		tools, err := s.list(ctx, c)
		if err != nil {
			return err
		}
		s.offer(c, tools)
		s.log.InfoContext(ctx, "mcp server is ready", "tools", len(tools))
		first(nil)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.over:
			return c.cause
		case <-c.changed:
		}
		pause(time.Until(listed.Add(relistPause)), ctx.Done(), c.over)
		listed = time.Now()
	}
}

// offer makes a connection and its tools those that calls use.
func (s *server) offer(c *connection, tools []*tool) {
	s.mu.Lock()
	s.live, s.tools = c, tools
	s.mu.Unlock()
	s.relist()
	s.set(func(t *Status) { t.State, t.Tools = StateReady, len(tools) })
}

// call calls a tool. The error is for the model.
func (s *server) call(ctx context.Context, name string, args any) (*sdk.CallToolResult, error) {
	s.mu.Lock()
	c, status := s.live, s.status
	if c != nil {
		c.calls.Add(1) // before close can wait
	}
	s.mu.Unlock()
	if c == nil {
		return nil, fmt.Errorf("server %s is not running (%s): %s", s.cfg.Name, status.State, status.LastError)
	}
	defer c.calls.Done()
	got, err := c.call(ctx, name, args, s.cfg.CallTimeout)
	switch {
	case err == nil:
		return got, nil
	case errors.Is(err, errOver):
		return nil, fmt.Errorf("server %s has ended: %s", s.cfg.Name, s.text(c.cause))
	default:
		return nil, errors.New(s.text(err))
	}
}

func (s *server) offered() []*tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

func (s *server) health() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *server) set(change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
}

// text is an error as people and models may read it: short, and without secrets.
func (s *server) text(err error) string { return clip(s.redact.Replace(err.Error()), maxErrorText) }

func once(f func(error)) func(error) {
	var o sync.Once
	return func(err error) { o.Do(func() { f(err) }) }
}

// pause waits, at most until one of two channels is closed. A nil channel never is.
func pause(d time.Duration, one, other <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-one:
	case <-other:
	}
}
