package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/plugins/bundled"
)

// Config is mortise.yaml. Unknown keys are errors. Paths are relative to the
// file's folder.
type Config struct {
	// Version of the format, 1.
	Version int `yaml:"version" jsonschema:"required,enum=1"`
	// CacheDir holds compiled modules; the user's cache folder when empty.
	CacheDir string         `yaml:"cache_dir"`
	Engine   string         `yaml:"engine" jsonschema:"enum=native,enum=extism"`
	Limits   LimitsConfig   `yaml:"limits"`
	Agent    AgentConfig    `yaml:"agent"`
	Plugins  []PluginConfig `yaml:"plugins"`
	// Models, Agents and MCP servers are for mortise serve and live runs. DefaultAgent is that of
	// requests that name none; it may be left out if there is one agent.
	Models       map[string]ModelConfig `yaml:"models"`
	Agents       AgentsConfig           `yaml:"agents"`
	DefaultAgent string                 `yaml:"default_agent"`
	MCP          []MCPConfig            `yaml:"mcp"`
	Serve        ServeConfig            `yaml:"serve"`
	Proxy        ProxyConfig            `yaml:"proxy"`
	Compaction   CompactionConfig       `yaml:"compaction"`
	Tasks        TasksConfig            `yaml:"tasks"`
	Replay       ReplayConfig           `yaml:"replay"`
	Record       RecordConfig           `yaml:"record"`
	// Hook is for mortise hook, which connects the plugins to the hooks of other agents.
	Hook HookConfig `yaml:"hook"`
	// Store is a SQLite file, or a URL as in nats://HOST:4222/NAME or postgres://USER@HOST/DATABASE, that keeps sessions, decision records and the inbox.
	Store string `yaml:"store"`

	// dir is the folder of the file.
	dir string
	// names are those that it may name.
	names Names
}

// AgentConfig is about the run loop.
type AgentConfig struct {
	SystemPrompt string `yaml:"system_prompt"`
	// MaxRounds is how many inferences a run may have, 0 for as many as the recording has.
	MaxRounds int `yaml:"max_rounds"`
	// HookTimeout bounds a hook of a plugin without limits.timeout: 5s when 0, or
	// limits.timeout of the whole config if that is more.
	HookTimeout Duration `yaml:"hook_timeout"`
}

// ModuleConfig names a module and what it may do.
type ModuleConfig struct {
	Module string       `yaml:"module"`
	SHA256 Checksum     `yaml:"sha256"`
	Limits LimitsConfig `yaml:"limits"`
	Grants GrantsConfig `yaml:"grants"`
	Config any          `yaml:"config"`
}

// PluginConfig is one phase plugin.
type PluginConfig struct {
	Name         string `yaml:"name"`
	ModuleConfig `yaml:",inline"`
	Disabled     bool              `yaml:"disabled"`
	Priority     *int              `yaml:"priority"`
	OnFailure    abi.FailurePolicy `yaml:"on_failure"`
}

// ReplayConfig is about recorded sessions.
type ReplayConfig struct {
	// Pace is how long each recorded inference takes.
	Pace Duration `yaml:"pace"`
}

func (c *Config) validate() error {
	var errs []error
	if c.Version == 0 {
		errs = append(errs, errors.New("version: is missing; write version: 1"))
	} else if c.Version != 1 {
		errs = append(errs, fmt.Errorf("version: is %d, this mortise reads 1; write version: 1", c.Version))
	}
	if err := c.names.engine(c.Engine); err != nil {
		errs = append(errs, fmt.Errorf("engine: %w", err))
	}
	errs = append(errs, c.Limits.validate(), c.validateInput(LimitsConfig{}))
	if n := c.Agent.MaxRounds; n < 0 {
		errs = append(errs, fmt.Errorf("agent.max_rounds: is %d; write a number from 1, or leave it out for no limit", n))
	}
	errs = append(errs,
		c.validatePlugins(), c.ValidateModels(), c.validateMCP(), c.ValidateAgents(), c.Serve.Validate(), c.Tasks.validate(), c.Record.validate(), c.validateHook(),
		checkStore("store", c.Store), checkStore("record.store", c.Record.Store),
	)
	if c.Store != "" && c.Record.Store != "" && !c.Record.Disabled {
		errs = append(errs, fmt.Errorf("store %s and record.store %s both name where decision records are kept; name one", Shown(c.Store), Shown(c.Record.Store)))
	}
	for _, p := range c.Compaction.policies() {
		errs = append(errs, exit.Under("compaction."+p.name, c.validateInput(p.entry.Limits), c.validateRoles(p.entry.Grants)))
	}
	return errors.Join(exit.Each(append(errs, c.Compaction.Validate())...)...)
}

func (c *Config) validatePlugins() error {
	names := make(map[string]bool)
	var errs []error
	for i, p := range c.Plugins {
		where := fmt.Sprintf("plugins[%d]", i)
		if p.Name != "" {
			where = fmt.Sprintf("plugins[%d] (%s)", i, p.Name)
		}
		var own []error
		if p.Module == "" {
			own = append(own, errors.New("module is missing; name a .wasm file"))
		}
		own = append(own, p.Validate(), c.validateInput(p.Limits), c.validateRoles(p.Grants))
		if p.Name != "" && names[p.Name] {
			own = append(own, errors.New("the name is taken by an earlier entry; give it another"))
		}
		names[p.Name] = true
		errs = append(errs, exit.Under(where, own...))
	}
	return errors.Join(errs...)
}

// Validate names what is wrong with an entry by itself.
func (p *PluginConfig) Validate() error {
	var policy error
	switch p.OnFailure {
	case "", abi.FailRun, abi.FailIgnore, abi.FailQuarantine:
	default:
		policy = fmt.Errorf("on_failure %q: must be fail, ignore or quarantine", p.OnFailure)
	}
	return errors.Join(p.ModuleConfig.Validate(), policy)
}

// validateRoles refuses models that there are not.
func (c *Config) validateRoles(g GrantsConfig) error {
	var errs []error
	for _, role := range slices.Sorted(maps.Keys(g.Model)) {
		if _, ok := c.Models[g.Model[role]]; !ok {
			errs = append(errs, fmt.Errorf("grants.model.%.64s: there is no model %.64q; models has %.400q", role, g.Model[role], slices.Sorted(maps.Keys(c.Models))))
		}
	}
	return errors.Join(errs...)
}

// Validate names the first key that is wrong.
func (c *ModuleConfig) Validate() error {
	return errors.Join(c.Limits.validate(), c.Grants.validate())
}

// Path resolves a path of the file against the file's folder.
func (c *Config) Path(p string) string {
	if p == "" || filepath.IsAbs(p) || IsURL(p) || IsBundled(p) {
		return p
	}
	return filepath.Join(c.dir, p)
}

// IsBundled reports the module of a plugin that the program has with it.
func IsBundled(module string) bool { return strings.HasPrefix(module, bundled.Prefix) }

// In sets the folder to which paths are relative, that of the file.
func (c *Config) In(dir string) { c.dir = dir }
