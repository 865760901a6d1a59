package servecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/acp"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
)

// acpOptions are the flags of mortise acp.
type acpOptions struct {
	config, store, agent string
	logLevel             slog.Level
}

const acpLong = `Speak the Agent Client Protocol on standard input and output, so that an editor uses
an agent of the config. A session of the editor is a thread: with a store it can be
loaded again. Calls that wait for a decision become questions of the editor.

The config is that of mortise serve; nothing is listened on. The log is on standard
error. When the input ends, runs under way continue to a checkpoint, as at the end
of mortise serve.

Exit codes: 0 the input ended, 1 not everything ended in time, 2 wrong command line, 3 wrong config, 5 a module failed
to load.`

// NewACP makes mortise acp.
func NewACP(s command.Streams) *cobra.Command {
	var o acpOptions
	cmd := &cobra.Command{
		Use:     "acp",
		Short:   "Be an agent for editors, by the Agent Client Protocol",
		Long:    acpLong,
		Example: "  mortise acp --config mortise.yaml --store mortise.db",
		Args:    command.TakesNone,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runACP(cmd.Context(), s, o) },
	}
	f := cmd.Flags()
	command.ConfigFlag(f, &o.config, "")
	f.StringVar(&o.store, "store", "", command.StoreUsage)
	f.StringVar(&o.agent, "agent", "", "agent of new runs (default default_agent of the config)")
	command.LevelFlag(f, &o.logLevel, slog.LevelWarn)
	return cmd
}

// runACP is mortise acp.
func runACP(ctx context.Context, s command.Streams, o acpOptions) error {
	logger := slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: o.logLevel}))
	cfg, err := s.Links.Load(cmp.Or(o.config, os.Getenv("MORTISE_CONFIG")))
	if err == nil {
		err = forACP(cfg, o)
	}
	if err != nil {
		return exit.With(exit.Config, err)
	}
	tools := &acp.Tools{Logger: logger}
	cfg.ThreadTools = tools.Of
	p, err := program.Open(ctx, cfg, logger)
	if err == nil {
		err = p.ServeACP(ctx, s.In, s.Out, o.agent, tools)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), program.CloseTimeout)
	defer cancel()
	return errors.Join(err, exit.With(exit.Run, p.Close(closing)))
}

// forACP applies flags, and leaves out what is about listening.
func forACP(c *program.Setup, o acpOptions) error {
	c.Store = c.StoreOf(o.store)
	c.Serve.Tokens = nil
	if len(c.Agents) == 0 {
		return errors.New("config: agents: is empty; name an agent and its model, as in docs/operating.md")
	}
	names := slices.Sorted(maps.Keys(c.Agents))
	switch {
	case o.agent != "" && !slices.Contains(names, o.agent):
		return fmt.Errorf("--agent: there is no agent %.64q; agents has %.400q", o.agent, names)
	case o.agent == "" && c.DefaultAgent == "" && len(names) > 1:
		return fmt.Errorf("config: default_agent: is missing; name one of %.400q, or give --agent", names)
	}
	return nil
}
