package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/serve"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/thread"
)

// Program is everything that mortise serve and live runs consist of.
type Program struct {
	Cfg       *Setup // of the start; now has that of the latest reload
	logger    *slog.Logger
	modules   *modules
	Runtime   *mortise.Runtime
	server    *serve.Server
	proxy     *proxyListener // nil without serve.proxy
	telemetry telemetry

	// live is a program that executes one run for the terminal and serves no clients.
	live bool
	say  func(format string, args ...any) // of the compilation of modules

	store   store.Store
	records *thread.Recorder // nil keeps none
	inbox   InboxStore

	listeners sync.WaitGroup

	// Read reads the config again.
	Read      func() (*Setup, error)
	reloading sync.Mutex
	// now is replaced while reloading is held.
	now      atomic.Pointer[current]
	retiring *retiring
}

// Open opens and connects what the config names. It must be closed also after an error.
func Open(ctx context.Context, cfg *Setup, logger *slog.Logger) (*Program, error) {
	p := newProgram(ctx, cfg, logger, nil)
	err := p.open(ctx, p.openStores, p.openTelemetry, p.openModules, p.openServers, p.openRuntime, p.openServer, p.openProxy)
	return p, err
}

// OpenLive opens what a config describes without its servers, for runs of this process alone.
func OpenLive(ctx context.Context, cfg *Setup, logger *slog.Logger, say func(format string, args ...any)) (*Program, error) {
	p := newProgram(ctx, cfg, logger, say)
	p.live = true
	err := p.open(ctx, p.openStores, p.openTelemetry, p.openModules, p.openServers, p.openRuntime)
	return p, err
}

func newProgram(ctx context.Context, cfg *Setup, logger *slog.Logger, say func(format string, args ...any)) *Program {
	p := &Program{Cfg: cfg, logger: logger, say: say, modules: newModules(), retiring: newRetiring(ctx)}
	p.now.Store(&current{cfg: cfg})
	return p
}

func (p *Program) open(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return exit.With(exit.Config, err)
		}
	}
	return nil
}

// openStores opens the store of the config. Without one everything is kept in memory.
func (p *Program) openStores(ctx context.Context) (err error) {
	if p.Cfg.Home, err = p.Cfg.OpenHome(ctx, p.logger); err != nil {
		return err
	}
	h := p.Cfg.Home
	if h == nil {
		if !p.live {
			p.logger.WarnContext(ctx, "no store: runs and threads are lost when the process ends")
		}
		p.store = memstore.New()
		return p.openInbox(ctx)
	}
	p.store = h.Store
	if !p.Cfg.Record.Disabled {
		if p.records, err = thread.NewRecorder(ctx, h.Store, thread.RecordConfig{Keep: p.Cfg.Record.Keep, Source: p.source()}); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	return p.openInbox(ctx)
}

// source is how decision records name the command.
func (p *Program) source() string {
	if p.live {
		return "run"
	}
	return "serve"
}

// openInbox opens the inbox. Without a store and a folder of tasks it is in memory.
func (p *Program) openInbox(ctx context.Context) (err error) {
	p.inbox, err = OpenInbox(ctx, p.Cfg, p.logger)
	return err
}

// openModules loads plugins and policies.
func (p *Program) openModules(ctx context.Context) (err error) {
	if p.Cfg.Clients, err = OpenModels(p.Cfg); err != nil {
		return err
	}
	p.now.Load().parts, err = Assemble(ctx, p.Cfg, p.logger, Observer{Say: p.say, Swapped: p.modules.rolledBack})
	if err == nil {
		p.modules.adopt(p.now.Load().parts)
	}
	return err
}

// openServers starts the MCP servers.
func (p *Program) openServers(ctx context.Context) (err error) {
	p.now.Load().servers, err = openServers(ctx, p.Cfg, p.logger, nil)
	return err
}

// renewals is how often a lease is renewed before it would end.
const renewals = 3

func (p *Program) openRuntime(ctx context.Context) error {
	cfg, err := p.now.Load().runtime()
	if err != nil {
		return err
	}
	cfg.Store, cfg.Inbox, cfg.Shared, cfg.Words, cfg.Logger = p.store, p.inbox.Store, p.inbox.Shared, p.Cfg.Tasks.Words, p.logger
	if p.records != nil {
		cfg.Records = p.records
	}
	cfg.ThreadTools, cfg.Outputs = p.Cfg.ThreadTools, p.Cfg.Outputs()
	cfg.Observers = append(slices.Clone(p.telemetry.runs), mortise.Observer{Inference: p.now.Load().parts.Shared.Observe})
	cfg.Mailbox = mailbox.Config{
		Observers: p.telemetry.mailbox,
		Limits:    mailbox.Limits{Workers: p.Cfg.Serve.Workers},
		Retry:     mailbox.Retry{Attempts: p.Cfg.Serve.MaxAttempts},
		Lease:     mailbox.Lease{Duration: time.Duration(p.Cfg.Serve.Lease), Renew: time.Duration(p.Cfg.Serve.Lease) / renewals},
		Retention: p.Cfg.Serve.Retention.Mailbox(),
		Waits:     mailbox.Waits{Close: CloseTimeout},
	}
	if p.live {
		liveMailbox(&cfg.Mailbox)
	}
	p.Runtime, err = mortise.New(ctx, cfg)
	return err
}

func (p *Program) openServer(context.Context) error {
	cfg, err := p.now.Load().access()
	if err != nil {
		return err
	}
	cfg.Runtime, cfg.Modules = p.Runtime, p.modules
	if p.records != nil {
		cfg.Records = thread.RecordsOf(p.Cfg.Home.Store)
	}
	cfg.Metrics, cfg.Version, cfg.Logger, cfg.Reload = promhttp.HandlerFor(p.telemetry.registry, promhttp.HandlerOpts{}), Version(), p.logger, p.reload
	cfg.Facts = p.facts
	cfg.Ready = func(ctx context.Context) error {
		_, _, err := p.Runtime.Mailbox().Run(ctx, "ready")
		return err
	}
	if s := p.now.Load().parts.Shared.Threads; s != nil {
		cfg.Sessions = s
	}
	p.server, err = serve.New(cfg)
	return err
}

// Close ends what runs and closes everything.
func (p *Program) Close(ctx context.Context) error {
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
	add(p.Runtime != nil, func() error { return p.Runtime.Close(ctx) })
	add(p.telemetry.traces != nil, func() error { return p.telemetry.traces.Shutdown(ctx) })
	p.reloading.Lock()
	defer p.reloading.Unlock()
	p.retiring.close()
	add(true, func() error { return p.now.Load().servers.closeExcept(ctx, nil) })
	add(p.now.Load().parts != nil, func() error { return p.now.Load().parts.Close(ctx) })
	add(true, func() error { return p.inbox.End(ctx) })
	add(p.records != nil, func() error { return p.records.Close(ctx) })
	add(p.Cfg.Home != nil, func() error { return p.Cfg.Home.Close(ctx) })
	return errors.Join(errs...)
}
