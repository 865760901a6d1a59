package hookcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/daemon"
	"github.com/mortise-dev/mortise/hook/frame"
	"github.com/mortise-dev/mortise/hook/install"
	"github.com/mortise-dev/mortise/internal/cli/check"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
)

const hookDoctorLong = `Check that an agent asks the plugins: the file is valid and has the hooks, the agent would run them, the
client and the daemon answer, and the registered line is executed as the agent would, with a probe.

--live runs the installed agent, without a network, against a model on loopback, in a folder of its own: one call is to
be blocked, one rewritten, one result redacted. It takes some seconds and costs nothing.

Exit codes: 0 nothing failed, 1 a check failed, 2 wrong command line, 3 wrong config.`

func newHookDoctor(s command.Streams, h *hookOptions) *cobra.Command {
	o := installOptions{hookOptions: h}
	var live bool
	var output command.OutputOption
	cmd := &cobra.Command{
		Use: "doctor AGENT", Short: "Prove that an agent asks the plugins", Long: hookDoctorLong, Args: command.TakesOne("AGENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.prepare(args[0]); err != nil {
				return err
			}
			var err error
			if o.clientP, err = o.clientPath(); err != nil {
				return exit.With(exit.Usage, err)
			}
			found := o.examine(cmd.Context())
			if live {
				found = append(found, o.liveProof(cmd.Context())...)
			}
			if output.AsJSON() {
				if err := term.WriteJSON(s.Out, map[string]any{"schema": "mortise.hook.doctor.v1", "agent": args[0], "checks": found}); err != nil {
					return err
				}
			} else if err := check.Print(s.Out, found); err != nil {
				return err
			}
			for _, f := range found {
				if f.State == check.Fail {
					return exit.With(exit.Run, errors.New("a check failed"))
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.scope, "scope", string(install.ScopeUser), "user or project")
	cmd.Flags().BoolVar(&live, "live", false, "run the agent against a model on loopback")
	output.Bind(cmd.Flags())
	return cmd
}

// examine executes the checks that need no model.
func (o *installOptions) examine(ctx context.Context) []check.Finding {
	var out []check.Finding
	add := func(name string, f check.Finding) {
		f.Check = name
		out = append(out, f)
	}
	add("agent", o.checkAgent(ctx))
	lines, f := o.checkFile()
	add("settings", f)
	if f.State != check.Fail {
		add("plugins", o.checkPlugins(ctx, lines))
	}
	add("installed", o.checkInstalled())
	for _, off := range o.disabled() {
		add("switch", check.Failed("take the switch out, or the hooks never run", errors.New(off)))
	}
	if o.agent.Dialect.Name == "codex" && len(lines) > 0 {
		if status := o.codexStatus(ctx); strings.HasPrefix(status, "trusted") {
			add("trust", check.Fine("%s", status))
		} else {
			add("trust", check.Failed("mortise hook install codex --trust", errors.New(status)))
		}
	}
	add("client", o.checkClient())
	for _, l := range lines {
		add("probe "+l.Event, o.probe(ctx, l))
	}
	if damaged, err := hook.NewTickets(filepath.Join(o.profileOf.dir, daemon.TicketFolder)).Damaged(); err == nil && len(damaged) > 0 {
		add("tickets", check.Warned("delete "+strings.Join(damaged, " "), "%s could not be read and set aside; what was approved there has to be approved again", term.Counted(len(damaged), "ticket")))
	}
	add("events", o.checkEvents())
	return out
}

// checkPlugins loads the plugins, and compares what they want with what is registered.
func (o *installOptions) checkPlugins(ctx context.Context, lines []install.Found) check.Finding {
	h, err := o.profileOf.load(ctx, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return check.Failed("correct "+o.profileOf.config, err)
	}
	defer h.Close(context.WithoutCancel(ctx))
	hint := "mortise hook install " + o.agent.Dialect.Name
	if o.agent.Dialect.Shim {
		script, err := o.agent.Script(o.clientP, o.profileOf.dir, h.wanted(o.agent.Dialect), h.program.Closed)
		if now, failed := os.ReadFile(o.file()); err == nil && failed == nil && !bytes.Equal(now, script) {
			return check.Failed(hint, errors.New("the extension is not the one that these plugins need"))
		}
	} else if missing := o.missing(h, o.version(ctx), lines); len(missing) > 0 {
		return check.Failed(hint, fmt.Errorf("the plugins want %s, which is not registered as they need it", strings.Join(missing, ", ")))
	}
	return check.Fine("%s", strings.Join(h.names(), ", "))
}

// checkEvents sums up what came of the agent's events so far.
func (o *installOptions) checkEvents() check.Finding {
	stats, err := daemon.ReadStats(o.profileOf.dir)
	if err != nil {
		return check.Failed("delete the file", err)
	}
	events, policy, wrong, all := 0, 0, 0, daemon.Latency{}
	var last time.Time
	for _, e := range stats.Events {
		if e.Dialect != o.agent.Dialect.Name {
			continue
		}
		events, wrong = events+e.Latency.Count, wrong+e.Errors
		policy += e.Decisions[daemon.DecisionOpen] + e.Decisions[daemon.DecisionClosed]
		all.Add(&e.Latency)
		if e.Last.After(last) {
			last = e.Last
		}
	}
	switch text := fmt.Sprintf("%s, p99 at most %g ms", term.Counted(events, "event"), all.Quantile(.99)); {
	case events == 0:
		return check.Fine("none yet")
	case policy > 0:
		return check.Warned("see "+filepath.Join(o.profileOf.dir, frame.LogFile), "%s; %d were answered by the policy, not by plugins", text, policy)
	case wrong > 0:
		return check.Warned("mortise hook stats", "%s; %d had an error", text, wrong)
	default:
		return check.Fine("%s; the last at %s", text, last.Format("2006-01-02 15:04:05"))
	}
}

func (o *installOptions) checkAgent(ctx context.Context) check.Finding {
	path, err := exec.LookPath(o.agent.Command)
	if err != nil {
		return check.Warned("the other checks do not need it", "%s is not in PATH", o.agent.Command)
	}
	return check.Fine("%s, %s", path, agentVersion(ctx, path))
}

// checkFile reads the registered lines.
func (o *installOptions) checkFile() ([]install.Found, check.Finding) {
	path := o.file()
	hint := "mortise hook install " + o.agent.Dialect.Name
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, check.Failed(hint, fmt.Errorf("%s: there is no such file", path))
	}
	if err != nil {
		return nil, check.Failed("", err)
	}
	if o.agent.Dialect.Shim {
		if !bytes.Contains(data, []byte(install.ScriptMark)) {
			return nil, check.Failed(hint, fmt.Errorf("%s is not the extension of mortise", path))
		}
		return nil, check.Fine("%s", path)
	}
	found, err := o.agent.Hooks(data, o.mark())
	if err != nil {
		return nil, check.Failed("the agent would ignore the file; fix that line by hand", fmt.Errorf("%s: %w", path, err))
	}
	var lines []install.Found
	for _, f := range found {
		if f.Ours {
			lines = append(lines, f)
		}
	}
	if len(lines) == 0 {
		return nil, check.Failed(hint, fmt.Errorf("%s has no hook of this profile", path))
	}
	return lines, check.Fine("%s: %s", path, term.Counted(len(lines), "hook"))
}

func (o *installOptions) checkInstalled() check.Finding {
	if _, err := o.profileOf.installed(); err != nil {
		return check.Failed("mortise hook install "+o.agent.Dialect.Name, err)
	}
	if state := o.profileOf.state(); state != "" {
		return check.Warned("", "%s", state)
	}
	return check.Fine("the copies of the config and its modules are those that run")
}

func (o *installOptions) checkClient() check.Finding {
	if err := frame.CheckFolder(o.profileOf.dir); err != nil {
		return check.Failed("mortise hook install makes it; it must be yours alone (chmod 700)", err)
	}
	if _, err := frame.ReadPolicy(o.profileOf.dir); err != nil {
		return check.Failed("mortise hook install writes it", err)
	}
	info, err := os.Stat(o.clientP)
	if err != nil {
		return check.Failed("install it beside mortise", err)
	}
	if info.Mode()&0o100 == 0 {
		return check.Failed("chmod +x", fmt.Errorf("%s is not executable", o.clientP))
	}
	return check.Fine("%s", o.clientP)
}

// probeTime is how long the probe may take; the first one starts the daemon and loads the plugins.
const probeTime = 30 * time.Second

// probe executes a registered line as the agent would. A probe event is of no tool and no session of the agent.
func (o *installOptions) probe(ctx context.Context, l install.Found) check.Finding {
	d := o.agent.Dialect
	if l.Client != o.clientP { // which may be anything that a project brings
		return check.Failed("mortise hook install "+d.Name, fmt.Errorf("the registered client is %s, and that of this installation %s", term.Clip(term.OneLine(l.Client), 200), o.clientP))
	}
	spec := d.Events[l.Event]
	if spec == nil {
		return check.Warned("mortise hook install "+d.Name, "%s is not an event of this version", l.Event)
	}
	event := map[string]any{d.Fields["session"]: "mortise-doctor", d.Fields["cwd"]: o.project, d.Fields["tool"]: hook.ProbeTool, d.Fields["input"]: map[string]any{}}
	if d.EventField != "" {
		event[d.EventField] = l.Event
	}
	stdin, err := json.Marshal(event)
	if err != nil {
		return check.Failed("", err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", l.Command)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.WaitDelay = bytes.NewReader(stdin), &stdout, &stderr, o.project, time.Second
	cmd.Env = append(os.Environ(), "MORTISE_HOOK_WAIT_MS=25000")
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return check.Failed("see "+filepath.Join(o.profileOf.dir, frame.LogFile), fmt.Errorf("the registered line failed: %w %s", err, term.Clip(stderr.String(), 200)))
	}
	if stderr.Len() > 0 {
		return check.Failed("", fmt.Errorf("the registered line wrote to standard error: %s", term.Clip(stderr.String(), 200)))
	}
	if policy, err := frame.ReadPolicy(o.profileOf.dir); err == nil {
		if r, ok := policy.Rule(d.Name, l.Event); ok && r.Closed && r.Stdout != d.Noop && r.Stdout == stdout.String() {
			return check.Failed("see "+filepath.Join(o.profileOf.dir, frame.LogFile), errors.New("the daemon did not answer, so the policy did"))
		}
	}
	if spec.Gate && !strings.Contains(stdout.String(), hook.ProbeReason) {
		return check.Failed("see "+filepath.Join(o.profileOf.dir, frame.LogFile), fmt.Errorf("the probe was not denied: %q", term.Clip(stdout.String(), 80)))
	}
	return check.Fine("answered in %s: %s", time.Since(start).Round(time.Millisecond), term.Clip(strings.TrimSpace(stdout.String()), 80))
}

var errNotLive = errors.New("there is no live proof for this agent yet")

// liveProof runs the agent itself.
func (o *installOptions) liveProof(ctx context.Context) []check.Finding {
	var out []check.Finding
	steps, err := o.live(ctx)
	if err != nil {
		f := check.Failed("", err)
		if errors.Is(err, errNotLive) {
			f = check.Warned("", "%s", exit.Text(err))
		}
		f.Check = "live"
		return append(out, f)
	}
	return append(out, steps...)
}
