package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
)

// configName is the file that is looked for in the current folder.
const configName = "mortise.yaml"

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
	// links are the providers and stores that it may name.
	links Links
	// home is the open store, nil for none.
	home *home
	// models are those of the config, once they are opened.
	models models
	// threadTools are the tools of one thread, nil for none.
	threadTools func(thread string) agent.Tools
	// observe receives what modules ask of models; may be nil.
	observe llm.Observe
}

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

// CompactionConfig turns compaction on when a summarizer is named, by its policy or by its
// module.
type CompactionConfig struct {
	WindowTokens     int64           `yaml:"window_tokens"`
	ThresholdTokens  int64           `yaml:"threshold_tokens"`
	KeepRecentTokens int64           `yaml:"keep_recent_tokens"`
	ReserveTokens    int64           `yaml:"reserve_tokens"`
	SummaryTokens    int64           `yaml:"summary_tokens"`
	MinSavingsRatio  float64         `yaml:"min_savings_ratio"`
	MinSurvival      float64         `yaml:"min_survival"`
	Bars             BarsConfig      `yaml:"bars"`
	Mode             compaction.Mode `yaml:"mode"`
	SummarizerTokens int64           `yaml:"summarizer_tokens"`
	BreakerFailures  int             `yaml:"breaker_failures"`
	// MaskTokens is the size from which tool outputs are masked; 0 masks none.
	MaskTokens int64    `yaml:"mask_tokens"`
	NeverMask  []string `yaml:"never_mask"`
	// Concurrent is how many compactions run at a time.
	Concurrent int          `yaml:"concurrent"`
	Summarizer PolicyConfig `yaml:"summarizer"`
	// Fallback summarizes when Summarizer fails.
	Fallback  PolicyConfig    `yaml:"fallback"`
	Admission AdmissionConfig `yaml:"admission"`
	Trial     TrialConfig     `yaml:"trial"`
}

// PolicyConfig is a compaction policy in a module; in the bundled guest when no module is
// named.
type PolicyConfig struct {
	Policy       string `yaml:"policy"`
	ModuleConfig `yaml:",inline"`
}

// AdmissionConfig is the policy that decides, the default rules when it names none, and what it is given.
type AdmissionConfig struct {
	PolicyConfig `yaml:",inline"`
	Quota        QuotaConfig   `yaml:"quota"`
	Signals      SignalsConfig `yaml:"signals"`
}

// QuotaConfig bounds compactions of one thread.
type QuotaConfig struct {
	Cooldown    *Duration `yaml:"cooldown"`
	Timeout     Duration  `yaml:"timeout"`
	MaxAttempts int       `yaml:"max_attempts"`
	Forget      Duration  `yaml:"forget"`
}

// ReplayConfig is about recorded sessions.
type ReplayConfig struct {
	// Pace is how long each recorded inference takes.
	Pace Duration `yaml:"pace"`
}

// Duration is a time.Duration written as 1m30s.
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	text := node.GetToken().Value
	v, err := parseDuration(text)
	if err != nil {
		return &valueError{node.GetToken(), fmt.Sprintf("%q is not a duration: write for example 500ms, 10s, 2m or 30d", text)}
	}
	if v < 0 {
		return &valueError{node.GetToken(), fmt.Sprintf("%q is negative; write 0s or more", text)}
	}
	*d = Duration(v)
	return nil
}

// maxDays is as many as a duration can have.
const maxDays = 100_000

// parseDuration reads a duration, whole days too.
func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < -maxDays || n > maxDays {
			return 0, errors.New("the days are no whole number, or too many")
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	return time.ParseDuration(text)
}

// loadConfig reads a config file; with no path, mortise.yaml of the current
// folder.
func (l Links) loadConfig(path string) (*Config, error) {
	data, err := readConfig(cmp.Or(path, configName))
	if err != nil {
		return nil, err
	}
	name := cmp.Or(path, configName)
	cfg, err := l.decodeConfig(data)
	if err != nil {
		return nil, under("config: "+name, err)
	}
	cfg.dir = filepath.Dir(name)
	return cfg, nil
}

