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
	"github.com/mortise-dev/mortise/internal/wire"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
	"github.com/mortise-dev/mortise/summarizers"
)

// hookTimeout is how long a hook may take when the config does not say.
const hookTimeout = 5 * time.Second

// parts are what a config comes to: everything that outlives a conversation.
type parts struct {
	cfg        *Config
	host       *host.Host
	set        *plugins.Set
	policies   []*host.Module
	summarizer *summarizers.Policy
	admitter   *summarizers.Policy
	status     []plugins.Status
}

// assemble loads everything that the config names. When something fails the
// error has one sentence for each failure, nothing may run, and the parts still
// say what became of each entry. They must be closed in any case.
func assemble(ctx context.Context, cfg *Config, logger *slog.Logger, p *progress, c *collector) (*parts, error) {
	out := &parts{cfg: cfg}
	cache, err := cacheDir(cfg)
	if err != nil {
		return out, with(ExitConfig, err)
	}
	out.host, err = host.New(host.Config{
		Engine: host.EngineName(cfg.Engine), CacheDir: cache, Logger: logger,
		Limits: cfg.Limits.limits(host.Limits{}), OnCompile: compileLine(p),
	})
	if err != nil {
		return out, with(ExitConfig, err)
	}
	var failures []error
	entries := make([]plugins.Entry, len(cfg.Plugins))
	for i, e := range cfg.Plugins {
		config, err := wire.Value(e.Config)
		if err != nil {
			failures = append(failures, fmt.Errorf("config: plugin %q: %w", e.Name, err))
		}
		entries[i] = plugins.Entry{
			Name: e.Name, Module: out.spec(e.Name, e.ModuleConfig), Config: config,
			Disabled: e.Disabled, Priority: e.Priority, OnFailure: e.OnFailure,
		}
	}
	out.set, err = plugins.Load(ctx, out.host, entries)
	failures = append(failures, err, out.loadPolicies(ctx))
	out.status = append(out.set.Status(), out.status...)
	if err := errors.Join(failures...); err != nil {
		return out, with(ExitModule, err)
	}
	_, err = out.phases(c, logger) // so that a cycle is told before anything runs
	for _, e := range cfg.Plugins {
		limit := e.Limits.limits(cfg.Limits.limits(host.Limits{}))
		c.limit(e.Name, cmp.Or(limit.Timeout, defaultTimeout))
	}
	return out, with(ExitConfig, err)
}

// phases makes the runtime of a conversation: the plugins of the config, and
// native ones that the conversation brings.
func (p *parts) phases(c *collector, logger *slog.Logger, native ...phases.Plugin) (*phases.Runtime, error) {
	return phases.New(phases.Config{
		Plugins: append(p.set.Plugins(), native...), Record: c.record, Logger: logger,
		HookTimeout: cmp.Or(time.Duration(p.cfg.Agent.HookTimeout), hookTimeout),
	})
}

// defaultTimeout is the host's limit of a call when no config says otherwise.
const defaultTimeout = 2 * time.Second

func (p *parts) loadPolicies(ctx context.Context) error {
	c := &p.cfg.Compaction
	if c.Summarizer.Module == "" {
		return nil
	}
	var errs [2]error
	p.summarizer, errs[0] = p.policy(ctx, "summarizer", summarizers.UseSummarize, c.Summarizer)
	if c.Admission.Module != "" {
		p.admitter, errs[1] = p.policy(ctx, "admission", summarizers.UseAdmit, c.Admission.PolicyConfig)
	}
	return errors.Join(errs[:]...)
}

func (p *parts) policy(ctx context.Context, name string, use summarizers.Use, c PolicyConfig) (*summarizers.Policy, error) {
	status := plugins.Status{Name: name, State: plugins.StateFailed}
	policy, err := p.openPolicy(ctx, name, use, c, &status)
	if err != nil {
		status.Reason = err.Error()
	}
	p.status = append(p.status, status)
	return policy, err
}

func (p *parts) openPolicy(
	ctx context.Context, name string, use summarizers.Use, c PolicyConfig, status *plugins.Status,
) (*summarizers.Policy, error) {
	config, err := wire.Value(c.Config)
	if err != nil {
		return nil, fmt.Errorf("config: compaction.%s: %w", name, err)
	}
	module, err := p.host.Load(ctx, p.spec(name, c.ModuleConfig))
	if err != nil {
		return nil, err
	}
	p.policies = append(p.policies, module)
	status.Module = module.Info()
	policy, err := summarizers.Open(ctx, module, summarizers.Config{Use: use, Policy: c.Policy, Config: config})
	if err != nil {
		return nil, err
	}
	d := policy.Description()
	status.Version, status.Summary, status.State = d.Version, policy.Name()+": "+d.Summary, plugins.StateLoaded
	return policy, nil
}

// spec says what to load for an entry.
func (p *parts) spec(name string, m ModuleConfig) host.Spec {
	return host.Spec{
		Name: name, Path: p.cfg.path(m.Module), SHA256: m.SHA256,
		Limits: m.Limits.limits(host.Limits{}),
		Grants: host.Grants{Config: m.Grants.Values, Log: m.Grants.Log, Clock: m.Grants.Clock, Random: m.Grants.Random},
	}
}

// limits are those of the config over those of base.
func (l LimitsConfig) limits(base host.Limits) host.Limits {
	const pagesPerMiB = 16
	base.Timeout = cmp.Or(time.Duration(l.Timeout), base.Timeout)
	base.InitTimeout = cmp.Or(time.Duration(l.InitTimeout), base.InitTimeout)
	base.MemoryPages = cmp.Or(l.MemoryMiB*pagesPerMiB, base.MemoryPages)
	base.InputBytes = cmp.Or(l.InputMiB<<20, base.InputBytes)
	base.OutputBytes = cmp.Or(l.OutputMiB<<20, base.OutputBytes)
	base.Instances = cmp.Or(l.Instances, base.Instances)
	return base
}

// guests says what the modules have used so far.
func (p *parts) guests() []GuestReport {
	var out []GuestReport
	add := func(name string, engine host.EngineName, s host.Stats) {
		out = append(out, GuestReport{
			Name: name, Engine: string(engine), Calls: s.Calls, Failed: s.Failures, Traps: s.Traps,
			Replaced: s.Replaced, Fuel: s.Fuel,
		})
	}
	if p.set != nil {
		stats := p.set.Stats()
		for _, name := range slices.Sorted(maps.Keys(stats)) {
			add(name, cmp.Or(host.EngineName(p.cfg.Engine), host.EngineNative), stats[name])
		}
	}
	for _, m := range p.policies {
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
	for _, m := range p.policies {
		errs = append(errs, m.Close(ctx))
	}
	if p.host != nil {
		errs = append(errs, p.host.Close(ctx))
	}
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

// compileLine says what is being compiled, since that takes seconds the first time.
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
