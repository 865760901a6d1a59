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
			Name: m.Name, Env: m.Env, Dir: c.Path(m.Dir), URL: m.URL, Include: m.Tools, Exclude: m.Exclude, Required: m.Required,
			StartTimeout: time.Duration(m.StartTimeout), CallTimeout: time.Duration(m.CallTimeout), MaxOutput: m.OutputKiB << 10,
		}
		if len(m.Command) > 0 {
			s.Command, s.Args = m.Command[0], m.Command[1:]
		}
		for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
			value, err := m.Headers[name].Read(c.Config)
			if err != nil {
				errs = append(errs, fmt.Errorf("config: mcp[%d] (%.64s): headers.%.64s: %w", i, m.Name, name, err))
			}
			if s.Headers == nil {
				s.Headers = make(map[string]string)
			}
			s.Headers[name] = value
		}
		out.Servers = append(out.Servers, s)
	}
	return out, errors.Join(errs...)
}
