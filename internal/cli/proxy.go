package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/launch"
	"github.com/mortise-dev/mortise/thread"
)

type proxyOptions struct {
	links Links

	config, store, listen, admin string
	logLevel                     slog.Level
}

const proxyLong = `Forward an agent's requests to its model provider: Anthropic Messages, OpenAI Responses and
Chat Completions, and everything else as it is. With plugins in the config they act on this traffic; with a
compaction policy old parts of conversations are replaced by summaries that were made in the background.
A ledger has what was paid, and what would have been.

With a command behind -- the proxy listens on a port of its own, starts the agent so that it uses it, and
ends with it, with its exit code. Without one it listens on 127.0.0.1:8430, and its metrics and ledger are on
127.0.0.1:8431; mortise proxy install connects an agent for good.

Exit codes: that of the agent; else 0 ended, 1 failed, 2 wrong command line, 3 wrong config, 5 a module failed to load.`

func newProxy(s Streams) *cobra.Command {
	o := proxyOptions{links: s.links}
	cmd := &cobra.Command{
		Use:   "proxy [-- AGENT ARGUMENT...]",
		Short: "Run a proxy between any agent and its model provider",
		Long:  proxyLong,
		Example: `  mortise proxy -- claude
  mortise proxy --config mortise.yaml -- codex exec "fix the tests"
  mortise proxy install claude && mortise proxy`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 0 && len(args) > 0 {
				return takesNone(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runProxy(cmd.Context(), s, &o, args) },
	}
	f := cmd.Flags()
	configFlag(f, &o.config, ", if there is one")
	f.StringVar(&o.store, "store", "", storeUsage)
	f.StringVar(&o.listen, "listen", "", "HOST:PORT for agents (overrides proxy.listen)")
	f.StringVar(&o.admin, "admin", "", "HOST:PORT of metrics and ledger (overrides proxy.admin)")
	levelFlag(f, &o.logLevel, slog.LevelWarn)
	cmd.AddCommand(newProxyInstall(s, &o), newProxyUninstall(s), newProxyStatus(s, &o), newProxyDoctor(s))
	return cmd
}

// read reads the config; without a file it is an empty one.
func (o *proxyOptions) read() (*Config, error) {
	so := serveOptions{config: o.config, store: o.store}
	path := o.config
	if path == "" {
		path = os.Getenv("MORTISE_CONFIG")
	}
	cfg := &Config{Version: 1, links: o.links}
	_, err := os.Stat(configName)
	if path != "" || !errors.Is(err, fs.ErrNotExist) {
		if cfg, err = o.links.loadConfig(path); err != nil {
			return nil, err
		}
	}
	cfg.Store = so.storeOf(cfg)
	return cfg, cfg.Proxy.override(o.listen, o.admin)
}

// openProxy is a proxy with all that it needs.
type openProxy struct {
	cfg    *Config
	parts  *parts
	server *proxy.Server
	routes map[string]string
	// records are nil without a store.
	records *thread.Recorder
	http    []*http.Server
}

func runProxy(ctx context.Context, s Streams, o *proxyOptions, args []string) error {
	cfg, err := o.read()
	if err != nil {
		return with(ExitConfig, err)
	}
	p := &openProxy{cfg: cfg, routes: map[string]string{}}
	err = p.open(ctx, logging(s, o.logLevel))
	if err == nil && len(args) > 0 {
		err = p.launch(ctx, s, o, args)
	} else if err == nil {
		err = p.serve(ctx, s)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return errors.Join(err, with(ExitRun, p.close(closing)))
}

func (p *openProxy) open(ctx context.Context, logger *slog.Logger) (err error) {
	if p.cfg.home, err = p.cfg.openHome(ctx, logger); err != nil {
		return with(ExitConfig, err)
	}
	if p.cfg.models, err = openModels(p.cfg); err != nil {
		return with(ExitConfig, err)
	}
	if p.parts, err = assemble(ctx, p.cfg, logger, newProgress(io.Discard, true), newCollector()); err != nil {
		return err
	}
	if h := p.cfg.home; h != nil && !p.cfg.Record.Disabled {
		if p.records, err = thread.NewRecorder(ctx, h.store, thread.RecordConfig{Keep: p.cfg.Record.Keep, Source: "proxy"}); err != nil {
			return with(ExitConfig, err)
		}
	}
	cfg, err := p.cfg.proxyConfig(p.parts, p.records) //nolint:contextcheck // records are written in the background
	if err != nil {
		return with(ExitConfig, err)
	}
	place, err := launch.Here()
	cfg.Logger = logger
	cfg.Routes = func(name string) string {
		if url, ok := p.routes[name]; ok {
			return url
		}
		if err != nil {
			return ""
		}
		return launch.Route(place, name)
	}
	p.server, err = proxy.New(ctx, cfg)
	return with(ExitConfig, err)
}

func (p *openProxy) close(ctx context.Context) error {
	var errs []error
	for _, h := range p.http {
		errs = append(errs, h.Close())
	}
	if p.server != nil {
		errs = append(errs, p.server.Close(ctx))
	}
	if p.parts != nil {
		errs = append(errs, p.parts.close(ctx))
	}
	if p.records != nil {
		errs = append(errs, p.records.Close(ctx))
	}
	if p.cfg.home != nil {
		errs = append(errs, p.cfg.home.close(ctx))
	}
	return errors.Join(errs...)
}

// listen serves on an address.
func (p *openProxy) listen(ctx context.Context, key, address string, h http.Handler, failed chan<- error) (net.Listener, error) {
	l, err := listen(ctx, key, address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 256 << 10}
	p.http = append(p.http, server)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return l, nil
}

// serve listens until ctx is done, and then lets requests under way end.
func (p *openProxy) serve(ctx context.Context, s Streams) error {
	failed := make(chan error, 2)
	l, err := p.listen(ctx, "proxy.listen", p.cfg.Proxy.Listen, p.server, failed)
	if err != nil {
		return err
	}
	admin, err := p.listen(ctx, "proxy.admin", p.cfg.Proxy.Admin, proxyAdmin(p.server), failed)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "proxy http://%s\nadmin http://%s\n", l.Addr(), admin.Addr())
	select {
	case <-ctx.Done():
	case err := <-failed:
		return with(ExitRun, err)
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), defaultGrace)
	defer cancel()
	for _, h := range p.http {
		_ = h.Shutdown(draining)
	}
	printLedger(s.Err, p.server.Report())
	return nil
}

