package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/daemon"
	"github.com/mortise-dev/mortise/hook/frame"
	"github.com/mortise-dev/mortise/phases"
)

// Sizes of what plugins may answer to a hook: tools of agents print much.
const (
	hookMessageBytes = 8 << 20
	hookReplyBytes   = 24 << 20
)

// hookProfile is a config with the folder of its hooks.
type hookProfile struct {
	links       Links
	config, dir string
}

func (o *hookOptions) open() (*hookProfile, error) {
	config, err := o.configPath()
	if err != nil {
		return nil, with(ExitConfig, err)
	}
	dir, err := o.profileDir(config)
	return &hookProfile{links: o.links, config: config, dir: dir}, with(ExitConfig, err)
}

// hookParts are the plugins of a config, for hooks.
type hookParts struct {
	*parts

	program *hook.Program
}

// load loads the plugins of the config, and nothing else of it.
func (p *hookProfile) load(ctx context.Context, logger *slog.Logger, out *progress) (*hookParts, error) {
	cfg, err := p.links.loadConfig(p.config)
	if err != nil {
		return nil, with(ExitConfig, err)
	}
	cfg.Compaction, cfg.Store = CompactionConfig{}, ""
	if cfg.models, err = openModels(cfg); err != nil {
		return nil, with(ExitConfig, err)
	}
	loaded, err := assemble(ctx, cfg, logger, out, newCollector())
	if err != nil {
		return nil, errors.Join(err, loaded.close(context.WithoutCancel(ctx)))
	}
	trace := hook.NewTrace()
	runtime, err := phases.New(phases.Config{
		Plugins: loaded.set.Plugins(), Record: trace.Record, Logger: logger, HookTimeout: cfg.hookTimeout(),
		Limits: phases.Limits{MessageBytes: hookMessageBytes, ReplyBytes: hookReplyBytes},
	})
	if err != nil {
		return nil, errors.Join(with(ExitConfig, err), loaded.close(context.WithoutCancel(ctx)))
	}
	h := &cfg.Hook
	program := &hook.Program{
		Runtime: runtime, Trace: trace, MayApprove: h.MayApprove, Quiet: h.Quiet, WrapShell: h.WrapShell, RepairTokens: -1,
	}
	if h.Repair {
		program.RepairTokens = h.RepairTokens
	}
	for _, plugin := range loaded.set.Plugins() {
		program.Plugins = append(program.Plugins, plugin.Describe())
	}
	return &hookParts{parts: loaded, program: program}, nil
}

// loaded is what a daemon wants to know.
func (h *hookParts) loaded() *daemon.Loaded {
	return &daemon.Loaded{Program: h.program, Full: h.cfg.Hook.Record == recordFull, Close: h.close}
}

// changed returns a function that returns another text when the config or a module is another one. It reads the config
// again only when its file is another one.
func (p *hookProfile) changed() func() string {
	var mu sync.Mutex
	files, known := []string{}, ""
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		if now := stamp(p.config); now != known {
			known, files = now, nil
			if cfg, err := p.links.loadConfig(p.config); err == nil {
				for i := range cfg.Plugins {
					files = append(files, cfg.path(cfg.Plugins[i].Module))
				}
			}
		}
		out := []string{known}
		for _, f := range files {
			out = append(out, stamp(f))
		}
		return strings.Join(out, "")
	}
}

// stamp changes when a file does.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path + ": none\n"
	}
	return path + " " + strconv.FormatInt(info.ModTime().UnixNano(), 36) + " " + strconv.FormatInt(info.Size(), 36) + "\n"
}

// policy is what clients answer without a daemon.
func (p *hookProfile) policy(program *hook.Program, env []string) *frame.Policy {
	self, err := os.Executable()
	if err != nil {
		self = "mortise"
	}
	out := &frame.Policy{
		Socket: p.socket(), Daemon: []string{self, "hook", "daemon", "--config", p.config, "--profile", p.dir}, Env: env,
	}
	for _, name := range hook.Dialects() {
		d, err := hook.DialectOf(name)
		if err != nil {
			continue
		}
		for _, event := range slices.Sorted(maps.Keys(d.Events)) {
			spec := d.Events[event]
			closed := spec.Gate
			if program != nil {
				closed = program.Closed(spec)
			}
			stdout, _ := d.PolicyOutput(spec, closed, "mortise did not answer in time, and a plugin of this event fails closed; run: mortise hook doctor "+name)
			out.Rules = append(out.Rules, frame.Rule{Dialect: name, Event: event, Closed: closed, Stdout: stdout})
		}
	}
	return out
}

func (p *hookProfile) socket() string {
	return frame.SocketPath(os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), filepath.Base(p.dir))
}

// environment are the variables that the config wants, which a client hands to a daemon that it starts.
func (c *Config) environment() []string {
	var out []string
	for i := range c.Plugins {
		for _, s := range c.Plugins[i].Grants.Secrets {
			out = append(out, s.Env)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(s string) bool { return s == "" })
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

// silent discards what loading says.
func silent() *progress { return newProgress(io.Discard, true) }
