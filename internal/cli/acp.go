package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/internal/acp"
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

func newACP(s Streams) *cobra.Command {
	var o acpOptions
	cmd := &cobra.Command{
		Use:     "acp",
		Short:   "Be an agent for editors, by the Agent Client Protocol",
		Long:    acpLong,
		Example: "  mortise acp --config mortise.yaml --store mortise.db",
		Args:    takesNone,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runACP(cmd.Context(), s, o) },
	}
	f := cmd.Flags()
	configFlag(f, &o.config, "")
	f.StringVar(&o.store, "store", "", storeUsage)
	f.StringVar(&o.agent, "agent", "", "agent of new runs (default default_agent of the config)")
	levelFlag(f, &o.logLevel, slog.LevelWarn)
	return cmd
}

// runACP is mortise acp.
func runACP(ctx context.Context, s Streams, o acpOptions) error {
	logger := slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: o.logLevel}))
	cfg, err := s.links.loadConfig(cmp.Or(o.config, os.Getenv("MORTISE_CONFIG")))
	if err == nil {
		err = cfg.forACP(o)
	}
	if err != nil {
		return with(ExitConfig, err)
	}
	tools := &acp.Tools{Logger: logger}
	cfg.threadTools = tools.Of
	p, err := openProgram(ctx, cfg, logger)
	if err == nil {
		err = p.acp(ctx, s, o, tools)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return errors.Join(err, with(ExitRun, p.close(closing)))
}

// forACP applies flags, and leaves out what is about listening.
func (c *Config) forACP(o acpOptions) error {
	c.Store = cmp.Or(o.store, os.Getenv("MORTISE_STORE"), c.path(c.Store))
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

// acp serves the client on the standard streams, and then drains.
func (p *program) acp(ctx context.Context, s Streams, o acpOptions, tools *acp.Tools) error {
	if err := p.runtime.Start(ctx); err != nil {
		return err
	}
	kinds := p.toolKinds()
	err := acp.Serve(ctx, acp.Config{
		Server: p.server, Mailbox: p.runtime.Mailbox(), Tools: tools, Agent: o.agent,
		Kind: func(tool string) abi.ToolKind { return kinds[tool] }, Version: versionText(), Logger: p.logger,
	}, s.In, s.Out)
	ctx = context.WithoutCancel(ctx)
	err = errors.Join(err, p.drain(ctx, nil))
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	if left := p.runtime.Mailbox().Close(ctx); left != nil { // an editor does not wait for the end of an answer
		p.logger.WarnContext(ctx, "runs are left to the next process", "error", left)
	}
	return err
}

// handOverTimeout is how long runs that did not end within the grace time have to reach a checkpoint.
const handOverTimeout = time.Second

// toolKinds are the kinds of the tools that are there when the program starts.
func (p *program) toolKinds() map[string]abi.ToolKind {
	out := map[string]abi.ToolKind{}
	now := p.now.Load()
	for _, t := range agent.LayerTools(now.parts.tools, now.servers.of(nil)).Tools() {
		out[t.Name] = t.Kind
	}
	return out
}
