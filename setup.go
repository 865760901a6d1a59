package mortise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/phases"
)

// setup is what executions that begin now use. Only uses and retired change, under Runtime.mu.
type setup struct {
	agents  map[string]Agent
	byName  string // the default agent
	plugins []phases.Plugin
	timeout time.Duration
	masks   bool // compactions replace long tool outputs by handles

	uses    int
	retired bool
	idle    chan struct{} // closed when it is retired and not used
}

func setupOf(cfg *Config) *setup {
	return &setup{
		agents: maps.Clone(cfg.Agents), byName: cfg.Default, plugins: cfg.Plugins, timeout: cfg.HookTimeout,
		masks: cfg.Compaction != nil && cfg.Compaction.Policy.MaskTokens > 0, idle: make(chan struct{}),
	}
}

// DefaultAgent is the agent of runs that name none; empty if there is none.
func (r *Runtime) DefaultAgent() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.setup.byName
}

// Reconfigure replaces agents and plugins: Agents, Default, Plugins and HookTimeout of cfg, and
// what [compaction.Compactor.Reconfigure] takes of cfg.Compaction. The rest of cfg is not read. After an
// error nothing has changed.
//
// Executions under way end with what they began with; a run that waits continues with what there
// is then, and fails if its agent is gone. Idle is closed when no execution uses anymore what
// was replaced: close its plugins, models and tools then.
func (r *Runtime) Reconfigure(cfg Config) (idle <-chan struct{}, err error) {
	cfg, err = cfg.checked()
	if err == nil && (cfg.Compaction == nil) != (r.compactor == nil) {
		err = errors.New("Config.Compaction: a Runtime compacts from its beginning or never")
	}
	if err == nil && r.compactor != nil {
		c := *cfg.Compaction
		c.Keep = r.keeps(&c)
		err = r.compactor.Reconfigure(c)
	}
	if err != nil {
		return nil, fmt.Errorf("mortise: %w", err)
	}
	next := setupOf(&cfg)
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.setup
	r.setup, was.retired = next, true
	was.unused()
	return was.idle, nil
}

// hooks makes the phase runtime of an agent.
func (s *setup) hooks(a Agent, logger *slog.Logger, builtins []phases.Plugin, note func(phases.Record)) (*phases.Runtime, error) {
	return phases.New(phases.Config{
		Plugins: s.plugins, Builtins: builtins, Active: a.Plugins, HookTimeout: s.timeout, Record: note, Logger: logger,
	})
}

// unused closes idle if nothing uses the setup any more. Runtime.mu is held.
func (s *setup) unused() {
	if s.retired && s.uses == 0 {
		close(s.idle)
	}
}

type setupKey struct{}

// setups is a mailbox.Observer that gives each execution the setup of its beginning.
type setups struct{ r *Runtime }

// Execution implements mailbox.Observer.
func (o setups) Execution(ctx context.Context, _ *mailbox.Job) (_ context.Context, end func(mailbox.Outcome, error)) {
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	s := o.r.setup
	s.uses++
	return context.WithValue(ctx, setupKey{}, s), func(mailbox.Outcome, error) {
		o.r.mu.Lock()
		defer o.r.mu.Unlock()
		s.uses--
		s.unused()
	}
}

// Operation implements mailbox.Observer.
func (setups) Operation(ctx context.Context, _ mailbox.Operation) (_ context.Context, end func(string, error)) {
	return ctx, func(string, error) {}
}

// Settled implements mailbox.Observer.
func (setups) Settled(context.Context, mailbox.Dispatch, mailbox.Run) {}