// readConfig reads the file of a config.
func readConfig(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		hint := "name a file with --config"
		if name == configName {
			hint = "write one (examples/mortise.yaml is a start) or name a file with --config"
		}
		return nil, fmt.Errorf("config: %s: there is no such file; %s", name, hint)
	}
	if info, failed := os.Stat(name); err != nil && failed == nil && info.IsDir() {
		return nil, fmt.Errorf("config: %s is a folder; name the file, %s for example", name, filepath.Join(name, configName))
	}
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return data, nil
}

func (l Links) decodeConfig(data []byte) (*Config, error) {
	cfg := &Config{links: l}
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := dec.Decode(cfg); err != nil && !errors.Is(err, io.EOF) {
		return nil, badConfig(data, err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document; keep one")
	}
	cfg.Compaction.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return cfg, nil
}

func (c *Config) validate() error {
	var errs []error
	if c.Version == 0 {
		errs = append(errs, errors.New("version: is missing; write version: 1"))
	} else if c.Version != 1 {
		errs = append(errs, fmt.Errorf("version: is %d, this mortise reads 1; write version: 1", c.Version))
	}
	if _, err := c.links.engine(c.Engine); err != nil {
		errs = append(errs, fmt.Errorf("engine: %w", err))
	}
	errs = append(errs, c.Limits.validate(), c.validateInput(LimitsConfig{}))
	if n := c.Agent.MaxRounds; n < 0 {
		errs = append(errs, fmt.Errorf("agent.max_rounds: is %d; write a number from 1, or leave it out for no limit", n))
	}
	errs = append(errs, c.validatePlugins(), c.validateModels(), c.validateMCP(), c.validateAgents(), c.Serve.validate(), c.Tasks.validate(), c.Record.validate(), c.validateHook())
	if c.Store != "" && c.Record.Store != "" && !c.Record.Disabled {
		errs = append(errs, fmt.Errorf("store %s and record.store %s both name where decision records are kept; name one", shown(c.Store), shown(c.Record.Store)))
	}
	for _, p := range c.Compaction.policies() {
		errs = append(errs, under("compaction."+p.name, c.validateInput(p.entry.Limits), c.validateRoles(p.entry.Grants)))
	}
	return errors.Join(each(append(errs, c.Compaction.validate())...)...)
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
		own = append(own, p.ModuleConfig.validate(), c.validateInput(p.Limits), c.validateRoles(p.Grants))
		if p.Name != "" && names[p.Name] {
			own = append(own, errors.New("the name is taken by an earlier entry; give it another"))
		}
		names[p.Name] = true
		switch p.OnFailure {
		case "", abi.FailRun, abi.FailIgnore, abi.FailQuarantine:
		default:
			own = append(own, fmt.Errorf("on_failure %q: must be fail, ignore or quarantine", p.OnFailure))
		}
		errs = append(errs, under(where, own...))
	}
	return errors.Join(errs...)
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

// Checksum is a SHA-256 in hexadecimal, as sha256sum prints it.
type Checksum string

// UnmarshalYAML reads a checksum. One of digits alone is a number in YAML, and would lose some.
func (c *Checksum) UnmarshalYAML(node ast.Node) error {
	text := node.GetToken().Value
	switch {
	case node.Type() != ast.StringType && node.Type() != ast.LiteralType:
		return &valueError{node.GetToken(), fmt.Sprintf("is read as %s; put it in quotes: sha256: \"%.64s\"", nodeKind(node.Type()), text)}
	case !checksumText().MatchString(text):
		return &valueError{node.GetToken(), "is no checksum; write the 64 hexadecimal digits that sha256sum prints"}
	}
	*c = Checksum(text)
	return nil
}

func checksumText() *regexp.Regexp { return regexp.MustCompile(`^(sha256:)?[0-9a-fA-F]{64}$`) }

// validate names the first key that is wrong.
func (c *ModuleConfig) validate() error {
	return errors.Join(c.Limits.validate(), c.Grants.validate())
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

// path resolves a path of the file against the file's folder.
func (c *Config) path(p string) string {
	if p == "" || filepath.IsAbs(p) || isURL(p) {
		return p
	}
	return filepath.Join(c.dir, p)
}
