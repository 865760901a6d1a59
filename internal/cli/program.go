package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/serve"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/thread"
)

// program is everything that mortise serve and live runs consist of.
type program struct {
	cfg       *Config // of the start; now has that of the latest reload
	logger    *slog.Logger
	modules   *modules
	runtime   *mortise.Runtime
	server    *serve.Server
	proxy     *proxyListener // nil without serve.proxy
	telemetry telemetry

	// live is a program that executes one run for the terminal and serves no clients.
	live bool
	out  *progress // of the compilation of modules

	store   store.Store
	records *thread.Recorder // nil keeps none
	inbox   inboxStore

	listeners sync.WaitGroup

	// read reads the config again.
	read      func() (*Config, error)
	reloading sync.Mutex
	// now is replaced while reloading is held.
	now      atomic.Pointer[current]
	retiring *retiring
}

// openProgram opens and connects what the config names. It must be closed also after an error.
func openProgram(ctx context.Context, cfg *Config, logger *slog.Logger) (*program, error) {
	p := newProgram(ctx, cfg, logger, newProgress(io.Discard, true))
	err := p.open(ctx, p.openStores, p.openTelemetry, p.openModules, p.openServers, p.openRuntime, p.openServer, p.openProxy)
	return p, err
}

// openLive is openProgram without a server.
func openLive(ctx context.Context, cfg *Config, logger *slog.Logger, out *progress) (*program, error) {
	p := newProgram(ctx, cfg, logger, out)
	p.live = true
	err := p.open(ctx, p.openStores, p.openTelemetry, p.openModules, p.openServers, p.openRuntime)
	return p, err
}

func newProgram(ctx context.Context, cfg *Config, logger *slog.Logger, out *progress) *program {
	p := &program{cfg: cfg, logger: logger, out: out, modules: newModules(), retiring: newRetiring(ctx)}
	p.now.Store(&current{cfg: cfg})
	return p
}

func (p *program) open(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return with(ExitConfig, err)
		}
	}
	return nil
}

// openStores opens the store of the config. Without one everything is kept in memory.
func (p *program) openStores(ctx context.Context) (err error) {
	if p.cfg.home, err = p.cfg.openHome(ctx, p.logger); err != nil {
		return err
	}
	h := p.cfg.home
	if h == nil {
		if !p.live {
			p.logger.WarnContext(ctx, "no store: runs and threads are lost when the process ends")
		}
		p.store = memstore.New()
		return p.openInbox(ctx)
	}
	p.store = h.store
	if !p.cfg.Record.Disabled {
		if p.records, err = thread.NewRecorder(ctx, h.store, thread.RecordConfig{Keep: p.cfg.Record.Keep, Source: p.source()}); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	return p.openInbox(ctx)
}

// source is how decision records name the command.
func (p *program) source() string {
	if p.live {
		return "run"
	}
	return "serve"
}

// openInbox opens the inbox. Without a store and a folder of tasks it is in memory.
func (p *program) openInbox(ctx context.Context) (err error) {
	p.inbox, err = openInbox(ctx, p.cfg, p.logger)
	return err
}

// openModules loads plugins and policies.
func (p *program) openModules(ctx context.Context) (err error) {
	if p.cfg.models, err = openModels(p.cfg); err != nil {
		return err
	}
	c := newCollector()
	c.swapped = p.modules.rolledBack
	p.now.Load().parts, err = assemble(ctx, p.cfg, p.logger, p.out, c)
	if err == nil {
		p.modules.adopt(p.now.Load().parts)
	}
	return err
}

// openServers starts the MCP servers.
func (p *program) openServers(ctx context.Context) (err error) {
	p.now.Load().servers, err = openServers(ctx, p.cfg, p.logger, nil)
	return err
}

// renewals is how often a lease is renewed before it would end.
const renewals = 3

func (p *program) openRuntime(ctx context.Context) error {
	cfg, err := p.now.Load().runtime()
	if err != nil {
		return err
	}
	cfg.Store, cfg.Inbox, cfg.Shared, cfg.Words, cfg.Logger = p.store, p.inbox.store, p.inbox.shared, p.cfg.Tasks.words, p.logger
	if p.records != nil {
		cfg.Records = p.records
	}
	cfg.ThreadTools, cfg.Outputs = p.cfg.threadTools, p.cfg.outputs()
	cfg.Observers = append(slices.Clone(p.telemetry.runs), mortise.Observer{Inference: p.now.Load().parts.shared.observe})
	cfg.Mailbox = mailbox.Config{
		Observers: p.telemetry.mailbox,
		Limits:    mailbox.Limits{Workers: p.cfg.Serve.Workers},
		Retry:     mailbox.Retry{Attempts: p.cfg.Serve.MaxAttempts},
		Lease:     mailbox.Lease{Duration: time.Duration(p.cfg.Serve.Lease), Renew: time.Duration(p.cfg.Serve.Lease) / renewals},
		Retention: p.cfg.Serve.Retention.mailbox(),
		Waits:     mailbox.Waits{Close: cmp.Or(time.Duration(p.cfg.Serve.Grace), defaultGrace)},
	}
	if p.live {
		liveMailbox(&cfg.Mailbox)
	}
	p.runtime, err = mortise.New(ctx, cfg)
	return err
}

func (p *program) openServer(context.Context) error {
	cfg, err := p.now.Load().access()
	if err != nil {
		return err
	}
	cfg.Runtime, cfg.Modules = p.runtime, p.modules
	if p.records != nil {
		cfg.Records = thread.RecordsOf(p.cfg.home.store)
	}
	cfg.Metrics, cfg.Version, cfg.Logger, cfg.Reload = promhttp.HandlerFor(p.telemetry.registry, promhttp.HandlerOpts{}), versionText(), p.logger, p.reload
	cfg.Facts = p.facts
	cfg.Ready = func(ctx context.Context) error {
		_, _, err := p.runtime.Mailbox().Run(ctx, "ready")
		return err
	}
	if s := p.now.Load().parts.shared.threads; s != nil {
		cfg.Sessions = s
	}
	p.server, err = serve.New(cfg)
	return err
}

// close ends what runs and closes everything.
func (p *program) close(ctx context.Context) error {
	if p == nil {
		return nil
	}
	var errs []error
	add := func(there bool, end func() error) {
		if there {
			errs = append(errs, end())
		}
	}
	add(p.server != nil, func() error { return p.server.Close() })
	add(p.proxy != nil, func() error { return p.proxy.now.Close(ctx) })
	add(p.runtime != nil, func() error { return p.runtime.Close(ctx) })
	add(p.telemetry.traces != nil, func() error { return p.telemetry.traces.Shutdown(ctx) })
	p.reloading.Lock()
	defer p.reloading.Unlock()
	p.retiring.close()
	add(true, func() error { return p.now.Load().servers.closeExcept(ctx, nil) })
	add(p.now.Load().parts != nil, func() error { return p.now.Load().parts.close(ctx) })
	add(true, func() error { return p.inbox.end(ctx) })
	add(p.records != nil, func() error { return p.records.Close(ctx) })
	add(p.cfg.home != nil, func() error { return p.cfg.home.close(ctx) })
	return errors.Join(errs...)
}
