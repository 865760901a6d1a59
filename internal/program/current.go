package program

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/serve"
)

// current is what a reload replaces: a config, and what was opened for it. It does not change.
type current struct {
	cfg     *Setup
	parts   *Parts
	servers servers
}

// next opens what another config names, and takes over what is the same. It is to be closed also after an error.
func (l *current) next(ctx context.Context, cfg *Setup, logger *slog.Logger) (*current, error) {
	out := &current{cfg: cfg}
	cfg.Home, cfg.observe, cfg.ThreadTools = l.cfg.Home, l.cfg.observe, l.cfg.ThreadTools
	var err error
	if cfg.Clients, err = OpenModels(cfg); err != nil {
		return out, err
	}
	if out.parts, err = l.parts.renew(ctx, cfg, logger); err != nil {
		return out, err
	}
	out.servers, err = openServers(ctx, cfg, logger, l.servers)
	return out, err
}

// closeExcept closes what another one does not use.
func (l *current) closeExcept(ctx context.Context, other *current, logger *slog.Logger) {
	err := l.servers.closeExcept(ctx, other.servers)
	if err != nil {
		logger.WarnContext(ctx, "an MCP server that a reload removed does not end", "error", err)
	}
	if l.parts == nil {
		return
	}
	if err := l.parts.closeExcept(ctx, other.parts); err != nil {
		logger.WarnContext(ctx, "a module that a reload removed does not end", "error", err)
	}
}

// runtime is the part of the runtime's config that a reload replaces.
func (l *current) runtime() (mortise.Config, error) {
	agents, err := liveAgents(l.cfg, l.parts.Tools, l.servers)
	cfg := mortise.Config{
		Agents: agents, Default: l.cfg.DefaultAgent, Plugins: l.parts.Set.Plugins(), HookTimeout: l.cfg.HookTimeout(),
	}
	if err == nil && l.parts.Summarizer != nil {
		c, failed := CompactionConfig(l.parts)
		cfg.Compaction, err = &c, failed
	}
	return cfg, err
}

// access is the part of the server's config that a reload replaces.
func (l *current) access() (serve.Config, error) {
	tokens, err := l.cfg.tokens()
	cfg := serve.Config{Tokens: tokens, Origins: l.cfg.Serve.Origins, Hosts: l.cfg.Serve.Hosts}
	for name, a := range l.cfg.Agents {
		cfg.Agents = append(cfg.Agents, serve.AgentInfo{Name: name, Model: l.cfg.Models[a.Model].Name})
	}
	return cfg, err
}

// retireTimeout is how long calls in flight of modules and servers that a reload removed may take.
const retireTimeout = 5 * time.Minute

// retiring closes what reloads have replaced, one after the other: what the one before has taken
// over from the one before that, executions of both may use.
type retiring struct {
	end   context.Context //nolint:containedctx // of the program
	stop  context.CancelFunc
	last  chan struct{}
	ended sync.WaitGroup
}

func newRetiring(ctx context.Context) *retiring {
	end, stop := context.WithCancel(context.WithoutCancel(ctx))
	none := make(chan struct{})
	close(none)
	return &retiring{end: end, stop: stop, last: none}
}

// add closes what another one does not use, once all channels are closed.
func (r *retiring) add(was, now *current, logger *slog.Logger, idle ...<-chan struct{}) {
	before, done := r.last, make(chan struct{})
	r.last = done
	r.ended.Go(func() {
		defer close(done)
		<-before
		for _, c := range idle {
			select {
			case <-c:
			case <-r.end.Done():
			}
		}
		ctx, cancel := context.WithTimeout(r.end, retireTimeout)
		defer cancel()
		was.closeExcept(ctx, now, logger)
	})
}

// close does not wait for executions any more.
func (r *retiring) close() {
	r.stop()
	r.ended.Wait()
}
