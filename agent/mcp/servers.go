package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mortise-dev/mortise/abi"
)

// Servers is a set of running servers. It is an agent.Tools, and safe for concurrent use. Close it.
type Servers struct {
	all    []*server
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu     sync.Mutex // held to replace listed
	listed atomic.Pointer[catalog]
}

// catalog is what all servers offer.
type catalog struct {
	tools  []abi.Tool
	byName map[string]*tool
}

// Open starts all servers at once, and returns when each has started or failed. A server that fails is reported by
// [Servers.Health] and retried, or, if it is required, ends the others and fails Open. The servers outlive ctx.
func Open(ctx context.Context, cfg Config) (*Servers, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Servers{}
	s.listed.Store(&catalog{})
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	first := make(chan error, len(cfg.Servers))
	for i := range cfg.Servers {
		s.all = append(s.all, newServer(&cfg, &cfg.Servers[i], s.relist))
	}
	for _, one := range s.all {
		s.group.Go(func() { one.run(life, func(err error) { first <- err }) })
	}
	var errs []error
	for range s.all {
		select {
		case err := <-first:
			errs = append(errs, err)
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("mcp: open: %w", context.Cause(ctx)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// Close ends the sessions and the children, and waits for them and all goroutines. When ctx is done before, the rest
// ends in the background.
func (s *Servers) Close(ctx context.Context) error {
	s.cancel()
	ended := make(chan struct{})
	go func() {
		s.group.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("mcp: close: servers are still ending: %w", context.Cause(ctx))
	}
}

// relist collects the tools of all servers, in the order of the config.
func (s *Servers) relist() {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := &catalog{byName: make(map[string]*tool)}
	for _, one := range s.all {
		for _, t := range one.offered() {
			next.tools = append(next.tools, t.def)
			next.byName[t.def.Name] = t
		}
	}
	s.listed.Store(next)
}

// Tools lists the tools of all servers, with those of a server that is being restarted.
func (s *Servers) Tools() []abi.Tool { return append([]abi.Tool(nil), s.listed.Load().tools...) }

// CallTool calls a tool on its server. The error is that of ctx; any other failure is an error result.
func (s *Servers) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	out := abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolError}
	t := s.listed.Load().byName[call.Name]
	if t == nil {
		out.Message = fmt.Sprintf("tool '%.80s' is not offered, or not any longer", call.Name)
		return out, nil
	}
	if err := t.check(call.Arguments); err != nil {
		out.Message = "Invalid arguments: " + clip(err.Error(), maxErrorText)
		return out, nil
	}
	got, err := t.server.call(ctx, t.remote, call.Arguments)
	switch {
	case err == nil:
		t.server.render(&out, got)
	case ctx.Err() != nil:
		return abi.ToolResult{}, fmt.Errorf("mcp: server %q: tool %.80q: %w", t.server.cfg.Name, t.remote, context.Cause(ctx))
	default:
		out.Message = "Execution failed: " + clip(err.Error(), maxErrorText)
	}
	return out, nil
}

// Health reports on each server, in the order of the config.
func (s *Servers) Health() []Status {
	out := make([]Status, len(s.all))
	for i, one := range s.all {
		out[i] = one.health()
	}
	return out
}
