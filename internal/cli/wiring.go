package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/internal/wire"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
	"github.com/mortise-dev/mortise/summarizers"
)

// defaultHookTimeout is how long a hook may take when the config does not say.
const defaultHookTimeout = 5 * time.Second

// parts are what a config comes to: everything that outlives a conversation.
type parts struct {
	cfg        *Config
	granter    *granter
	host       *host.Host
	entries    []plugins.Entry
	set        *plugins.Set
	tools      *plugins.Tools // of the set
	modules    []*host.Module // of policies
	policies   []loadedPolicy
	summarizer *summarizers.Policy
	fallback   *summarizers.Policy
	admitter   *summarizers.Policy
	shared     *shared
	// newHost makes a host with the limits of a config.
	newHost func(*Config) (*host.Host, error)
	// failed are policies that did not load.
	failed []plugins.Status
}

// loadedPolicy is a policy with what it was loaded from.
type loadedPolicy struct {
	name   string
	spec   host.Spec
	policy *summarizers.Policy
}

// assemble loads everything that the config names. When something fails the
// error has one sentence for each failure, nothing may run, and the parts still
// have the status of each entry. They must be closed in any case.
func assemble(ctx context.Context, cfg *Config, logger *slog.Logger, p *progress, c *collector) (*parts, error) {
	out := &parts{cfg: cfg, granter: newGranter(cfg, logger)}
	cache, err := cacheDir(cfg)
	if err == nil {
		out.shared, err = newShared(cfg)
	}
	if err != nil {
		return out, with(ExitConfig, err)
	}
	out.newHost = func(cfg *Config) (*host.Host, error) { return newHost(cfg, cache, logger, p, c) }
	if out.host, err = out.newHost(cfg); err != nil {
		return out, with(ExitConfig, err)
	}
	if err := out.entriesOf(ctx); err != nil {
		return out, with(ExitConfig, err)
	}
	out.set, err = plugins.Load(ctx, out.host, out.entries)
	var toolErr error
	out.tools, toolErr = out.set.Tools()
	if err := errors.Join(err, toolErr, out.loadPolicies(ctx)); err != nil {
		return out, withModule(err)
	}
	for _, t := range out.tools.Tools() {
		c.tools.add(ToolReport{Plugin: out.tools.Owner(t.Name), Tool: t.Name})
	}
	_, err = out.phases(c, logger) // so that a cycle is reported before anything runs
	for i, s := range out.set.Status() {
		c.limit(s.Name, cfg.timeLimit(cfg.Plugins[i].Limits))
	}
	return out, with(ExitConfig, err)
}

// newHost makes a host with the limits of a config.
func newHost(cfg *Config, cache string, logger *slog.Logger, p *progress, c *collector) (*host.Host, error) {
	engine, err := cfg.links.engine(cfg.Engine)
	if err != nil {
		return nil, fmt.Errorf("config: engine: %w", err)
	}
	return host.New(host.Config{
		Engine: engine, CacheDir: cache, Compile: compileProcess(), Logger: logger,
		Limits: cfg.Limits.limits(host.Limits{}), OnCompile: compileLine(p), OnSwap: func(e host.SwapEvent) {
			rolledBack(p, c.reloaded)(e)
			if c.swapped != nil {
				c.swapped(e)
			}
		},
	})
}

// hookTimeout is how long a hook may take that has no limit of its own.
func (c *Config) hookTimeout() time.Duration {
	return cmp.Or(time.Duration(c.Agent.HookTimeout), max(time.Duration(c.Limits.Timeout), defaultHookTimeout))
}

// timeLimit is the limit of a plugin's calls that is in force: its own, or the first of the host's and
// the hooks'.
func (c *Config) timeLimit(own LimitsConfig) time.Duration {
	return cmp.Or(time.Duration(own.Timeout), min(cmp.Or(time.Duration(c.Limits.Timeout), defaultTimeout), c.hookTimeout()))
}

