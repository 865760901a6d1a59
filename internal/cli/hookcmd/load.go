package hookcmd

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/daemon"
	"github.com/mortise-dev/mortise/hook/frame"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/phases"
)

// Sizes of what plugins may answer to a hook: tools of agents print much.
const (
	hookMessageBytes = 8 << 20
	hookReplyBytes   = 24 << 20
)

// hookProfile is a config with the folder of its hooks.
type hookProfile struct {
	links       program.Links
	config, dir string
}

func (o *hookOptions) open() (*hookProfile, error) {
	path, err := o.configPath()
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	dir, err := o.profileDir(path)
	return &hookProfile{links: o.links, config: path, dir: dir}, exit.With(exit.Config, err)
}

// hookParts are the plugins of a config, for hooks.
type hookParts struct {
	*program.Parts

	program *hook.Program
}

// load loads the plugins of the config as it is installed.
func (p *hookProfile) load(ctx context.Context, logger *slog.Logger, say func(format string, args ...any)) (*hookParts, error) {
	cfg, err := p.setup()
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return loadParts(ctx, cfg, logger, say)
}

// loadParts loads the plugins of a config, and nothing else of it.
func loadParts(ctx context.Context, cfg *program.Setup, logger *slog.Logger, say func(format string, args ...any)) (*hookParts, error) {
	var err error
	cfg.Compaction, cfg.Store = config.CompactionConfig{}, ""
	if cfg.Clients, err = program.OpenGranted(cfg); err != nil {
		return nil, exit.With(exit.Config, err)
	}
	loaded, err := program.Assemble(ctx, cfg, logger, program.Observer{Say: say})
	if err != nil {
		return nil, errors.Join(err, loaded.Close(context.WithoutCancel(ctx)))
	}
	trace := hook.NewTrace()
	runtime, err := phases.New(phases.Config{
		Plugins: loaded.Set.Plugins(), Record: trace.Record, Logger: logger, HookTimeout: cfg.HookTimeout(),
		Limits: phases.Limits{MessageBytes: hookMessageBytes, ReplyBytes: hookReplyBytes},
	})
	if err != nil {
		return nil, errors.Join(exit.With(exit.Config, err), loaded.Close(context.WithoutCancel(ctx)))
	}
	h := &cfg.Hook
	loadedProgram := &hook.Program{
		Runtime: runtime, Trace: trace, MayApprove: h.MayApprove, Quiet: h.Quiet, WrapShell: h.WrapShell, RepairTokens: -1,
	}
	if h.Repair {
		loadedProgram.RepairTokens = h.RepairTokens
	}
	for _, plugin := range loaded.Set.Plugins() {
		loadedProgram.Plugins = append(loadedProgram.Plugins, plugin.Describe())
	}
	return &hookParts{Parts: loaded, program: loadedProgram}, nil
}

// loaded is what a daemon wants to know.
func (h *hookParts) loaded() *daemon.Loaded {
	return &daemon.Loaded{Program: h.program, Full: h.Cfg.Hook.Record == config.RecordFull, Close: h.Close}
}

// policy is what clients answer without a daemon.
func (p *hookProfile) policy(of *hook.Program, env []string) *frame.Policy {
	self, err := os.Executable()
	if err != nil {
		self = "mortise"
	}
	out := &frame.Policy{
		Daemon: []string{self, "hook", "daemon", "--config", p.config, "--profile", p.dir}, Env: env,
	}
	for _, name := range hook.Dialects() {
		d, err := hook.DialectOf(name)
		if err != nil {
			continue
		}
		for _, event := range slices.Sorted(maps.Keys(d.Events)) {
			spec := d.Events[event]
			closed := spec.Gate
			if of != nil {
				closed = of.Closed(spec)
			}
			stdout, _ := d.PolicyOutput(spec, closed, "mortise could not ask the plugins of this event, and one of them fails closed; run: mortise hook doctor "+name)
			out.Rules = append(out.Rules, frame.Rule{Dialect: name, Event: event, Closed: closed, Stdout: stdout})
		}
	}
	return out
}

// wanted are the events of a dialect in which a plugin, or repair, has a part.
func (h *hookParts) wanted(d *hook.Dialect) []string {
	var out []string
	for name, spec := range d.Events {
		if h.program.Wants(spec) || h.needs(d, spec.Kind) {
			out = append(out, name)
		}
	}
	return out
}

// needs reports whether an event is needed although no plugin has a hook there.
func (h *hookParts) needs(d *hook.Dialect, kind hook.EventKind) bool {
	repair := h.program.RepairTokens >= 0 && d.Compaction != ""
	switch kind {
	case hook.EventPrompt: // where a run begins, and with it what plugins keep for a run
		return repair || slices.ContainsFunc(h.program.Plugins, func(p abi.Description) bool {
			return slices.ContainsFunc(p.State, func(k abi.StateKey) bool { return cmp.Or(k.Scope, abi.ScopeRun) == abi.ScopeRun })
		})
	case hook.EventSession, hook.EventCompact, hook.EventCompacted, hook.EventPost:
		return repair
	case hook.EventPre:
		return h.program.WrapShell || h.excludes()
	default:
		return false
	}
}

// excludes reports whether a plugin could leave out tools, whose calls the gate has to deny then.
func (h *hookParts) excludes() bool {
	for _, at := range []abi.Phase{abi.RunStart, abi.StepEnd} {
		if len(h.program.Runtime.Order(at)) > 0 {
			return true
		}
	}
	return false
}
