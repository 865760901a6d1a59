package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// serveOptions are the flags of mortise serve.
type serveOptions struct {
	links Links

	config   string
	store    string
	listen   string
	admin    string
	logLevel slog.Level
	workers  int
}

const serveLong = `Run agents and serve them over HTTP: submit runs, follow their events, answer
questions, cancel, read threads, swap plugins and policies while runs go on.

The config names models, agents, plugins, policies, MCP servers and the store;
flags override MORTISE_* variables, and these override the config. The API listens
on 127.0.0.1:8420 and the operator's API on 127.0.0.1:8421, unless serve.listen and
serve.admin say otherwise; beyond loopback both need tokens.

The first SIGINT or SIGTERM drains: no run is claimed any more, runs under way
continue to a checkpoint, and another process or the next start resumes them. The
second ends the process. SIGHUP reads the config again.

Exit codes: 0 drained, 1 not everything ended in time, 2 wrong command line, 3 wrong config, 5 a module failed to
load.`

func newServe(s Streams) *cobra.Command {
	o := serveOptions{links: s.links}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run agents and serve them over HTTP",
		Long:  serveLong,
		Example: `  mortise serve --config mortise.yaml --store mortise.db
  curl -N -H 'Accept: text/event-stream' -H 'Content-Type: application/json' \
    -d '{"input": "hello"}' http://127.0.0.1:8420/v1/runs`,
		Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd.Context(), s, o) },
	}
	f := cmd.Flags()
	configFlag(f, &o.config, "")
	f.StringVar(&o.store, "store", "", storeUsage)
	f.StringVar(&o.listen, "listen", "", "HOST:PORT of the API (overrides MORTISE_LISTEN and serve.listen)")
	f.StringVar(&o.admin, "admin", "", "HOST:PORT of the operator's API (overrides MORTISE_ADMIN and serve.admin)")
	levelFlag(f, &o.logLevel, slog.LevelInfo)
	f.IntVar(&o.workers, "workers", 0, "how many runs to execute at once (overrides MORTISE_WORKERS and serve.workers)")
	return cmd
}

// runServe is mortise serve.
func runServe(ctx context.Context, s Streams, o serveOptions) error {
	logger := logging(s, o.logLevel)
	cfg, err := o.read()
	if err != nil {
		return with(ExitConfig, err)
	}
	p, err := openProgram(ctx, cfg, logger)
	p.read = o.read
	if err == nil {
		err = p.serve(ctx, s)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return errors.Join(err, with(ExitRun, p.close(closing)))
}

// read reads the config and applies variables and flags.
func (o *serveOptions) read() (*Config, error) {
	cfg, err := o.links.loadConfig(cmp.Or(o.config, os.Getenv("MORTISE_CONFIG")))
	if err != nil {
		return nil, err
	}
	cfg.Store = o.storeOf(cfg)
	if err := cfg.Serve.override(o.listen, o.admin, o.workers); err != nil {
		return nil, err
	}
	if err := cfg.validateProxy(); err != nil {
		return nil, err
	}
	if len(cfg.Agents) == 0 {
		return nil, errors.New("config: agents: is empty; name an agent and its model, as in docs/operating.md")
	}
	return cfg, nil
}

// storeOf is the store of the flag, the variable or the config.
func (o *serveOptions) storeOf(cfg *Config) string {
	return cmp.Or(o.store, os.Getenv("MORTISE_STORE"), cfg.path(cfg.Store))
}

// serve listens until ctx is done, and then drains.
func (p *program) serve(ctx context.Context, s Streams) error {
	cfg := &p.cfg.Serve
	api, err := listen(ctx, "serve.listen", cfg.Listen)
	if err != nil {
		return err
	}
	defer api.Close()
	admin, err := listen(ctx, "serve.admin", cfg.Admin)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := p.runtime.Start(ctx); err != nil {
		return err
	}
	failed := make(chan error, 3)
	var servers []*http.Server
	if p.proxy != nil {
		forward, address, err := p.serveProxy(ctx, failed)
		if err != nil {
			return err
		}
		servers = append(servers, forward)
		fmt.Fprintf(s.Out, "proxy http://%s\n", address)
	}
	servers = append(servers, p.listenOn(api, p.server.Public(), failed), p.listenOn(admin, p.server.Admin(), failed))
	fmt.Fprintf(s.Out, "api http://%s\nadmin http://%s\n", api.Addr(), admin.Addr())
	p.logger.InfoContext(ctx, "serving", "api", api.Addr().String(), "admin", admin.Addr().String(), "store", cmp.Or(shown(p.cfg.Store), "memory"))
	err = p.wait(ctx, s.hangups, failed)
	return errors.Join(err, p.drain(context.WithoutCancel(ctx), servers))
}

// wait returns when the program should end. Meanwhile SIGHUP reloads the config.
func (p *program) wait(ctx context.Context, hangups <-chan os.Signal, failed <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-hangups:
			_, _ = p.reload(ctx) // it is logged
		}
	}
}

func (p *program) listenOn(l net.Listener, h http.Handler, failed chan<- error) *http.Server {
	server := p.server.HTTP(h)
	p.listeners.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve: %w", err)
		}
	})
	return server
}

// defaultGrace is how long shutdown waits for runs under way.
const defaultGrace = 20 * time.Second

// drain stops claiming, ends streams with a hint to come back, and waits for runs to reach a
// checkpoint.
func (p *program) drain(ctx context.Context, servers []*http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(time.Duration(p.cfg.Serve.Grace), defaultGrace))
	defer cancel()
	p.logger.InfoContext(ctx, "draining", "executing", len(p.runtime.Mailbox().Executing()))
	errs := []error{p.server.Drain(ctx)}
	for _, s := range servers {
		if err := s.Shutdown(ctx); err != nil {
			errs = append(errs, s.Close())
		}
	}
	p.listeners.Wait()
	if err := errors.Join(errs...); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func listen(ctx context.Context, key, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, with(ExitConfig, fmt.Errorf("%s: %w; name another address", key, err))
	}
	return l, nil
}