// entriesOf makes the entries of the plugins.
func (p *parts) entriesOf(ctx context.Context) error {
	var failures []error
	p.entries = make([]plugins.Entry, len(p.cfg.Plugins))
	for i := range p.cfg.Plugins {
		failures = append(failures, under("config: "+p.cfg.pluginAt(i), p.entry(ctx, i)))
	}
	return errors.Join(failures...)
}

// pluginAt is where a plugin is in the config.
func (c *Config) pluginAt(i int) string {
	return fmt.Sprintf("plugins[%d] (%s)", i, cmp.Or(c.Plugins[i].Name, c.Plugins[i].Module))
}

// entry makes the entry of a plugin.
func (p *parts) entry(ctx context.Context, i int) error {
	e, entry := p.cfg.Plugins[i], &p.entries[i]
	*entry = plugins.Entry{Name: e.Name, Disabled: e.Disabled, Priority: e.Priority, OnFailure: e.OnFailure}
	if e.Disabled {
		return nil
	}
	var configErr, err error
	if entry.Config, configErr = wire.Value(e.Config); configErr != nil {
		configErr = fmt.Errorf("config: %w", configErr)
	}
	entry.Module, err = p.spec(ctx, e.Name, e.ModuleConfig)
	return errors.Join(configErr, err)
}

// status returns the status of each module.
func (p *parts) status() []plugins.Status {
	var out []plugins.Status
	if p.set != nil {
		out = p.set.Status()
	}
	for i := range out {
		if out[i].Err != nil {
			out[i].Reason = worded(out[i].Err)
		}
	}
	for _, l := range p.policies {
		d := l.policy.Description()
		s := plugins.Status{
			Name: l.name, Version: d.Version, Summary: l.policy.Name() + ": " + d.Summary,
			State: plugins.StateLoaded, Module: l.policy.Info(),
		}
		s.Granted, s.Notes = l.policy.Granted()
		out = append(out, s)
	}
	return append(out, p.failed...)
}

// phases makes the runtime of a conversation: the plugins of the config, and
// native ones that the conversation brings.
func (p *parts) phases(c *collector, logger *slog.Logger, native ...phases.Plugin) (*phases.Runtime, error) {
	return phases.New(phases.Config{
		Plugins: append(p.set.Plugins(), native...), Record: c.record, Logger: logger,
		HookTimeout: p.cfg.hookTimeout(),
	})
}

// defaultTimeout is the host's limit of a call when no config says otherwise.
const defaultTimeout = 2 * time.Second

func (p *parts) loadPolicies(ctx context.Context) error {
	c := &p.cfg.Compaction
	if !c.Summarizer.on() {
		return nil
	}
	var errs [3]error
	p.summarizer, errs[0] = p.policy(ctx, "summarizer", summarizers.UseSummarize, c.Summarizer)
	errs[1] = p.loadFallback(ctx)
	if c.Admission.on() {
		p.admitter, errs[2] = p.policy(ctx, "admission", summarizers.UseAdmit, c.Admission.PolicyConfig)
	}
	return errors.Join(errs[:]...)
}

func (p *parts) policy(ctx context.Context, name string, use summarizers.Use, c PolicyConfig) (*summarizers.Policy, error) {
	var info host.Info
	policy, err := p.openPolicy(ctx, name, use, c, &info)
	if err != nil {
		p.failed = append(p.failed, plugins.Status{Name: name, State: plugins.StateFailed, Reason: worded(err), Err: err, Module: info})
	}
	return policy, err
}

func (p *parts) openPolicy(
	ctx context.Context, name string, use summarizers.Use, c PolicyConfig, info *host.Info,
) (*summarizers.Policy, error) {
	config, err := wire.Value(c.Config)
	if err != nil {
		return nil, fmt.Errorf("config: compaction.%s: config: %w", name, err)
	}
	spec, err := p.source(ctx, name, use, &c)
	if err != nil {
		return nil, fmt.Errorf("config: compaction.%s: %w", name, err)
	}
	module, err := p.host.Load(ctx, spec)
	if err != nil {
		return nil, guest.Explain(ctx, p.host, spec, err)
	}
	p.modules = append(p.modules, module)
	*info = module.Info()
	policy, err := summarizers.Open(ctx, module, summarizers.Config{
		Use: use, Policy: c.Policy, Config: config, Grants: spec.Grants, Trial: p.cfg.Compaction.Trial.trial(),
	})
	if err != nil {
		return nil, err
	}
	p.policies = append(p.policies, loadedPolicy{name, spec, policy})
	return policy, nil
}

