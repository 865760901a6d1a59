package config

import (
	"errors"
	"fmt"
	"slices"
)

// HookConfig is about the plugins as hooks of other agents.
type HookConfig struct {
	// MayApprove names plugins whose allow skips the permission rules of the agent itself. By default no plugin's does.
	MayApprove []string `yaml:"may_approve"`
	// Quiet names plugins whose rewrites of calls are not announced to the model.
	Quiet []string `yaml:"quiet"`
	// WrapShell makes failed shell commands succeed with their exit status as output, where an agent lets no hook
	// change the result of a failed call. Permission rules of the agent judge the wrapped command then.
	WrapShell bool `yaml:"wrap_shell"`
	// Record is decisions, which keeps hashes and decisions, or full, which keeps events, too.
	Record string `yaml:"record" jsonschema:"enum=decisions,enum=full"`
	// Repair gives names back that a compaction of the agent lost; RepairTokens bounds that, 650 when 0.
	Repair       bool `yaml:"repair"`
	RepairTokens int  `yaml:"repair_tokens"`
}

// RecordFull is the value of hook.record that keeps events.
const RecordFull = "full"

func (c *Config) validateHook() error {
	var errs []error
	for _, list := range []struct {
		key   string
		names []string
	}{{"may_approve", c.Hook.MayApprove}, {"quiet", c.Hook.Quiet}} {
		for i, name := range list.names {
			if !slices.ContainsFunc(c.Plugins, func(p PluginConfig) bool { return p.Name == name }) {
				errs = append(errs, fmt.Errorf("hook.%s[%d]: there is no plugin %.80q; give the entry of the plugin that name", list.key, i, name))
			}
		}
	}
	if r := c.Hook.Record; r != "" && r != RecordFull && r != "decisions" {
		errs = append(errs, fmt.Errorf("hook.record: %.40q: must be decisions or full", r))
	}
	if c.Hook.RepairTokens < 0 {
		errs = append(errs, fmt.Errorf("hook.repair_tokens: %d: must not be negative", c.Hook.RepairTokens))
	}
	return errors.Join(errs...)
}
