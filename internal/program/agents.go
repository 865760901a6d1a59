package program

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/agent/mcp"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/llm"
)

// liveAgents makes the agents of the config. Plugins' tools are every agent's.
func liveAgents(cfg *Setup, plugins agent.Tools, servers servers) (map[string]mortise.Agent, error) {
	out := make(map[string]mortise.Agent)
	for name, a := range cfg.Agents {
		prompt, err := a.Prompt(cfg.Config)
		if err != nil {
			return nil, fmt.Errorf("config: agents.%.64s: %w", name, err)
		}
		model := cfg.Clients[a.Model]
		out[name] = mortise.Agent{
			Model: model.Model, ModelName: model.Cfg.Name, SystemPrompt: prompt, Plugins: a.Plugins, Background: a.Background,
			Tools: agent.LayerTools(plugins, servers.of(a.MCP)), MaxRounds: a.MaxRounds, ToolTimeout: time.Duration(a.ToolTimeout),
			Override: a.Override(), Cost: model.cost, Stop: a.Stop(),
			Retry: llm.Retry{MaxRetries: model.Cfg.Retry.Max, FallbackModels: model.Cfg.Retry.Fallbacks}, Breaker: model.breaker,
		}
	}
	return out, nil
}

// Mcp is what the section says, with the values of its headers.
func (c *Setup) Mcp() (mcp.Config, error) {
	var out mcp.Config
	var errs []error
	for i, m := range c.MCP {
		s := mcp.ServerConfig{
			Name: m.Name, Dir: c.Path(m.Dir), URL: m.URL, Include: m.Tools, Exclude: m.Exclude, Required: m.Required,
			StartTimeout: time.Duration(m.StartTimeout), CallTimeout: time.Duration(m.CallTimeout), MaxOutput: m.OutputKiB << 10,
		}
		if len(m.Command) > 0 {
			s.Command, s.Args = m.Command[0], m.Command[1:]
		}
		where := fmt.Sprintf("config: mcp[%d] (%.64s): ", i, m.Name)
		var envErr, headerErr error
		s.Env, envErr = readAll(c.Config, where+"env.", m.Env)
		s.Headers, headerErr = readAll(c.Config, where+"headers.", m.Headers)
		errs = append(errs, envErr, headerErr)
		out.Servers = append(out.Servers, s)
	}
	return out, errors.Join(errs...)
}

// readAll reads values that may be in the environment or in files.
func readAll[V interface {
	Read(*config.Config) (string, error)
}](c *config.Config, where string, from map[string]V,
) (map[string]string, error) {
	var out map[string]string
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(from)) {
		value, err := from[name].Read(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s%.64s: %w", where, name, err))
		}
		if out == nil {
			out = make(map[string]string)
		}
		out[name] = value
	}
	return out, errors.Join(errs...)
}
