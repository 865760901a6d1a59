package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/serve"
)

// unchangedHint ends the refusal of a reload.
const unchangedHint = "nothing was changed"

// reload reads the config again and applies what has changed in it, and in the files that it names: all of
// it, or nothing after an error.
func (p *program) reload(ctx context.Context) ([]string, error) {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	changed, err := p.reconfigure(ctx)
	if err != nil {
		p.logger.WarnContext(ctx, "reload refused", "error", worded(err))
		return nil, &serve.Refused{Reason: clip(worded(err), 1000), Hint: unchangedHint}
	}
	p.logger.InfoContext(ctx, "reloaded", "changed", strings.Join(changed, ", "))
	return changed, nil
}

func (p *program) reconfigure(ctx context.Context) ([]string, error) {
	cfg, err := p.read()
	if err == nil {
		err = p.now.Load().cfg.needsRestart(cfg)
	}
	if err != nil {
		return nil, err
	}
	next, err := p.now.Load().next(ctx, cfg, p.logger)
	var changed []string
	if err == nil {
		changed, err = p.apply(ctx, next)
	}
	if err != nil {
		next.closeExcept(context.WithoutCancel(ctx), p.now.Load(), p.logger)
	}
	return changed, err
}

// apply makes next the live one.
func (p *program) apply(ctx context.Context, next *current) ([]string, error) {
	runtime, err := next.runtime()
	access, accessErr := next.access()
	forward, proxyErr := p.proxy.with(next, p) //nolint:contextcheck // records are written in the background
	if err := cmp.Or(errors.Join(err, accessErr, proxyErr), access.CheckAccess()); err != nil {
		return nil, err
	}
	swapped, undo, err := p.modules.refresh(ctx, next.parts)
	if err != nil {
		return nil, err
	}
	idle, err := p.runtime.Reconfigure(runtime) //nolint:contextcheck // threads that are compacted outlive the request
	if err != nil {
		undo()
		return nil, err
	}
	if err := p.server.Reconfigure(access); err != nil { // it was checked above
		return nil, err
	}
	p.modules.adopt(next.parts)
	was := p.now.Swap(next)
	p.retiring.add(was, next, p.logger, idle, p.proxy.replace(forward)) //nolint:contextcheck // it outlives the request
	return was.cfg.changes(next.cfg, swapped), nil
}

// needsRestart refuses a config that differs in what a running program cannot change.
func (c *Config) needsRestart(next *Config) error {
	fixed := func(c *Config) map[string]any {
		return map[string]any{
			"store": c.Store, "engine": c.Engine, "cache_dir": c.CacheDir, "tasks": c.Tasks, "record": c.Record,
			"serve.listen": c.Serve.Listen, "serve.proxy": c.Serve.Proxy, "proxy.store_off": c.Proxy.StoreOff, "proxy.keep": c.Proxy.Keep, "serve.admin": c.Serve.Admin, "serve.workers": c.Serve.Workers, "serve.lease": c.Serve.Lease,
			"serve.max_attempts": c.Serve.MaxAttempts, "serve.grace": c.Serve.Grace, "serve.retention": c.Serve.Retention,
			"compaction.concurrent": c.Compaction.Concurrent, "compaction.admission.signals": c.Compaction.Admission.Signals,
			"compaction.trial":                  c.Compaction.Trial,
			"compaction.summarizer (on or off)": c.Compaction.Summarizer.on(),
		}
	}
	was, is := fixed(c), fixed(next)
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if !reflect.DeepEqual(was[key], is[key]) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return fmt.Errorf("config: %s: needs a restart; take the change back, or restart", strings.Join(keys, ", "))
}

// changes names what differs: entries by their names, other sections as a whole.
func (c *Config) changes(next *Config, swapped []string) []string {
	var out []string
	differ := func(prefix string, was, is map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(merged(was, is))) {
			if !reflect.DeepEqual(was[name], is[name]) {
				out = append(out, prefix+name)
			}
		}
	}
	differ("agents.", named(c.Agents), named(next.Agents))
	differ("models.", named(c.Models), named(next.Models))
	differ("plugins.", c.pluginsByName(), next.pluginsByName())
	differ("mcp.", c.serversByName(), next.serversByName())
	differ("", c.rest(), next.rest())
	for _, name := range swapped {
		out = append(out, name+" (file)")
	}
	return out
}

func merged(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func named[V any](m map[string]V) map[string]any {
	out := make(map[string]any, len(m))
	for name, v := range m {
		out[name] = v
	}
	return out
}

func (c *Config) pluginsByName() map[string]any {
	out := map[string]any{}
	for _, p := range c.Plugins {
		out[cmp.Or(p.Name, p.Module)] = p
	}
	return out
}

func (c *Config) serversByName() map[string]any {
	out := map[string]any{}
	for _, m := range c.MCP {
		out[m.Name] = m
	}
	return out
}

func (c *Config) rest() map[string]any {
	return map[string]any{
		"default_agent": c.DefaultAgent, "limits": c.Limits, "agent": c.Agent, "compaction": c.Compaction,
		"proxy": c.Proxy, "serve.tokens": c.Serve.Tokens, "serve.origins": c.Serve.Origins, "serve.hosts": c.Serve.Hosts,
	}
}
