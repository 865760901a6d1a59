package cli

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
)

// renew assembles what another config names. Plugins and policies whose part of the config is the
// same are taken over as they are. What is not must be closed with closeExcept: of the result after an error,
// of p once nothing uses it any more.
func (p *parts) renew(ctx context.Context, cfg *Config, logger *slog.Logger) (*parts, error) {
	next := &parts{cfg: cfg, granter: p.granter.of(cfg), shared: p.shared, host: p.host, newHost: p.newHost}
	same := reflect.DeepEqual(cfg.Limits, p.cfg.Limits)
	if !same {
		var err error
		if next.host, err = p.newHost(cfg); err != nil {
			return next, err
		}
	}
	if err := next.entriesOf(ctx); err != nil {
		return next, err
	}
	kept := make([]string, len(cfg.Plugins))
	status := p.set.Status()
	for i := range cfg.Plugins {
		if at := p.unchanged(cfg, i); same && at >= 0 {
			kept[i], next.entries[i] = status[at].Name, p.entries[at]
		}
	}
	var err, toolErr error
	next.set, err = p.set.Renew(ctx, next.host, next.entries, kept)
	next.tools, toolErr = next.set.Tools()
	err = errors.Join(err, toolErr)
	if same && cfg.samePolicies(p.cfg) {
		next.policies, next.modules = p.policies, p.modules
		next.summarizer, next.fallback, next.admitter = p.summarizer, p.fallback, p.admitter
	} else {
		err = errors.Join(err, next.loadPolicies(ctx))
	}
	if err == nil {
		_, err = next.phases(newCollector(), logger) // orders that go in a circle
	}
	return next, err
}

// unchanged is the place of the loaded plugin whose entry is that of another config, or -1.
func (p *parts) unchanged(cfg *Config, i int) int {
	e := cfg.Plugins[i]
	return slices.IndexFunc(p.cfg.Plugins, func(o PluginConfig) bool {
		return !e.Disabled && reflect.DeepEqual(e, o) && cfg.sameModels(p.cfg, e.Grants.Model)
	})
}

func (c *Config) samePolicies(o *Config) bool {
	same := func(a, b PolicyConfig) bool { return reflect.DeepEqual(a, b) && c.sameModels(o, a.Grants.Model) }
	return same(c.Compaction.Summarizer, o.Compaction.Summarizer) && same(c.Compaction.Fallback, o.Compaction.Fallback) &&
		same(c.Compaction.Admission.PolicyConfig, o.Compaction.Admission.PolicyConfig)
}

// sameModels reports whether the models of some roles are the same, with their keys and prices.
func (c *Config) sameModels(o *Config, roles map[string]string) bool {
	for name := range maps.Values(roles) {
		a, b := c.models[name], o.models[name]
		if a.key != b.key || !reflect.DeepEqual(a.cfg, b.cfg) {
			return false
		}
	}
	return true
}

// closeExcept closes what others do not use.
func (p *parts) closeExcept(ctx context.Context, other *parts) error {
	var errs []error
	if p.set != nil {
		errs = append(errs, p.set.CloseExcept(ctx, other.set))
	}
	for _, m := range p.modules {
		if !slices.Contains(other.modules, m) {
			errs = append(errs, m.Close(ctx))
		}
	}
	if p.host != nil && p.host != other.host {
		errs = append(errs, p.host.Close(ctx))
	}
	return errors.Join(errs...)
}
