package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// bundledConfig is the config of mortise run in a folder without one: bundled policies, no plugins.
const bundledConfig = `version: 1
compaction:
  summarizer: {policy: ledger}
  admission: {policy: cost}
`

// Names of what a config has that names no models or agents.
const (
	envModel  = "environment"
	soleAgent = "assistant"
)

// liveConfig is the config of a live run, with the model and the agent that the flags choose. Note is what the user should
// know of the choice.
func (l Links) liveConfig(o runOptions) (cfg *Config, note string, err error) {
	if cfg, err = l.loadOrBundled(cmp.Or(o.config, os.Getenv("MORTISE_CONFIG"))); err != nil {
		return nil, "", err
	}
	cfg.Store = cmp.Or(o.store, os.Getenv("MORTISE_STORE"), cfg.path(cfg.Store))
	if o.thread != "" && cfg.Store == "" {
		return nil, "", with(ExitUsage, errors.New("--thread: there is no store that has threads; name one with --store FILE, or with store in the config"))
	}
	if note, err = cfg.chooseAgent(o); err == nil {
		err = cmp.Or(cfg.validateModels(), cfg.validateAgents())
	}
	return cfg, note, err
}

// loadOrBundled loads a config file, the bundled config if none is named and the current folder has none.
func (l Links) loadOrBundled(path string) (*Config, error) {
	if _, err := os.Stat(configName); path == "" && errors.Is(err, fs.ErrNotExist) {
		return l.decodeConfig([]byte(bundledConfig))
	}
	return l.loadConfig(path)
}

// chooseAgent makes sure that there is an agent, with the model that --model names.
func (c *Config) chooseAgent(o runOptions) (note string, err error) {
	if len(c.Agents) == 0 {
		if note, err = c.addAgent(o.model); err != nil {
			return "", err
		}
	}
	names := slices.Sorted(maps.Keys(c.Agents))
	if c.DefaultAgent == "" && len(names) == 1 {
		c.DefaultAgent = names[0]
	}
	name := cmp.Or(o.agent, c.DefaultAgent)
	agent, ok := c.Agents[name]
	switch {
	case name == "":
		return "", with(ExitUsage, fmt.Errorf("--agent: is missing, and the config has no default_agent; it is one of %.400q", names))
	case !ok:
		return "", with(ExitUsage, fmt.Errorf("--agent: there is no agent %.64q; it is one of %.400q", name, names))
	}
	c.DefaultAgent = name
	if o.model != "" && note == "" {
		agent.Model = c.model(agent.Model, o.model)
		c.Agents[name] = agent
	}
	return note, nil
}

// model returns the key of the model that the user named: one of models, or else another model of the same provider.
func (c *Config) model(own, named string) string {
	if _, ok := c.Models[named]; ok {
		return named
	}
	m := c.Models[own]
	m.Name, m.Price = named, nil
	c.Models[named] = m
	return named
}

// addAgent adds an agent to a config that has none: with its model, or with one of the environment.
func (c *Config) addAgent(named string) (note string, err error) {
	names := slices.Sorted(maps.Keys(c.Models))
	model := named
	switch {
	case len(names) == 0:
		m, err := modelOfEnvironment(named)
		if err != nil {
			return "", err
		}
		model, c.Models = envModel, map[string]ModelConfig{envModel: m}
		note = m.note()
	case named == "" && len(names) > 1:
		return "", with(ExitUsage, fmt.Errorf("--model: is missing, and the config has no agents; it is one of %.400q", names))
	case named == "":
		model = names[0]
	case !slices.Contains(names, named):
		return "", with(ExitUsage, fmt.Errorf("--model: there is no model %.64q, and the config has no agents; it is one of %.400q", named, names))
	}
	c.Agents = AgentsConfig{soleAgent: {Model: model, SystemPrompt: c.Agent.SystemPrompt, MaxRounds: c.Agent.MaxRounds}}
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
		{providerAnthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "claude-sonnet-4-5", []string{"claude"}},
		{providerOpenAI, "OPENAI_API_KEY", "OPENAI_BASE_URL", "gpt-5", []string{"gpt", "o1", "o3", "o4"}},
	}
}

// modelOfEnvironment chooses the provider whose key is set: of several the one that has the model, or else the first.
func modelOfEnvironment(named string) (ModelConfig, error) {
	var known []vendor
	for _, v := range vendors() {
		if os.Getenv(v.key) != "" || os.Getenv(v.url) != "" {
			known = append(known, v)
		}
	}
	if len(known) == 0 {
		return ModelConfig{}, errors.New(noModel)
	}
	chosen := known[0]
	for _, v := range known {
		if slices.ContainsFunc(v.prefixes, func(p string) bool { return strings.HasPrefix(named, p) }) {
			chosen = v
		}
	}
	m := ModelConfig{Provider: chosen.provider, Name: cmp.Or(named, chosen.model), BaseURL: os.Getenv(chosen.url)}
	if chosen.provider == providerOpenAI && m.BaseURL != "" {
		m.Provider = providerOpenAIChat // which compatible servers have
	}
	if named == "" && os.Getenv(chosen.key) == "" {
		return m, with(ExitUsage, fmt.Errorf("--model: is missing; name a model of the server at %s (%s)", shown(m.BaseURL), chosen.url))
	}
	return m, nil
}

// note names the model and where it is.
func (m ModelConfig) note() string {
	text := fmt.Sprintf("model %s of %s", m.Name, m.Provider)
	if m.BaseURL != "" {
		text += " at " + shown(m.BaseURL)
	}
	return text + ", from the environment; choose another one with --model, or with models in " + configName
}

const noModel = `there is no model to ask. Do one of these:
  export ANTHROPIC_API_KEY=...     then mortise run "..." asks claude-sonnet-4-5
  export OPENAI_API_KEY=...        then mortise run "..." asks gpt-5
  export OPENAI_BASE_URL=http://127.0.0.1:11434/v1
                                   then mortise run --model NAME "..." asks a compatible server, such as Ollama
or write ` + configName + `:
  version: 1
  models:
    main: {provider: anthropic, name: claude-sonnet-4-5, key: {env: ANTHROPIC_API_KEY}}
  agents:
    assistant: {model: main}`