// launch starts an agent and ends with it.
func (p *openProxy) launch(ctx context.Context, s Streams, o *proxyOptions, args []string) error {
	place, err := launch.Here()
	if err != nil {
		return with(ExitRun, err)
	}
	background := context.WithoutCancel(ctx) // the agent decides what a signal means
	failed := make(chan error, 2)
	address := "127.0.0.1:0"
	if o.listen != "" {
		address = o.listen
	}
	l, err := p.listen(background, "proxy.listen", address, p.server, failed)
	if err != nil {
		return err
	}
	if o.admin != "" {
		if _, err := p.listen(background, "proxy.admin", o.admin, proxyAdmin(p.server), failed); err != nil {
			return err
		}
	}
	url := "http://" + l.Addr().String()
	c := launch.Of(place, args, os.Environ(), url)
	p.routes = c.Routes
	if c.Settings != "" {
		if _, err := launch.Install(place, c.Settings, url); err != nil {
			return with(ExitConfig, err)
		}
		defer func() { _, _ = launch.Uninstall(place, c.Settings) }()
	}
	err = runAgent(background, s, c)
	printLedger(s.Err, p.server.Report())
	return err
}

// runAgent runs a program with our streams, and passes signals on.
func runAgent(ctx context.Context, s Streams, c launch.Command) error {
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...) //nolint:gosec // the user's own command line
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Env, s.In, s.Out, s.Err
	signals, stop := agentSignals()
	defer stop()
	if err := cmd.Start(); err != nil {
		return with(ExitUsage, fmt.Errorf("%s: %w", c.Args[0], err))
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			passSignal(cmd.Process, sig, isTerminalIn(s.In))
		case err := <-done:
			return agentExit(err)
		}
	}
}

// agentExit makes the exit code of an agent ours.
func agentExit(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		return with(ExitCode(exitCode(exit)), errors.New("the agent ended: "+exit.Error()))
	}
	return with(ExitRun, err)
}
