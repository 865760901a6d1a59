package proxycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/launch"
	"github.com/mortise-dev/mortise/thread"
)

type proxyOptions struct {
	links program.Links

	config, store, listen, admin string
	logLevel                     slog.Level
	around                       bool
}

const proxyLong = `Forward an agent's requests to its model provider: Anthropic Messages, OpenAI Responses and
Chat Completions, and everything else as it is. With plugins in the config they act on this traffic; with a
compaction policy old parts of conversations are replaced by summaries that were made in the background.
A ledger has what was paid, and what would have been.

With a command behind -- the proxy listens on a port of its own, starts the agent so that it uses it, and
ends with it, with its exit code. Without one it listens on 127.0.0.1:8430, and its metrics and ledger are on
127.0.0.1:8431; mortise proxy install connects an agent for good.

Exit codes: that of the agent; else 0 ended, 1 failed, 2 wrong command line, 3 wrong config, 5 a module failed to load.`

// New makes mortise proxy.
func New(s command.Streams) *cobra.Command {
	o := proxyOptions{links: s.Links}
	cmd := &cobra.Command{
		Use:   "proxy [-- AGENT ARGUMENT...]",
		Short: "Run a proxy between any agent and its model provider",
		Long:  proxyLong,
		Example: `  mortise proxy -- claude
  mortise proxy --config mortise.yaml -- codex exec "fix the tests"
  mortise proxy install claude && mortise proxy`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 0 && len(args) > 0 {
				return command.TakesNone(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runProxy(cmd.Context(), s, &o, args) },
	}
	f := cmd.Flags()
	command.ConfigFlag(f, &o.config, ", if there is one")
	f.StringVar(&o.store, "store", "", command.StoreUsage)
	f.StringVar(&o.listen, "listen", "", "HOST:PORT for agents (overrides proxy.listen)")
	f.StringVar(&o.admin, "admin", "", "HOST:PORT of metrics and ledger (overrides proxy.admin)")
	f.BoolVar(&o.around, "allow-detour", false, "start the agent although its settings lead around the proxy")
	command.LevelFlag(f, &o.logLevel, slog.LevelWarn)
	cmd.AddCommand(newProxyInstall(s, &o), newProxyUninstall(s), newProxyStatus(s, &o), newProxyDoctor(s))
	return cmd
}

// read reads the config; without a file it is an empty one.
func (o *proxyOptions) read() (*program.Setup, error) {
	cfg, err := o.links.LoadOr(cmp.Or(o.config, os.Getenv("MORTISE_CONFIG")), "version: 1")
	if err != nil {
		return nil, err
	}
	cfg.Store = cfg.StoreOf(o.store)
	return cfg, cfg.Proxy.Override(o.listen, o.admin)
}

// openProxy is a proxy with all that it needs.
type openProxy struct {
	cfg    *program.Setup
	parts  *program.Parts
	server *proxy.Server
	routes map[string]string
	// records are nil without a store.
	records *thread.Recorder
	http    []*http.Server
}

func runProxy(ctx context.Context, s command.Streams, o *proxyOptions, args []string) error {
	cfg, err := o.read()
	if err != nil {
		return exit.With(exit.Config, err)
	}
	p := &openProxy{cfg: cfg, routes: map[string]string{}}
	err = p.open(ctx, program.Logger(s.Err, o.logLevel))
	if err == nil && len(args) > 0 {
		err = p.launch(ctx, s, o, args)
	} else if err == nil {
		err = p.serve(ctx, s)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), program.CloseTimeout)
	defer cancel()
	return errors.Join(err, exit.With(exit.Run, p.close(closing)))
}

