package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/internal/wire"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
	bundledplugins "github.com/mortise-dev/mortise/plugins/bundled"
	"github.com/mortise-dev/mortise/summarizers"
)

// Parts are what a config comes to: everything that outlives a conversation.
type Parts struct {
	Cfg        *Setup
	granter    *granter
	Host       *host.Host
	Entries    []plugins.Entry
	Set        *plugins.Set
	Tools      *plugins.Tools // of the set
	modules    []*host.Module // of policies
	Policies   []loadedPolicy
	Summarizer *summarizers.Policy
	fallback   *summarizers.Policy
	admitter   *summarizers.Policy
	Shared     *shared
	// newHost makes a host with the limits of a config.
	newHost func(*Setup) (*host.Host, error)
	// failed are policies that did not load.
	failed []plugins.Status
}

// loadedPolicy is a policy with what it was loaded from.
type loadedPolicy struct {
	Name   string
	Spec   host.Spec
	Policy *summarizers.Policy
}

// Assemble loads everything that the config names. When something fails the
// error has one sentence for each failure, nothing may run, and the parts still
// have the status of each entry. They must be closed in any case.
func Assemble(ctx context.Context, cfg *Setup, logger *slog.Logger, o Observer) (*Parts, error) {
	out, err := Bare(cfg, logger, o, host.Limits{})
	if err == nil {
		out.Shared, err = newShared(cfg)
	}
	if err == nil {
		err = out.entriesOf(ctx)
	}
	if err != nil {
		return out, exit.With(exit.Config, err)
	}
	var policies sync.WaitGroup
	var toolErr, policyErr error
	policies.Go(func() { policyErr = out.loadPolicies(ctx) })
	out.Set, err = plugins.Load(ctx, out.Host, out.Entries)
	out.Tools, toolErr = out.Set.Tools()
	policies.Wait()
	if err := errors.Join(err, toolErr, policyErr); err != nil {
		return out, WithModule(err)
	}
	_, err = out.Phases(nil, logger) // so that a cycle is reported before anything runs
	return out, exit.With(exit.Config, err)
}

// Bare has a host with the limits of the config over those of base, and nothing loaded. It must be closed also after an error.
func Bare(cfg *Setup, logger *slog.Logger, o Observer, base host.Limits) (*Parts, error) {
	out := &Parts{Cfg: cfg, granter: newGranter(cfg, logger)}
	out.newHost = func(cfg *Setup) (*host.Host, error) {
		cache, err := config.CacheDir(cfg.Config)
		if err != nil {
			return nil, err
		}
		engine, err := cfg.Links.engine(cfg.Engine)
		if err != nil {
			return nil, err
		}
		return host.New(host.Config{
			Engine: engine, CacheDir: cache, Compile: compileProcess(), Logger: logger,
			Limits: cfg.Limits.Limits(base), OnCompile: compileLine(o.Say), OnSwap: o.swap,
		})
	}
	var err error
	out.Host, err = out.newHost(cfg)
	return out, err
}

// entriesOf makes the entries of the plugins.
func (p *Parts) entriesOf(ctx context.Context) error {
	var failures []error
	p.Entries = make([]plugins.Entry, len(p.Cfg.Plugins))
	for i := range p.Cfg.Plugins {
		failures = append(failures, exit.Under("config: "+p.Cfg.PluginAt(i), p.entry(ctx, i)))
	}
	return errors.Join(failures...)
}

