package servecmd

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
)

// serveOptions are the flags of mortise serve.
type serveOptions struct {
	links program.Links

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
have serve.grace to end, and another process or the next start resumes the others.
The second ends the process. SIGHUP reads the config again.

Exit codes: 0 drained, 1 not everything ended in time, 2 wrong command line, 3 wrong config, 5 a module failed to
load.`

// New makes mortise serve.
func New(s command.Streams) *cobra.Command {
	o := serveOptions{links: s.Links}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run agents and serve them over HTTP",
		Long:  serveLong,
		Example: `  mortise serve --config mortise.yaml --store mortise.db
  curl -N -H 'Accept: text/event-stream' -H 'Content-Type: application/json' \
    -d '{"input": "hello"}' http://127.0.0.1:8420/v1/runs`,
		Args: command.TakesNone,
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd.Context(), s, o) },
	}
	f := cmd.Flags()
	command.ConfigFlag(f, &o.config, "")
	f.StringVar(&o.store, "store", "", command.StoreUsage)
	f.StringVar(&o.listen, "listen", "", "HOST:PORT of the API (overrides MORTISE_LISTEN and serve.listen)")
	f.StringVar(&o.admin, "admin", "", "HOST:PORT of the operator's API (overrides MORTISE_ADMIN and serve.admin)")
	command.LevelFlag(f, &o.logLevel, slog.LevelInfo)
	f.IntVar(&o.workers, "workers", 0, "how many runs to execute at once (overrides MORTISE_WORKERS and serve.workers)")
	return cmd
}

// runServe is mortise serve.
func runServe(ctx context.Context, s command.Streams, o serveOptions) error {
	logger := program.Logger(s.Err, o.logLevel)
	cfg, err := o.read()
	if err != nil {
		return exit.With(exit.Config, err)
	}
	p, err := program.Open(ctx, cfg, logger)
	p.Read = o.read
	if err == nil {
		err = p.Serve(ctx, s.Out, s.Hangups)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), program.CloseTimeout)
	defer cancel()
	return errors.Join(err, exit.With(exit.Run, p.Close(closing)))
}

// read reads the config and applies variables and flags.
func (o *serveOptions) read() (*program.Setup, error) {
	cfg, err := o.links.Load(cmp.Or(o.config, os.Getenv("MORTISE_CONFIG")))
	if err != nil {
		return nil, err
	}
	cfg.Store = cfg.StoreOf(o.store)
	if err := cfg.Serve.Override(o.listen, o.admin, o.workers); err != nil {
		return nil, err
	}
	if err := cfg.ValidateProxy(); err != nil {
		return nil, err
	}
	if len(cfg.Agents) == 0 {
		return nil, errors.New("config: agents: is empty; name an agent and its model, as in docs/operating.md")
	}
	return cfg, nil
}
