package hookcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/hook/daemon"
	"github.com/mortise-dev/mortise/hook/frame"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
)

const hookLong = `Run the plugins of a config as hooks of another agent: Claude Code, Codex, Gemini CLI, Qwen Code,
Copilot CLI, goose, Crush, pi or opencode. One registered hook asks all plugins, in the printed
order, and gives one answer.

  mortise hook install claude     registers mortise-hook in the agent's settings
  mortise hook list               what is registered, the plugins, and what cannot be done
  mortise hook doctor claude      proves that it works

The client mortise-hook is started by the agent; it starts the daemon, which listens on a socket
that only its user may open. Without an answer in time a gate that fails closed denies.`

// New makes mortise hook.
func New(s command.Streams) *cobra.Command {
	o := hookOptions{links: s.Links, notes: s.Err}
	cmd := &cobra.Command{
		Use: "hook", Short: "Run plugins as hooks of another agent", Long: hookLong, Args: command.TakesNone,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := cmd.PersistentFlags()
	command.ConfigFlag(f, &o.config, " if its hooks are installed, or that of the user")
	f.StringVar(&o.profile, "profile", "", "folder of sessions, tickets and the record (default: one for each config, in the user's state folder)")
	f.StringVar(&o.client, "client", "", "path of mortise-hook (default: beside this program)")
	cmd.AddCommand(
		newHookDaemon(s, &o), newHookInstall(s, &o), newHookUninstall(s, &o), newHookList(s, &o), newHookDoctor(s, &o),
		newHookPending(s, &o), newHookApprove(s, &o), newHookStats(s, &o),
	)
	return cmd
}

func newHookDaemon(s command.Streams, o *hookOptions) *cobra.Command {
	var level slog.Level
	cmd := &cobra.Command{
		Use: "daemon", Short: "Answer hooks, until none came for half an hour", Args: command.TakesNone,
		Long: "Answer hooks. The client starts it when it is needed; there is no need to do that by hand.",
		RunE: func(cmd *cobra.Command, _ []string) error { return runHookDaemon(cmd.Context(), s, o, level) },
	}
	command.LevelFlag(cmd.Flags(), &level, slog.LevelWarn)
	return cmd
}

func runHookDaemon(ctx context.Context, s command.Streams, o *hookOptions, level slog.Level) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	trimLog(p.dir)
	logger := program.Logger(s.Err, level)
	var env []string
	self, err := os.Executable()
	if err != nil {
		return exit.With(exit.Config, err)
	}
	version := stamp(self)
	files := &watch{profile: p, logger: logger}
	d, err := daemon.New(daemon.Config{
		Dir: p.dir, Logger: logger, Changed: files.print,
		Outdated: func() bool { return stamp(self) != version },
		Load: func(ctx context.Context) (*daemon.Loaded, error) {
			if _, err := p.installed(); err != nil {
				return nil, fmt.Errorf("%s is not installed: %w", p.config, err)
			}
			h, err := p.load(ctx, logger, nil)
			if err != nil {
				return nil, err
			}
			env = h.Cfg.Environment()
			return h.loaded(), nil
		},
		Policy: func(l *daemon.Loaded) *frame.Policy {
			if l == nil {
				return p.policy(nil, env)
			}
			return p.policy(l.Program, env)
		},
	})
	if errors.Is(err, daemon.ErrRunning) {
		return nil // two clients started one at the same time
	}
	if err != nil {
		return exit.With(exit.Config, err)
	}
	return exit.With(exit.Run, d.Serve(ctx))
}

// maxLog is the size at which the log of daemons begins anew.
const maxLog = 1 << 20

func trimLog(dir string) {
	path := filepath.Join(dir, frame.LogFile)
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		_ = os.Truncate(path, 0)
	}
}
