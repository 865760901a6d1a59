package livecmd

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
)

// Names of what a config has that names no models or agents.
const (
	envModel  = "environment"
	soleAgent = "assistant"
)

// liveConfig is the config of a live run, with the model and the agent that the flags choose. Note is what the user should
// know of the choice.
func liveConfig(l program.Links, o Options) (cfg *program.Setup, note string, err error) {
	if cfg, err = l.LoadOr(cmp.Or(o.Config, os.Getenv("MORTISE_CONFIG")), config.Bundled); err != nil {
		return nil, "", err
	}
	cfg.Store = cfg.StoreOf(o.Store)
	if o.Thread != "" && cfg.Store == "" {
		return nil, "", exit.With(exit.Usage, errors.New("--thread: there is no store that has threads; name one with --store FILE, or with store in the config"))
	}
	if note, err = chooseAgent(cfg.Config, o); err == nil {
		err = cmp.Or(cfg.ValidateModels(), cfg.ValidateAgents())
	}
	return cfg, note, err
}

// chooseAgent makes sure that there is an agent, with the model that --model names.
func chooseAgent(c *config.Config, o Options) (note string, err error) {
	if len(c.Agents) == 0 {
		if note, err = addAgent(c, o.Model); err != nil {
			return "", err
		}
	}
	names := slices.Sorted(maps.Keys(c.Agents))
	if c.DefaultAgent == "" && len(names) == 1 {
		c.DefaultAgent = names[0]
	}
	name := cmp.Or(o.Agent, c.DefaultAgent)
	agent, ok := c.Agents[name]
	switch {
	case name == "":
		return "", exit.With(exit.Usage, fmt.Errorf("--agent: is missing, and the config has no default_agent; it is one of %.400q", names))
	case !ok:
		return "", exit.With(exit.Usage, fmt.Errorf("--agent: there is no agent %.64q; it is one of %.400q", name, names))
	}
	c.DefaultAgent = name
	if o.Model != "" && note == "" {
		agent.Model = modelOf(c, agent.Model, o.Model)
		c.Agents[name] = agent
	}
	return note, nil
}

// modelOf returns the key of the model that the user named: one of models, or else another model of the same provider.
func modelOf(c *config.Config, own, named string) string {
	if _, ok := c.Models[named]; ok {
		return named
	}
	m := c.Models[own]
	m.Name, m.Price = named, nil
	c.Models[named] = m
	return named
}

// addAgent adds an agent to a config that has none: with its model, or with one of the environment.
func addAgent(c *config.Config, named string) (note string, err error) {
	names := slices.Sorted(maps.Keys(c.Models))
	model := named
	switch {
	case len(names) == 0:
		m, err := modelOfEnvironment(named)
		if err != nil {
			return "", err
		}
		model, c.Models = envModel, map[string]config.ModelConfig{envModel: m}
		note = noteOf(m)
	case named == "" && len(names) > 1:
		return "", exit.With(exit.Usage, fmt.Errorf("--model: is missing, and the config has no agents; it is one of %.400q", names))
	case named == "":
		model = names[0]
	case !slices.Contains(names, named):
		return "", exit.With(exit.Usage, fmt.Errorf("--model: there is no model %.64q, and the config has no agents; it is one of %.400q", named, names))
	}
	c.Agents = config.AgentsConfig{soleAgent: {Model: model, SystemPrompt: c.Agent.SystemPrompt, MaxRounds: c.Agent.MaxRounds}}
	return note, nil
}

// vendor is a provider whose key is in the environment.
type vendor struct {
	provider, key, url, model string
	// prefixes of the names of its models.
	prefixes []string
}

func vendors() []vendor {
	return []vendor{
		{config.ProviderAnthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "claude-sonnet-4-5", []string{"claude"}},
		{config.ProviderOpenAI, "OPENAI_API_KEY", "OPENAI_BASE_URL", "gpt-5", []string{"gpt", "o1", "o3", "o4"}},
	}
}

// modelOfEnvironment chooses the provider whose key is set: of several the one that has the model, or else the first.
func modelOfEnvironment(named string) (config.ModelConfig, error) {
	var known []vendor
	for _, v := range vendors() {
		if os.Getenv(v.key) != "" || os.Getenv(v.url) != "" {
			known = append(known, v)
		}
	}
	if len(known) == 0 {
		return config.ModelConfig{}, errors.New(noModel)
	}
	chosen := known[0]
	for _, v := range known {
		if slices.ContainsFunc(v.prefixes, func(p string) bool { return strings.HasPrefix(named, p) }) {
			chosen = v
		}
	}
	m := config.ModelConfig{Provider: chosen.provider, Name: cmp.Or(named, chosen.model), BaseURL: os.Getenv(chosen.url)}
	if chosen.provider == config.ProviderOpenAI && m.BaseURL != "" {
		m.Provider = config.ProviderOpenAIChat // which compatible servers have
	}
	if named == "" && os.Getenv(chosen.key) == "" {
		return m, exit.With(exit.Usage, fmt.Errorf("--model: is missing; name a model of the server at %s (%s)", config.Shown(m.BaseURL), chosen.url))
	}
	return m, nil
}

// noteOf names the model and where it is.
func noteOf(m config.ModelConfig) string {
	text := fmt.Sprintf("model %s of %s", m.Name, m.Provider)
	if m.BaseURL != "" {
		text += " at " + config.Shown(m.BaseURL)
	}
	return text + ", from the environment; choose another one with --model, or with models in " + config.FileName
}

const noModel = `there is no model to ask. Do one of these:
  export ANTHROPIC_API_KEY=...     then mortise run "..." asks claude-sonnet-4-5
  export OPENAI_API_KEY=...        then mortise run "..." asks gpt-5
  export OPENAI_BASE_URL=http://127.0.0.1:11434/v1
                                   then mortise run --model NAME "..." asks a compatible server, such as Ollama
or write ` + config.FileName + `:
  version: 1
  models:
    main: {provider: anthropic, name: claude-sonnet-4-5, key: {env: ANTHROPIC_API_KEY}}
  agents:
    assistant: {model: main}`