// entry makes the entry of a plugin.
func (p *Parts) entry(ctx context.Context, i int) error {
	e, entry := p.Cfg.Plugins[i], &p.Entries[i]
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

// Status returns the status of each module.
func (p *Parts) Status() []plugins.Status {
	var out []plugins.Status
	if p.Set != nil {
		out = p.Set.Status()
	}
	for i := range out {
		if out[i].Err != nil {
			out[i].Reason = exit.Text(out[i].Err)
		}
	}
	for _, l := range p.Policies {
		d := l.Policy.Description()
		s := plugins.Status{
			Name: l.Name, Version: d.Version, Summary: l.Policy.Name() + ": " + d.Summary,
			State: plugins.StateLoaded, Module: l.Policy.Info(),
		}
		s.Granted, s.Notes = l.Policy.Granted()
		out = append(out, s)
	}
	return append(out, p.failed...)
}

// Phases makes the runtime of a conversation: the plugins of the config, and
// native ones that the conversation brings.
func (p *Parts) Phases(record func(phases.Record), logger *slog.Logger, native ...phases.Plugin) (*phases.Runtime, error) {
	return phases.New(phases.Config{
		Plugins: append(p.Set.Plugins(), native...), Record: record, Logger: logger,
		HookTimeout: p.Cfg.HookTimeout(),
	})
}

func (p *Parts) loadPolicies(ctx context.Context) error {
	c := &p.Cfg.Compaction
	if !c.Summarizer.On() {
		return nil
	}
	var errs [3]error
	p.Summarizer, errs[0] = p.policy(ctx, "summarizer", summarizers.UseSummarize, c.Summarizer)
	errs[1] = p.loadFallback(ctx)
	if c.Admission.On() {
		p.admitter, errs[2] = p.policy(ctx, "admission", summarizers.UseAdmit, c.Admission.PolicyConfig)
	}
	return errors.Join(errs[:]...)
}

func (p *Parts) policy(ctx context.Context, name string, use summarizers.Use, c config.PolicyConfig) (*summarizers.Policy, error) {
	var info host.Info
	policy, err := p.openPolicy(ctx, name, use, c, &info)
	if err != nil {
		p.failed = append(p.failed, plugins.Status{Name: name, State: plugins.StateFailed, Reason: exit.Text(err), Err: err, Module: info})
	}
	return policy, err
}

func (p *Parts) openPolicy(
	ctx context.Context, name string, use summarizers.Use, c config.PolicyConfig, info *host.Info,
) (*summarizers.Policy, error) {
	values, err := wire.Value(c.Config)
	if err != nil {
		return nil, fmt.Errorf("config: compaction.%s: config: %w", name, err)
	}
	spec, err := p.Source(ctx, name, use, &c)
	if err != nil {
		return nil, fmt.Errorf("config: compaction.%s: %w", name, err)
	}
	module, err := p.Host.Load(ctx, spec)
	if err != nil {
		return nil, guest.Explain(ctx, p.Host, spec, err)
	}
	p.modules = append(p.modules, module)
	*info = module.Info()
	policy, err := summarizers.Open(ctx, module, summarizers.Config{
		Use: use, Policy: c.Policy, Config: values, Grants: spec.Grants, Trial: p.Cfg.Compaction.Trial.Trial(),
	})
	if err != nil {
		return nil, err
	}
	p.Policies = append(p.Policies, loadedPolicy{name, spec, policy})
	return policy, nil
}

// spec returns what to load for an entry.
func (p *Parts) spec(ctx context.Context, name string, m config.ModuleConfig) (host.Spec, error) {
	spec := host.Spec{Path: p.Cfg.Path(m.Module)}
	if config.IsBundled(m.Module) {
		var err error
		if spec, err = bundledplugins.Module(strings.TrimPrefix(m.Module, bundledplugins.Prefix)); err != nil {
			return spec, err
		}
	}
	grants, err := p.granter.grants(ctx, cmp.Or(name, m.Module), &m.Grants)
	spec.Name, spec.SHA256 = name, cmp.Or(string(m.SHA256), spec.SHA256)
	spec.Limits, spec.Grants = m.Limits.Limits(host.Limits{}), grants
	return spec, err
}

// Usage is what a module has used so far.
type Usage struct {
	host.Stats

	Name   string
	Engine string
}

// Usage returns what the modules have used so far.
func (p *Parts) Usage() []Usage {
	var out []Usage
	if p.Set != nil {
		stats := p.Set.Stats()
		for _, name := range slices.Sorted(maps.Keys(stats)) {
			out = append(out, Usage{stats[name], name, cmp.Or(p.Cfg.Engine, nativeEngine)})
		}
	}
	for _, m := range p.modules {
		out = append(out, Usage{m.Stats(), m.Name(), m.Info().Engine})
	}
	return out
}

// Close closes what was loaded.
func (p *Parts) Close(ctx context.Context) error {
	var errs []error
	if p.Set != nil {
		errs = append(errs, p.Set.Close(ctx))
	}
	for _, m := range p.modules {
		errs = append(errs, m.Close(ctx))
	}
	if p.Host != nil {
		errs = append(errs, p.Host.Close(ctx))
	}
	errs = append(errs, p.granter.close())
	return errors.Join(errs...)
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
func compileLine(say func(format string, args ...any)) func(host.CompileInfo) {
	var mu sync.Mutex // modules are loaded at once
	return func(i host.CompileInfo) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case say == nil || i.Cached || i.Err != nil:
		case !i.Done:
			say("compiling %s (%.1f MB); the next run takes it from the cache", i.Name, float64(i.Size)/1e6)
		default:
			say("compiled %s in %s", i.Name, i.Duration.Round(10*time.Millisecond))
		}
	}
}
