package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mortise-dev/mortise/host"
)

// LimitsConfig bounds modules; zero is the host's default.
type LimitsConfig struct {
	Timeout        Duration `yaml:"timeout"`
	InitTimeout    Duration `yaml:"init_timeout"`
	CompileTimeout Duration `yaml:"compile_timeout"`
	MemoryMiB      int      `yaml:"memory_mib"`
	InputMiB       int      `yaml:"input_mib"`
	OutputMiB      int      `yaml:"output_mib"`
	Instances      int      `yaml:"instances"`
}

// validate names the first key that is wrong, so that no unit overflows.
func (l LimitsConfig) validate() error {
	const leastMiB, memoryMiB, instances = 2, 4096, 1 << 16
	var memory error
	if l.MemoryMiB != 0 && l.MemoryMiB < leastMiB || l.MemoryMiB > memoryMiB {
		memory = fmt.Errorf("limits.memory_mib: is %d; write a number from %d to %d, or leave it out for the default", l.MemoryMiB, leastMiB, memoryMiB)
	}
	return errors.Join(
		memory,
		within("limits.input_mib", int64(l.InputMiB), memoryMiB),
		within("limits.output_mib", int64(l.OutputMiB), memoryMiB),
		within("limits.instances", int64(l.Instances), instances),
	)
}

// validateInput refuses an input that the memory of the module could not hold, once the limits of all
// modules are those of one that has none.
func (c *Config) validateInput(own LimitsConfig) error {
	const defaultMemoryMiB = 64
	input, memory := cmp.Or(own.InputMiB, c.Limits.InputMiB), cmp.Or(own.MemoryMiB, c.Limits.MemoryMiB, defaultMemoryMiB)
	if input > memory/2 {
		return fmt.Errorf("limits.input_mib: is %d, more than half of limits.memory_mib (%d)", input, memory)
	}
	return nil
}

// defaultHookTimeout is how long a hook may take when the config does not say.
const defaultHookTimeout = 5 * time.Second

// HookTimeout is how long a hook may take that has no limit of its own.
func (c *Config) HookTimeout() time.Duration {
	return cmp.Or(time.Duration(c.Agent.HookTimeout), max(time.Duration(c.Limits.Timeout), defaultHookTimeout))
}

// TimeLimit is the limit of a plugin's calls that is in force: its own, or the first of the host's and
// the hooks'.
func (c *Config) TimeLimit(own LimitsConfig) time.Duration {
	return cmp.Or(time.Duration(own.Timeout), min(cmp.Or(time.Duration(c.Limits.Timeout), defaultTimeout), c.HookTimeout()))
}

// PluginAt is where a plugin is in the config.
func (c *Config) PluginAt(i int) string {
	return fmt.Sprintf("plugins[%d] (%s)", i, cmp.Or(c.Plugins[i].Name, c.Plugins[i].Module))
}

// defaultTimeout is the host's limit of a call when no config says otherwise.
const defaultTimeout = 2 * time.Second

// Limits are those of the config over those of base.
func (l LimitsConfig) Limits(base host.Limits) host.Limits {
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

// CacheDir is where compiled modules are kept.
func CacheDir(cfg *Config) (string, error) {
	if cfg.CacheDir != "" {
		return cfg.Path(cfg.CacheDir), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("config: there is no user cache folder (%w); set cache_dir", err)
	}
	return filepath.Join(dir, "mortise"), nil
}
