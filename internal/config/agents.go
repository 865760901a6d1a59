package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/internal/exit"
)

// AgentsConfig are the agents of mortise serve and of live runs, by name.
type AgentsConfig map[string]LiveAgentConfig

// LiveAgentConfig is an agent that asks a model.
type LiveAgentConfig struct {
	// Model is a key of models.
	Model        string `yaml:"model" jsonschema:"required"`
	SystemPrompt string `yaml:"system_prompt"`
	// PromptFile holds the system prompt instead.
	PromptFile string `yaml:"system_prompt_file"`
	// Plugins whose hooks are called; all when empty. MCP names servers whose tools the agent
	// has; all when empty.
	Plugins []string `yaml:"plugins"`
	MCP     []string `yaml:"mcp"`
	// Background names tools whose calls run as background tasks.
	Background  []string `yaml:"background"`
	MaxRounds   int      `yaml:"max_rounds"`
	ToolTimeout Duration `yaml:"tool_timeout"`
	// Temperature, MaxTokens and ReasoningEffort are the provider's defaults when absent.
	Temperature     *float64 `yaml:"temperature"`
	MaxTokens       *int64   `yaml:"max_tokens"`
	ReasoningEffort *string  `yaml:"reasoning_effort"`
	// MaxCost ends a run that has cost that many USD.
	MaxCost float64 `yaml:"max_cost_usd"`
}

// ValidateAgents checks agents, and what they name.
func (c *Config) ValidateAgents() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		errs = append(errs, exit.Under(fmt.Sprintf("agents.%.64s", name), c.validateAgent(c.Agents[name])))
	}
	if d := c.DefaultAgent; d != "" {
		if _, ok := c.Agents[d]; !ok {
			errs = append(errs, fmt.Errorf("default_agent: there is no agent %.64q; agents has %.400q", d, slices.Sorted(maps.Keys(c.Agents))))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateAgent(a LiveAgentConfig) error {
	var errs []error
	if _, ok := c.Models[a.Model]; !ok {
		errs = append(errs, fmt.Errorf("model: there is no model %.64q; models has %.400q", a.Model, slices.Sorted(maps.Keys(c.Models))))
	}
	if a.SystemPrompt != "" && a.PromptFile != "" {
		errs = append(errs, errors.New("names both system_prompt and system_prompt_file; name one"))
	}
	if a.MaxRounds < 0 || a.MaxCost < 0 {
		errs = append(errs, errors.New("max_rounds and max_cost_usd must not be negative"))
	}
	for _, name := range a.Plugins {
		if !slices.ContainsFunc(c.Plugins, func(p PluginConfig) bool { return p.Name == name }) {
			errs = append(errs, fmt.Errorf("plugins: there is no plugin %.64q; give one of the entries of plugins this name", name))
		}
	}
	for _, name := range a.MCP {
		if !slices.ContainsFunc(c.MCP, func(m MCPConfig) bool { return m.Name == name }) {
			errs = append(errs, fmt.Errorf("mcp: there is no server %.64q; give one of the entries of mcp this name", name))
		}
	}
	return errors.Join(errs...)
}

// Prompt is the system prompt, read from its file if it is in one.
func (a LiveAgentConfig) Prompt(cfg *Config) (string, error) {
	if a.PromptFile == "" {
		return a.SystemPrompt, nil
	}
	text, err := os.ReadFile(cfg.Path(a.PromptFile))
	if err != nil {
		return "", fmt.Errorf("system_prompt_file: %w", err)
	}
	return string(text), nil
}

// Override has the settings of inferences that the agent names, nil for none.
func (a LiveAgentConfig) Override() *abi.InferenceOverride {
	if a.Temperature == nil && a.MaxTokens == nil && a.ReasoningEffort == nil {
		return nil
	}
	return &abi.InferenceOverride{Temperature: a.Temperature, MaxTokens: a.MaxTokens, ReasoningEffort: a.ReasoningEffort}
}

// Stop has the bounds of a run.
func (a LiveAgentConfig) Stop() []agent.StopPolicy {
	if a.MaxCost == 0 {
		return nil
	}
	return []agent.StopPolicy{{Type: agent.StopCost, MaxCost: a.MaxCost}}
}

// MCPConfig is a server of the Model Context Protocol: a command, or a URL.
type MCPConfig struct {
	Name    string                 `yaml:"name"`
	Command []string               `yaml:"command"`
	Dir     string                 `yaml:"dir"`
	Env     map[string]ValueConfig `yaml:"env"`
	URL     string                 `yaml:"url"`
	// Headers are sent with each request to a URL; their values come from the environment or
	// from files.
	Headers      map[string]KeyConfig `yaml:"headers"`
	Tools        []string             `yaml:"tools"`
	Exclude      []string             `yaml:"exclude"`
	Required     bool                 `yaml:"required"`
	StartTimeout Duration             `yaml:"start_timeout"`
	CallTimeout  Duration             `yaml:"call_timeout"`
	OutputKiB    int                  `yaml:"output_kib"`
}

func (c *Config) validateMCP() error {
	seen := map[string]bool{}
	var errs []error
	for i, m := range c.MCP {
		var own []error
		switch {
		case m.Name == "":
			own = append(own, errors.New("name is missing; the names of its tools begin with it"))
		case seen[m.Name]:
			own = append(own, errors.New("the name is taken by an earlier entry; give it another"))
		}
		if (len(m.Command) == 0) == (m.URL == "") {
			own = append(own, errors.New("name either a command or a url"))
		}
		for _, key := range slices.Sorted(maps.Keys(m.Env)) {
			if v := m.Env[key]; v.Value != nil || v.Env != "" && v.File != "" {
				own = append(own, fmt.Errorf("env.%.64s: write the value itself, or name either a variable with env, or a private file with file", key))
			}
		}
		if m.OutputKiB < 0 {
			own = append(own, errors.New("output_kib: is negative"))
		}
		seen[m.Name] = true
		errs = append(errs, exit.Under(fmt.Sprintf("mcp[%d] (%.64s)", i, cmp.Or(m.Name, "without a name")), own...))
	}
	return errors.Join(errs...)
}