func (p *openProxy) open(ctx context.Context, logger *slog.Logger) (err error) {
	if p.cfg.Home, err = p.cfg.OpenHome(ctx, logger); err != nil {
		return exit.With(exit.Config, err)
	}
	if p.cfg.Clients, err = program.OpenGranted(p.cfg); err != nil {
		return exit.With(exit.Config, err)
	}
	if p.parts, err = program.Assemble(ctx, p.cfg, logger, program.Observer{}); err != nil {
		return err
	}
	if h := p.cfg.Home; h != nil && !p.cfg.Record.Disabled {
		if p.records, err = thread.NewRecorder(ctx, h.Store, thread.RecordConfig{Keep: p.cfg.Record.Keep, Source: "proxy"}); err != nil {
			return exit.With(exit.Config, err)
		}
	}
	cfg, err := p.cfg.ProxyConfig(p.parts, p.records) //nolint:contextcheck // records are written in the background
	if err != nil {
		return exit.With(exit.Config, err)
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
	return exit.With(exit.Config, err)
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
		errs = append(errs, p.parts.Close(ctx))
	}
	if p.records != nil {
		errs = append(errs, p.records.Close(ctx))
	}
	if p.cfg.Home != nil {
		errs = append(errs, p.cfg.Home.Close(ctx))
	}
	return errors.Join(errs...)
}

// listen serves on an address.
func (p *openProxy) listen(ctx context.Context, key, address string, h http.Handler, failed chan<- error) (net.Listener, error) {
	l, err := program.Listen(ctx, key, address)
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
func (p *openProxy) serve(ctx context.Context, s command.Streams) error {
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
		return exit.With(exit.Run, err)
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), program.DefaultGrace)
	defer cancel()
	for _, h := range p.http {
		_ = h.Shutdown(draining)
	}
	printLedger(s.Err, p.server.Report())
	return nil
}

// launch starts an agent and ends with it.
func (p *openProxy) launch(ctx context.Context, s command.Streams, o *proxyOptions, args []string) error {
	place, err := launch.Here()
	if err != nil {
		return exit.With(exit.Run, err)
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
	c, err := launch.Of(place, args, os.Environ(), url)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	if c.Dir != "" {
		defer os.RemoveAll(c.Dir)
	}
	p.routes = c.Routes
	if err := warnDetours(s.Err, c, o.around); err != nil {
		return exit.With(exit.Config, err)
	}
	err = runAgent(background, s, c)
	report := p.server.Report()
	if report.Counts["requests"] == 0 {
		fmt.Fprintln(s.Err, "mortise proxy: 0 requests came through the proxy")
	}
	printLedger(s.Err, report)
	return err
}

// warnDetours names the settings that would lead around the proxy, and refuses those that the launcher cannot override.
func warnDetours(w io.Writer, c launch.Command, allowed bool) error {
	var refused []string
	for _, d := range c.Detours {
		switch {
		case d.Overridden:
			fmt.Fprintf(w, "mortise proxy: %s in %s is %s: it is overridden, and requests go through the proxy to your own upstream; ANTHROPIC_BASE_URL in the environment makes another one the upstream\n",
				d.Key, d.File, config.Shown(d.Value))
		case allowed:
			fmt.Fprintf(w, "mortise proxy: %s\n", detour(d))
		default:
			refused = append(refused, detour(d))
		}
	}
	if refused != nil {
		return errors.New(strings.Join(refused, "\n") + "\ntake it out, or start with --allow-detour")
	}
	return nil
}

// runAgent runs a program with our streams, and passes signals on.
func runAgent(ctx context.Context, s command.Streams, c launch.Command) error {
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...) //nolint:gosec // the user's own command line
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Env, s.In, s.Out, s.Err
	signals, stop := agentSignals()
	defer stop()
	if err := cmd.Start(); err != nil {
		return exit.With(exit.Usage, fmt.Errorf("%s: %w", c.Args[0], err))
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			passSignal(cmd.Process, sig, term.IsTerminal(s.In))
		case err := <-done:
			return agentExit(err)
		}
	}
}

// agentExit makes the exit code of an agent ours.
func agentExit(err error) error {
	var ended *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ended):
		return exit.With(exit.Code(exitCode(ended)), errors.New("the agent ended: "+ended.Error()))
	}
	return exit.With(exit.Run, err)
}
