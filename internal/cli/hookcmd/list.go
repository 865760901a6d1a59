package hookcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/daemon"
	"github.com/mortise-dev/mortise/hook/install"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
)

// agentReport is what mortise hook list prints of an agent.
type agentReport struct {
	Agent   string `json:"agent"`
	Version string `json:"version,omitempty"`
	// Events are registered ones of this profile, by file.
	Events map[string][]string `json:"events"`
	// Missing are events that the plugins want and that are not registered as they should be, since the config is another one now.
	Missing []string `json:"missing,omitempty"`
	// Foreign are hooks of others on the same events; they still run alongside ours.
	Foreign []string `json:"foreign,omitempty"`
	// Disabled are switches that turn hooks off. Trust is Codex's.
	Disabled    []string  `json:"disabled,omitempty"`
	Trust       string    `json:"trust,omitempty"`
	Unsupported []string  `json:"unsupported,omitempty"`
	Last        time.Time `json:"last,omitzero"`
	// Stats counts the agent's events.
	Stats []*daemon.EventStats `json:"stats,omitempty"`
	Error string               `json:"error,omitempty"`
}

// hookReport is what mortise hook list prints.
type hookReport struct {
	Schema  string `json:"schema"`
	Config  string `json:"config"`
	Profile string `json:"profile"`
	// State is what to know of what is installed: that files are other ones by now, or are followed.
	State  string              `json:"state,omitempty"`
	Order  map[string][]string `json:"order"`
	Agents []*agentReport      `json:"agents"`
}

func newHookList(s command.Streams, h *hookOptions) *cobra.Command {
	var out command.OutputOption
	cmd := &cobra.Command{
		Use: "list", Short: "List what is registered, the plugins in their order, and what cannot be done", Args: command.TakesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runHookList(cmd.Context(), s, h, out.AsJSON())
		},
	}
	out.Bind(cmd.Flags())
	return cmd
}

func runHookList(ctx context.Context, s command.Streams, o *hookOptions, asJSON bool) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	h, err := p.load(ctx, program.Logger(s.Err, warnLevel), term.NewProgress(s.Err, asJSON).Say)
	if err != nil {
		return err
	}
	defer h.Close(context.WithoutCancel(ctx))
	r := &hookReport{Schema: "mortise.hook.list.v1", Config: p.config, Profile: p.dir, State: p.state(), Order: map[string][]string{}}
	for _, at := range slices.Concat(abi.Phases(), abi.CompactionPhases()) {
		if order := h.program.Runtime.Order(at); len(order) > 0 {
			r.Order[string(at)] = order
		}
	}
	stats, err := daemon.ReadStats(p.dir)
	if err != nil {
		return exit.With(exit.Session, err)
	}
	for _, name := range hook.Dialects() {
		if a := o.report(ctx, h, name); a != nil {
			a.count(stats)
			r.Agents = append(r.Agents, a)
		}
	}
	if asJSON {
		return term.WriteJSON(s.Out, r)
	}
	r.print(s.Out)
	return nil
}

// count adds what came of the agent's events.
func (a *agentReport) count(stats *daemon.Stats) {
	for _, e := range stats.Events {
		if e.Dialect != a.Agent {
			continue
		}
		a.Stats = append(a.Stats, e)
		if e.Last.After(a.Last) {
			a.Last = e.Last
		}
	}
}

// report is what is known of one agent, or nil if there is nothing.
func (o *hookOptions) report(ctx context.Context, h *hookParts, name string) *agentReport {
	i := installOptions{hookOptions: o, scope: string(install.ScopeUser)}
	if err := i.prepare(name); err != nil {
		return &agentReport{Agent: name, Error: exit.Text(err)}
	}
	d := i.agent.Dialect
	out := &agentReport{Agent: d.Name, Events: map[string][]string{}}
	var found []install.Found
	for _, scope := range []install.Scope{install.ScopeUser, install.ScopeProject} {
		i.scope = string(scope)
		found = append(found, out.read(&i)...)
	}
	path, err := exec.LookPath(i.agent.Command)
	if err != nil && len(out.Events) == 0 {
		return nil
	}
	if err == nil {
		out.Version = agentVersion(ctx, path)
	}
	out.Disabled = i.disabled()
	if len(found) > 0 {
		out.Missing = i.missing(h, out.Version, found)
	}
	_, missing := h.known(d, out.Version, h.wanted(d))
	for _, g := range append(missing, h.gaps(d)...) {
		out.Unsupported = append(out.Unsupported, g.text)
	}
	if d.Name == "codex" && len(out.Events) > 0 && err == nil {
		out.Trust = i.codexStatus(ctx)
	}
	return out
}