// spec returns what to load for an entry.
func (p *parts) spec(ctx context.Context, name string, m ModuleConfig) (host.Spec, error) {
	grants, err := p.granter.grants(ctx, cmp.Or(name, m.Module), &m.Grants)
	return host.Spec{
		Name: name, Path: p.cfg.path(m.Module), SHA256: string(m.SHA256),
		Limits: m.Limits.limits(host.Limits{}), Grants: grants,
	}, err
}

// limits are those of the config over those of base.
func (l LimitsConfig) limits(base host.Limits) host.Limits {
	const pagesPerMiB = 16
	base.Timeout = cmp.Or(time.Duration(l.Timeout), base.Timeout)
	base.InitTimeout = cmp.Or(time.Duration(l.InitTimeout), base.InitTimeout)
	base.CompileTimeout = cmp.Or(time.Duration(l.CompileTimeout), base.CompileTimeout)
	base.MemoryPages = cmp.Or(l.MemoryMiB*pagesPerMiB, base.MemoryPages)
	base.InputBytes = cmp.Or(l.InputMiB<<20, base.InputBytes)
	base.OutputBytes = cmp.Or(l.OutputMiB<<20, base.OutputBytes)
	base.Instances = cmp.Or(l.Instances, base.Instances)
	return base
}

// guests returns what the modules have used so far.
func (p *parts) guests() []GuestReport {
	var out []GuestReport
	add := func(name, engine string, s host.Stats) {
		out = append(out, GuestReport{
			Name: name, Engine: engine, Calls: s.Calls, Failed: s.Failures, Traps: s.Traps,
			Replaced: s.Replaced, ReplacedBy: s.ReplacedBy, Printed: s.Printed, Late: s.Late, Fuel: s.Fuel, Swaps: s.Swaps, Rollbacks: s.Rollbacks,
			Denied: s.Denied, HTTP: s.Uses["http"], KV: s.Uses["kv"], Files: s.Uses["fs"], LogsDropped: s.LogsDropped,
		})
	}
	if p.set != nil {
		stats := p.set.Stats()
		for _, name := range slices.Sorted(maps.Keys(stats)) {
			add(name, cmp.Or(p.cfg.Engine, nativeEngine), stats[name])
		}
	}
	for _, m := range p.modules {
		add(m.Name(), m.Info().Engine, m.Stats())
	}
	return out
}

// close closes what was loaded.
func (p *parts) close(ctx context.Context) error {
	var errs []error
	if p.set != nil {
		errs = append(errs, p.set.Close(ctx))
	}
	for _, m := range p.modules {
		errs = append(errs, m.Close(ctx))
	}
	if p.host != nil {
		errs = append(errs, p.host.Close(ctx))
	}
	errs = append(errs, p.granter.close())
	return errors.Join(errs...)
}

// cacheDir is where compiled modules are kept.
func cacheDir(cfg *Config) (string, error) {
	if cfg.CacheDir != "" {
		return cfg.path(cfg.CacheDir), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("config: there is no user cache folder (%w); set cache_dir", err)
	}
	return filepath.Join(dir, "mortise"), nil
}

// compileProcess makes the host compile in child processes, where main has made that possible.
func compileProcess() *host.CompileProcess {
	p := &host.CompileProcess{}
	if !p.Possible() {
		return nil
	}
	return p
}

// compileLine names the module that is being compiled, since that takes seconds the first time.
func compileLine(p *progress) func(host.CompileInfo) {
	return func(i host.CompileInfo) {
		switch {
		case i.Cached || i.Err != nil:
		case !i.Done:
			p.say("compiling %s (%.1f MB); the next run takes it from the cache", i.Name, float64(i.Size)/1e6)
		default:
			p.say("compiled %s in %s", i.Name, i.Duration.Round(10*time.Millisecond))
		}
	}
}
