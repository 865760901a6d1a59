package config

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// NeedsRestart refuses a config that differs in what a running program cannot change.
func (c *Config) NeedsRestart(next *Config) error {
	fixed := func(c *Config) map[string]any {
		return map[string]any{
			"store": c.Store, "engine": c.Engine, "cache_dir": c.CacheDir, "tasks": c.Tasks, "record": c.Record,
			"serve.listen": c.Serve.Listen, "serve.proxy": c.Serve.Proxy, "proxy.store_off": c.Proxy.StoreOff, "proxy.keep": c.Proxy.Keep, "serve.admin": c.Serve.Admin, "serve.workers": c.Serve.Workers, "serve.lease": c.Serve.Lease,
			"serve.max_attempts": c.Serve.MaxAttempts, "serve.grace": c.Serve.Grace, "serve.retention": c.Serve.Retention,
			"compaction.concurrent": c.Compaction.Concurrent, "compaction.admission.signals": c.Compaction.Admission.Signals,
			"compaction.trial":                  c.Compaction.Trial,
			"compaction.summarizer (on or off)": c.Compaction.Summarizer.On(),
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

// Changes names what differs: entries by their names, other sections as a whole.
func (c *Config) Changes(next *Config, swapped []string) []string {
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

// ModelNames are the providers' names of the models that the config has.
func (c *Config) ModelNames() (names []string) {
	for _, m := range c.Models {
		names = append(append(names, m.Name), m.Retry.Fallbacks...)
	}
	return names
}