// missing are the events whose registered lines are not what an install would write.
func (o *installOptions) missing(h *hookParts, version string, found []install.Found) []string {
	events, _ := h.known(o.agent.Dialect, version, h.wanted(o.agent.Dialect))
	var out []string
	for _, e := range install.Entries(o.agent.Dialect, found[0].Client, o.profileOf.dir, events, h.program.Closed) {
		if !slices.ContainsFunc(found, func(f install.Found) bool { return f.Event == e.Event && f.Command == e.Line }) {
			out = append(out, e.Event)
		}
	}
	return out
}

// read adds the hooks of a file, and returns those that are ours.
func (a *agentReport) read(i *installOptions) (ours []install.Found) {
	path := i.file()
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && i.agent.Dialect.Shim:
		if strings.Contains(string(data), install.ScriptMark) {
			a.Events[path] = []string{"extension"}
		}
		return nil
	}
	var found []install.Found
	if err == nil {
		found, err = i.agent.Hooks(data, i.mark())
	}
	if err != nil {
		a.Error = fmt.Sprintf("%s: %s", path, exit.Text(err))
		return nil
	}
	for _, f := range found {
		if f.Ours {
			a.Events[path] = append(a.Events[path], f.Event)
			ours = append(ours, f)
		}
	}
	for _, f := range found {
		if !f.Ours && slices.Contains(a.Events[path], f.Event) {
			a.Foreign = append(a.Foreign, fmt.Sprintf("%s: %s", f.Event, term.Clip(term.OneLine(f.Command), 100)))
		}
	}
	return ours
}

// agentVersion asks an agent for its version.
func agentVersion(ctx context.Context, path string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return term.Clip(term.OneLine(first), 60)
}

// disabled lists switches of the agent that turn hooks off.
func (o *installOptions) disabled() []string {
	if o.agent.Dialect.Name != "claude" {
		return nil
	}
	files := []string{
		o.agent.File(install.ScopeUser, os.Getenv, o.home, o.project), o.agent.File(install.ScopeProject, os.Getenv, o.home, o.project),
		filepath.Join(o.project, ".claude", "settings.local.json"),
	}
	for _, managed := range []string{"/etc/claude-code", "/Library/Application Support/ClaudeCode"} {
		parts, _ := filepath.Glob(filepath.Join(managed, "managed-settings.d", "*.json"))
		files = append(append(files, filepath.Join(managed, "managed-settings.json")), parts...)
	}
	var out []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, key := range []string{"disableAllHooks", "allowManagedHooksOnly"} {
			if on, err := install.Switch(data, key); err == nil && on {
				out = append(out, fmt.Sprintf("%s is set in %s", key, f))
			}
		}
	}
	return out
}

func (r *hookReport) print(out io.Writer) {
	fmt.Fprintf(out, "config   %s\nprofile  %s\n", r.Config, r.Profile)
	if r.State != "" {
		fmt.Fprintf(out, "NOTE     %s\n", r.State)
	}
	for _, at := range slices.Concat(abi.Phases(), abi.CompactionPhases()) {
		if order := r.Order[string(at)]; len(order) > 0 {
			fmt.Fprintf(out, "  %-20s %s\n", at, strings.Join(order, " > "))
		}
	}
	for _, a := range r.Agents {
		fmt.Fprintf(out, "\n%s %s\n", a.Agent, a.Version)
		line := func(what string, all ...string) {
			for _, s := range all {
				if s != "" {
					fmt.Fprintf(out, "  %-12s %s\n", what, s)
				}
			}
		}
		for file, events := range a.Events {
			line("registered", file+": "+strings.Join(events, ", "))
		}
		if len(a.Events) == 0 {
			line("registered", "no; mortise hook install "+a.Agent)
		}
		if len(a.Missing) > 0 {
			line("MISSING", strings.Join(a.Missing, ", ")+"; mortise hook install "+a.Agent)
		}
		line("trust", a.Trust)
		line("OFF", a.Disabled...)
		line("foreign", a.Foreign...)
		line("unsupported", a.Unsupported...)
		line("error", a.Error)
		if !a.Last.IsZero() {
			line("last event", a.Last.Format("2006-01-02 15:04:05"))
		}
	}
}
