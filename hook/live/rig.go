package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/daemon"
	"github.com/mortise-dev/mortise/hook/frame"
	"github.com/mortise-dev/mortise/hook/install"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/phases"
)

// Config makes a [Rig].
type Config struct {
	// Dialect names the agent, Program is its command, Client the path of mortise-hook.
	Dialect, Program, Client string
	// Dir is an empty folder for everything.
	Dir     string
	Plugins []phases.Plugin
	// Edit changes the program of the daemon, if not nil.
	Edit func(*hook.Program)
	// Events are those to register, nil for those in which a plugin has a part.
	Events []string
	// Untrusted leaves Codex's hooks without trust.
	Untrusted bool
	// Reply is the model.
	Reply  func(providertest.Query) providertest.Answer
	Models map[string]providertest.ModelSpec
	Logger *slog.Logger
}

// Rig is an agent with hooks and a model, all on this machine.
type Rig struct {
	cfg     Config
	dialect *hook.Dialect
	agent   *install.Agent
	policy  *frame.Policy
	server  *providertest.Server
	daemon  *daemon.Server
	cancel  context.CancelFunc
	done    chan error

	mu      sync.Mutex
	queries []providertest.Query
}

// New builds a rig. Its caller closes it.
func New(ctx context.Context, cfg Config) (*Rig, error) {
	r := &Rig{cfg: cfg, done: make(chan error, 1), cancel: func() {}}
	var err error
	if r.agent, err = install.AgentOf(cfg.Dialect); err != nil {
		return nil, err
	}
	r.dialect = r.agent.Dialect
	for _, dir := range []string{r.Home(), r.Project(), r.profile()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("live: %w", err)
		}
	}
	models := cfg.Models
	if models == nil {
		models = map[string]providertest.ModelSpec{anthropicModel: {}, openaiModel: {Window: 400_000, MaxOutput: 128_000}, chatModel: {Window: 1_000_000, MaxOutput: 64_000, Thinking: providertest.ThinkingNone}}
	}
	if r.server, err = providertest.New( //nolint:contextcheck // Close ends it
		providertest.Config{Reply: r.reply, Models: models}); err != nil {
		return nil, err
	}
	if err := errors.Join(r.StartDaemon(ctx), r.install(ctx)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Home is the folder of the agent's user.
func (r *Rig) Home() string { return filepath.Join(r.cfg.Dir, "home") }

// Project is where the agent works.
func (r *Rig) Project() string { return filepath.Join(r.cfg.Dir, "project") }

func (r *Rig) profile() string { return filepath.Join(r.cfg.Dir, "profile") }

// Tickets are the suspended calls.
func (r *Rig) Tickets() *hook.Tickets {
	return hook.NewTickets(filepath.Join(r.profile(), daemon.TicketFolder))
}

// Record is the file of the record, with the events themselves.
func (r *Rig) Record() string { return filepath.Join(r.profile(), daemon.RecordFile) }

// Queries are the requests to the model so far.
func (r *Rig) Queries() []providertest.Query {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.queries)
}

func (r *Rig) reply(q providertest.Query) providertest.Answer {
	r.mu.Lock()
	r.queries = append(r.queries, q)
	r.mu.Unlock()
	return r.cfg.Reply(q)
}

// load makes the program of the plugins.
func (r *Rig) load(context.Context) (*daemon.Loaded, error) {
	trace := hook.NewTrace()
	runtime, err := phases.New(phases.Config{Plugins: r.cfg.Plugins, Record: trace.Record, Logger: r.cfg.Logger})
	if err != nil {
		return nil, err
	}
	p := &hook.Program{Runtime: runtime, Trace: trace, RepairTokens: -1}
	for _, plugin := range r.cfg.Plugins {
		p.Plugins = append(p.Plugins, plugin.Describe())
	}
	if r.cfg.Edit != nil {
		r.cfg.Edit(p)
	}
	return &daemon.Loaded{Program: p, Full: true}, nil
}

// StartDaemon starts the daemon in this process, New does so, too.
func (r *Rig) StartDaemon(ctx context.Context) error {
	l, err := r.load(ctx)
	if err != nil {
		return err
	}
	r.policy = policyOf(l.Program)
	if err := hook.WriteFile(filepath.Join(r.profile(), frame.PolicyFile), r.policy.Marshal()); err != nil {
		return err
	}
	r.daemon, err = daemon.New(daemon.Config{
		Dir: r.profile(), Load: r.load, Logger: r.cfg.Logger,
		Policy: func(*daemon.Loaded) *frame.Policy { return r.policy },
	})
	if err != nil {
		return err
	}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() { r.done <- r.daemon.Serve(ctx) }()
	return nil
}

// StopDaemon ends the daemon. The rig stays usable: its client then answers by the policy.
func (r *Rig) StopDaemon() error {
	if r.daemon == nil {
		return nil
	}
	r.cancel()
	r.daemon = nil
	return <-r.done
}

// policyOf is a policy without a daemon to start.
func policyOf(p *hook.Program) *frame.Policy {
	out := &frame.Policy{}
	for _, name := range hook.Dialects() {
		d, err := hook.DialectOf(name)
		if err != nil {
			continue
		}
		for event, spec := range d.Events {
			closed := p.Closed(spec)
			stdout, _ := d.PolicyOutput(spec, closed, "mortise did not answer in time")
			out.Rules = append(out.Rules, frame.Rule{Dialect: name, Event: event, Closed: closed, Stdout: stdout})
		}
	}
	return out
}

// install registers the hooks in the agent's own home.
func (r *Rig) install(ctx context.Context) error {
	l, err := r.load(ctx)
	if err != nil {
		return err
	}
	events := slices.Clone(r.cfg.Events)
	if events == nil {
		for name, spec := range r.dialect.Events {
			if l.Program.Wants(spec) {
				events = append(events, name)
			}
		}
	}
	file := r.File()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("live: %w", err)
	}
	if r.dialect.Shim {
		script, err := r.agent.Script(r.cfg.Client, r.profile(), events, l.Program.Closed)
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(file, script, 0o600), r.prepare(ctx))
	}
	entries := install.Entries(r.dialect, r.cfg.Client, r.profile(), events, l.Program.Closed)
	if _, err := install.Edit(file, false, func(b []byte) ([]byte, error) { return r.agent.Added(b, r.mark(), entries) }); err != nil {
		return err
	}
	return r.prepare(ctx)
}

// File is the agent's settings.
func (r *Rig) File() string {
	return r.agent.File(install.ScopeUser, func(string) string { return "" }, r.Home(), r.Project())
}

func (r *Rig) mark() *regexp.Regexp { return install.Mark(r.profile(), r.dialect.Name) }

// Close ends what runs.
func (r *Rig) Close() error {
	err := r.StopDaemon()
	if r.server != nil {
		err = errors.Join(err, r.server.Close())
	}
	return err
}

// runTime bounds a run of an agent.
const runTime = 3 * time.Minute
