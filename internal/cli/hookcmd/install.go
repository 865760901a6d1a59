package hookcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/frame"
	"github.com/mortise-dev/mortise/hook/install"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
)

// installOptions are the flags of install and uninstall.
type installOptions struct {
	*hookOptions

	scope                  string
	partial, trust, dry    bool
	follow                 bool
	agent                  *install.Agent
	profileOf              *hookProfile
	home, project, clientP string
	// lines are what is registered.
	lines []string
}

func newHookInstall(s command.Streams, h *hookOptions) *cobra.Command {
	o := installOptions{hookOptions: h}
	cmd := &cobra.Command{
		Use: "install AGENT", Short: "Register the plugins in an agent's settings", Args: command.TakesOne("AGENT"),
		Long: `Register the plugins in an agent's settings. Only events in which a plugin has a part are registered.
The file is edited in place, so that every other byte stays; a backup is kept beside it. What the
agent's hooks cannot do for these plugins is listed; a plugin that fails closed and cannot is
refused, unless --partial is given.

The config and its modules are copied to the state folder, and the copies run for every agent of the
config: the agent itself may be able to write the files. Install again to take changes over. With
--follow nothing is copied, and each change of the files counts at once, whatever program made it.

Codex runs a hook only when its user trusts it: --trust shows what is to be trusted, and asks Codex.`,
		Example: "  mortise hook install claude\n  mortise hook install codex --trust\n  mortise hook install gemini --scope project --dry-run",
		RunE:    func(cmd *cobra.Command, args []string) error { return runHookInstall(cmd.Context(), s, &o, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.scope, "scope", string(install.ScopeUser), "user or project")
	f.BoolVar(&o.partial, "partial", false, "install although a plugin that fails closed cannot do all of its work there")
	f.BoolVar(&o.follow, "follow", false, "load the config and its modules again whenever they change, whatever program changed them")
	f.BoolVar(&o.trust, "trust", false, "have Codex trust the hooks")
	f.BoolVar(&o.dry, "dry-run", false, "print the file as it would be, and write nothing")
	return cmd
}

func newHookUninstall(s command.Streams, h *hookOptions) *cobra.Command {
	o := installOptions{hookOptions: h}
	cmd := &cobra.Command{
		Use: "uninstall AGENT", Short: "Take the plugins out of an agent's settings", Args: command.TakesOne("AGENT"),
		RunE: func(_ *cobra.Command, args []string) error { return runHookUninstall(s, &o, args[0]) },
	}
	cmd.Flags().StringVar(&o.scope, "scope", string(install.ScopeUser), "user or project")
	return cmd
}

// prepare finds agent, profile and folders.
func (o *installOptions) prepare(agent string) (err error) {
	if o.scope != string(install.ScopeUser) && o.scope != string(install.ScopeProject) {
		return exit.With(exit.Usage, fmt.Errorf("--scope %.40q: must be user or project", o.scope))
	}
	if o.agent, err = install.AgentOf(agent); err != nil {
		return exit.With(exit.Usage, err)
	}
	if o.profileOf, err = o.open(); err != nil {
		return err
	}
	if o.home, err = os.UserHomeDir(); err != nil {
		return exit.With(exit.Config, err)
	}
	o.project, err = os.Getwd()
	return exit.With(exit.Config, err)
}

// version is what the installed agent prints, if there is one.
func (o *installOptions) version(ctx context.Context) string {
	path, err := exec.LookPath(o.agent.Command)
	if err != nil {
		return ""
	}
	return agentVersion(ctx, path)
}

func (o *installOptions) file() string {
	return o.agent.File(install.Scope(o.scope), os.Getenv, o.home, o.project)
}

func (o *installOptions) mark() *regexp.Regexp {
	return install.Mark(o.profileOf.dir, o.agent.Dialect.Name)
}

// hooksRun returns an error on systems on which hooks do not run.
func hooksRun(system string) error {
	if system == "linux" || system == "darwin" {
		return nil
	}
	return exit.With(exit.Config, fmt.Errorf("mortise hook does not run on %s: nothing proves there to client and daemon whose the other end is, so a gate would deny each call; nothing was changed. "+
		"Use mortise proxy, or on Windows an agent and mortise in WSL", system))
}

func runHookInstall(ctx context.Context, s command.Streams, o *installOptions, agent string) error {
	if err := hooksRun(runtime.GOOS); err != nil {
		return err
	}
	o.installs = true
	if err := o.prepare(agent); err != nil {
		return err
	}
	var err error
	if o.clientP, err = o.clientPath(); err != nil {
		return exit.With(exit.Usage, err)
	}
	now, h, err := o.take(ctx, s)
	if err != nil {
		return err
	}
	defer h.Close(context.WithoutCancel(ctx))
	d := o.agent.Dialect
	events := h.wanted(d)
	if len(events) == 0 {
		return exit.With(exit.Config, fmt.Errorf("no plugin of %s has a hook at a phase that %s fires", o.profileOf.config, d.Agent))
	}
	events, gaps := h.known(d, o.version(ctx), events)
	gaps = append(gaps, h.gaps(d)...)
	for _, g := range gaps {
		fmt.Fprintln(s.Out, "  note:", g.text)
	}
	if slices.ContainsFunc(gaps, func(g gap) bool { return g.closed }) && !o.partial {
		return exit.With(exit.Config, errors.New("a plugin that fails closed cannot do its work in this agent (see the notes); --partial installs it all the same"))
	}
	if d.Documents {
		fmt.Fprintf(s.Out, "  note: the dialect of %s follows its documents and was not run against it yet; mortise hook doctor %s shows whether it works\n", d.Agent, d.Name)
	}
	if !o.dry {
		if err := o.profileOf.prepare(h, now); err != nil {
			return exit.With(exit.Config, err)
		}
	}
	change, err := o.install(h, events)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	o.report(s.Out, change, events)
	for _, off := range o.disabled() {
		fmt.Fprintf(s.Err, "warning: the hooks do not run: %s\n", off)
	}
	if !o.dry {
		o.reportPlugins(s.Out, h)
	}
	if d.Name == "codex" && !o.dry {
		return o.codexTrust(ctx, s)
	}
	return nil
}

// names are those of the plugins.
func (h *hookParts) names() []string {
	out := make([]string, len(h.program.Plugins))
	for i := range h.program.Plugins {
		out[i] = h.program.Plugins[i].Name
	}
	return out
}

// take is what is to be installed, and loads it.
func (o *installOptions) take(ctx context.Context, s command.Streams) (*installed, *hookParts, error) {
	p := o.profileOf
	out := &installed{Config: p.config, Follow: true}
	var cfg *program.Setup
	var err error
	if o.dry || o.follow {
		if cfg, err = p.links.Load(p.config); err == nil {
			out.Cache, err = config.CacheDir(cfg.Config)
		}
	} else if err = p.makeFolder(); err == nil {
		out, cfg, err = p.copy()
	}
	if err != nil {
		return nil, nil, exit.With(exit.Config, err)
	}
	h, err := loadParts(ctx, cfg, program.Logger(s.Err, warnLevel), term.NewProgress(s.Err, false).Say)
	return out, h, err
}

// makeFolder makes the folder of the profile.
func (p *hookProfile) makeFolder() error {
	if _, err := frame.SocketPath(p.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	if err := frame.CheckFolder(p.dir); err != nil {
		return fmt.Errorf("%w; chmod 700 makes it yours alone", err)
	}
	return nil
}

// prepare writes what is installed, and the policy, so that a client knows what to do.
func (p *hookProfile) prepare(h *hookParts, now *installed) error {
	if err := errors.Join(p.makeFolder(), p.keep(now)); err != nil {
		return err
	}
	return hook.WriteFile(filepath.Join(p.dir, frame.PolicyFile), p.policy(h.program, h.Cfg.Environment()).Marshal())
}

// install edits the file.
func (o *installOptions) install(h *hookParts, events []string) (*install.Change, error) {
	if o.agent.Dialect.Shim {
		script, err := o.agent.Script(o.clientP, o.profileOf.dir, events, h.program.Closed)
		if err != nil {
			return nil, err
		}
		return install.Edit(o.file(), o.dry, func(before []byte) ([]byte, error) {
			if len(before) > 0 && !bytes.Contains(before, []byte(install.ScriptMark)) {
				return nil, errors.New("the file is not one of mortise; move it away first")
			}
			return script, nil
		})
	}
	entries := install.Entries(o.agent.Dialect, o.clientP, o.profileOf.dir, events, h.program.Closed)
	for _, e := range entries {
		o.lines = append(o.lines, e.Line)
	}
	change, err := install.Edit(o.file(), o.dry, func(before []byte) ([]byte, error) { return o.agent.Added(before, o.mark(), entries) })
	if err == nil && !o.dry {
		err = o.agent.WriteCompanion(o.file())
	}
	return change, err
}

func (o *installOptions) report(out io.Writer, c *install.Change, events []string) {
	switch {
	case o.dry:
		fmt.Fprintf(out, "%s would be:\n%s", c.File, c.After)
	case !c.Changed():
		fmt.Fprintf(out, "%s: already installed (%s)\n", c.File, strings.Join(events, ", "))
	default:
		fmt.Fprintf(out, "%s: installed (%s)\n", c.File, strings.Join(events, ", "))
	}
	if c.Backup != "" {
		fmt.Fprintf(out, "  backup: %s\n", c.Backup)
	}
}

func (o *installOptions) reportPlugins(out io.Writer, h *hookParts) {
	fmt.Fprintf(out, "  plugins of %s: %s\n", o.profileOf.config, strings.Join(h.names(), ", "))
	if o.follow {
		fmt.Fprintln(out, "  --follow:", follows)
	} else if p := o.profileOf; p.inFolder(p.dir) {
		fmt.Fprintf(out, "  note: the copies in %s are below the folder of the config, so an agent that works there can write them; --profile names another place\n", p.dir)
	}
}

func runHookUninstall(s command.Streams, o *installOptions, agent string) error {
	o.installs = true
	if err := o.prepare(agent); err != nil {
		return err
	}
	path := o.file()
	before, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(s.Out, "%s: not installed\n", path)
		return nil
	}
	if err != nil {
		return exit.With(exit.Config, err)
	}
	change, err := o.agent.Uninstall(path, before, o.mark())
	switch {
	case err != nil:
		return exit.With(exit.Config, err)
	case change.Deleted:
		fmt.Fprintf(s.Out, "%s: deleted\n", path)
		return nil
	case !change.Changed():
		fmt.Fprintf(s.Out, "%s: the hooks of %s are not installed\n", path, o.profileOf.config)
	default:
		fmt.Fprintf(s.Out, "%s: uninstalled\n  backup: %s\n", path, change.Backup)
	}
	return o.left(agent, path)
}

// left is an error that names the hooks of ours that are still in a file: of other configs.
func (o *installOptions) left(agent, path string) error {
	now, err := os.ReadFile(path)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	profiles, err := o.agent.Profiles(now)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	if len(profiles) == 0 {
		return nil
	}
	return exit.With(exit.Run, fmt.Errorf("%s has hooks of other configs; to take them out: mortise hook uninstall %s --profile %s", path, agent, strings.Join(profiles, ", then ")))
}
