package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// recordFull is the value of hook.record that keeps events.
const recordFull = "full"

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
	if r := c.Hook.Record; r != "" && r != recordFull && r != "decisions" {
		errs = append(errs, fmt.Errorf("hook.record: %.40q: must be decisions or full", r))
	}
	if c.Hook.RepairTokens < 0 {
		errs = append(errs, fmt.Errorf("hook.repair_tokens: %d: must not be negative", c.Hook.RepairTokens))
	}
	return errors.Join(errs...)
}

// hookOptions are flags of all mortise hook commands.
type hookOptions struct {
	links                   Links
	config, profile, client string
}

// configPath is the config of hooks: of the flag, of the current folder, or of the user's config folder.
func (o *hookOptions) configPath() (string, error) {
	path := cmp.Or(o.config, os.Getenv("MORTISE_CONFIG"))
	if path == "" {
		path = configName
		if _, err := os.Stat(path); err != nil {
			if dir, err := os.UserConfigDir(); err == nil {
				path = filepath.Join(dir, "mortise", configName)
			}
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("config: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	return path, nil
}

// profileDir is the folder of what belongs to a config: policy, sessions, tickets, record.
func (o *hookOptions) profileDir(config string) (string, error) {
	if o.profile != "" {
		return filepath.Abs(o.profile)
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("there is no home folder (%w); name a folder with --profile", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "mortise", "hook", hexSum([]byte(config))[:12]), nil
}

// clientPath is the mortise-hook of this installation.
func (o *hookOptions) clientPath() (string, error) {
	if o.client != "" {
		return filepath.Abs(o.client)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("%w; name the client with --client", err)
	}
	if resolved, err := filepath.EvalSymlinks(self); err == nil {
		self = resolved
	}
	path := filepath.Join(filepath.Dir(self), "mortise-hook")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no mortise-hook next to %s; build it with go build ./cmd/mortise-hook, or name it with --client", self)
	}
	return path, nil
}
