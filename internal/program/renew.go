package program

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"

	"github.com/mortise-dev/mortise/internal/config"
)

// renew assembles what another config names. Plugins and policies whose part of the config is the
// same are taken over as they are. What is not must be closed with closeExcept: of the result after an error,
// of p once nothing uses it any more.
func (p *Parts) renew(ctx context.Context, cfg *Setup, logger *slog.Logger) (*Parts, error) {
	next := &Parts{Cfg: cfg, granter: p.granter.of(cfg), Shared: p.Shared, Host: p.Host, newHost: p.newHost}
	same := reflect.DeepEqual(cfg.Limits, p.Cfg.Limits)
	if !same {
		var err error
		if next.Host, err = p.newHost(cfg); err != nil {
			return next, err
		}
	}
	if err := next.entriesOf(ctx); err != nil {
		return next, err
	}
	kept := make([]string, len(cfg.Plugins))
	status := p.Set.Status()
	for i := range cfg.Plugins {
		if at := p.unchanged(cfg, i); same && at >= 0 {
			kept[i], next.Entries[i] = status[at].Name, p.Entries[at]
		}
	}
	var err, toolErr error
	next.Set, err = p.Set.Renew(ctx, next.Host, next.Entries, kept)
	next.Tools, toolErr = next.Set.Tools()
	err = errors.Join(err, toolErr)
	if same && cfg.samePolicies(p.Cfg) {
		next.Policies, next.modules = p.Policies, p.modules
		next.Summarizer, next.fallback, next.admitter = p.Summarizer, p.fallback, p.admitter
	} else {
		err = errors.Join(err, next.loadPolicies(ctx))
	}
	if err == nil {
		_, err = next.Phases(nil, logger) // orders that go in a circle
	}
	return next, err
}

// unchanged is the place of the loaded plugin whose entry is that of another config, or -1.
func (p *Parts) unchanged(cfg *Setup, i int) int {
	e := cfg.Plugins[i]
	return slices.IndexFunc(p.Cfg.Plugins, func(o config.PluginConfig) bool {
		return !e.Disabled && reflect.DeepEqual(e, o) && cfg.sameModels(p.Cfg, e.Grants.Model)
	})
}

func (c *Setup) samePolicies(o *Setup) bool {
	same := func(a, b config.PolicyConfig) bool { return reflect.DeepEqual(a, b) && c.sameModels(o, a.Grants.Model) }
	return same(c.Compaction.Summarizer, o.Compaction.Summarizer) && same(c.Compaction.Fallback, o.Compaction.Fallback) &&
		same(c.Compaction.Admission.PolicyConfig, o.Compaction.Admission.PolicyConfig)
}

// sameModels reports whether the models of some roles are the same, with their keys and prices.
func (c *Setup) sameModels(o *Setup, roles map[string]string) bool {
	for name := range maps.Values(roles) {
		a, b := c.Clients[name], o.Clients[name]
		if a.Key != b.Key || !reflect.DeepEqual(a.Cfg, b.Cfg) {
			return false
		}
	}
	return true
}

// closeExcept closes what others do not use.
func (p *Parts) closeExcept(ctx context.Context, other *Parts) error {
	var errs []error
	if p.Set != nil {
		errs = append(errs, p.Set.CloseExcept(ctx, other.Set))
	}
	for _, m := range p.modules {
		if !slices.Contains(other.modules, m) {
			errs = append(errs, m.Close(ctx))
		}
	}
	if p.Host != nil && p.Host != other.Host {
		errs = append(errs, p.Host.Close(ctx))
	}
	return errors.Join(errs...)
}
