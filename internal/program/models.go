package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	modelcap "github.com/mortise-dev/mortise/host/capability/model"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/summarizers/role"
)

// defaultWindow is the context window of a model whose config names none, in tokens.
const defaultWindow = 128_000

// Models are those of the config, opened, by their keys.
type Models map[string]OpenModel

// OpenModel is a model with what the config knows of it.
type OpenModel struct {
	llm.Model

	Cfg  config.ModelConfig
	Key  string
	cost func(model string, u abi.Usage) float64
	// observe receives what modules ask; may be nil.
	observe llm.Observe
	// breaker is all runs', nil for a model without fallbacks.
	breaker *llm.Breaker
}

// OpenModels makes the models of the config. It connects to nothing.
func OpenModels(cfg *Setup) (Models, error) {
	return openModels(cfg, slices.Sorted(maps.Keys(cfg.Models)))
}

// OpenGranted makes the models that plugins and policies may ask, for commands without agents of their own: the keys of
// others are not needed.
func OpenGranted(cfg *Setup) (Models, error) { return openModels(cfg, cfg.grantedModels()) }

// Environment are the variables that plugins of the config need, which a client passes to a daemon that it starts.
func (c *Setup) Environment() []string {
	var out []string
	for i := range c.Plugins {
		for _, s := range c.Plugins[i].Grants.Secrets {
			out = append(out, s.Env)
		}
	}
	for _, name := range c.grantedModels() {
		out = append(out, c.keyFrom(c.Models[name]).Env)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(s string) bool { return s == "" })
}

// grantedModels are the models that plugins and policies may ask, by their keys.
func (c *Setup) grantedModels() []string {
	grants := []config.GrantsConfig{c.Compaction.Summarizer.Grants, c.Compaction.Fallback.Grants, c.Compaction.Admission.Grants}
	for i := range c.Plugins {
		if !c.Plugins[i].Disabled {
			grants = append(grants, c.Plugins[i].Grants)
		}
	}
	names := map[string]bool{}
	for _, g := range grants {
		for _, name := range g.Model {
			if _, ok := c.Models[name]; ok { // an unknown name is an error of the grant
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func openModels(cfg *Setup, names []string) (Models, error) {
	out := Models{}
	prices := llm.DefaultPrices()
	for _, m := range cfg.Models {
		if p := m.Price; p != nil {
			prices[m.Name] = llm.Price{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
		}
	}
	var errs []error
	cost := func(model string, u abi.Usage) float64 {
		usd, _ := prices.Cost(model, u)
		return usd
	}
	for _, name := range names {
		key, err := apiKey(cfg, cfg.Models[name])
		var m llm.Model
		if err == nil {
			m, err = cfg.Links.open(cfg.Models[name], key)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("config: models.%.64s: %w", name, err))
			continue
		}
		open := OpenModel{Model: m, Cfg: cfg.Models[name], Key: key, cost: cost, observe: billed(cfg.observe)}
		if len(open.Cfg.Retry.Fallbacks) > 0 {
			if open.breaker, err = llm.NewBreaker(llm.BreakerConfig{}); err != nil {
				errs = append(errs, err)
			}
		}
		out[name] = open
	}
	return out, errors.Join(errs...)
}

func (l Links) open(m config.ModelConfig, key string) (llm.Model, error) {
	p, err := l.provider(m.Provider)
	if err != nil {
		return nil, err
	}
	c := Connection{BaseURL: m.BaseURL, Key: key, MaxTokens: m.MaxTokens}
	if m.ClientKey {
		c.HTTP = &http.Client{Transport: proxy.ClientKey{}}
	}
	return p.Open(c)
}

// apiKey reads the API key. A compatible server, which BaseURL names, may need none.
func apiKey(cfg *Setup, m config.ModelConfig) (string, error) {
	if m.ClientKey {
		return "client", nil // the proxy puts the client's in its place
	}
	from := cfg.keyFrom(m)
	if m.Key == (config.KeyConfig{}) && (from.Env == "" || m.BaseURL != "") {
		return os.Getenv(from.Env), nil
	}
	key, err := from.Read(cfg.Config)
	if err != nil {
		return "", fmt.Errorf("key: %w; or name another variable with key: {env: NAME}, or a file with key: {file: PATH}", err)
	}
	return key, nil
}

// keyFrom is where the API key is: in the variable of its provider, if the config names no other place.
func (c *Setup) keyFrom(m config.ModelConfig) config.KeyConfig {
	from := m.Key
	if from.Env == "" && from.File == "" && !m.ClientKey {
		if p, err := c.Links.provider(m.Provider); err == nil {
			from.Env = p.KeyEnv
		}
	}
	return from
}

// billed bills questions of summarizers to the conversations of a proxy.
func billed(observe llm.Observe) llm.Observe {
	if observe == nil {
		return proxy.Observe
	}
	return func(ctx context.Context, c llm.Call) (context.Context, func(llm.Call)) {
		ctx, first := observe(ctx, c)
		ctx, second := proxy.Observe(ctx, c)
		return ctx, func(c llm.Call) {
			for _, end := range []func(llm.Call){second, first} {
				if end != nil {
					end(c)
				}
			}
		}
	}
}

// cost is what a usage of a model costs, in USD; 0 when its price is not known.
func (m Models) cost(model string, u abi.Usage) float64 {
	for _, o := range m {
		return o.cost(model, u) // the same for all
	}
	return 0
}

// grantModels lets guests ask models by the names of roles.
func (c *Setup) grantModels(roles map[string]string) (*modelcap.Grant, error) {
	out := &modelcap.Grant{Roles: map[string]modelcap.Role{}}
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		model, ok := c.Clients[roles[name]]
		if !ok {
			return nil, fmt.Errorf("grants.model.%.64s: there is no model %.64q; models has %.400q", name, roles[name], slices.Sorted(maps.Keys(c.Models)))
		}
		out.Roles[name] = modelcap.Role{
			Answer: role.Answer(llm.Watched(model.Model, model.observe, model.cost), model.Cfg.Name), WindowTokens: cmp.Or(model.Cfg.WindowTokens, defaultWindow),
			InputPrice: model.micros(abi.Usage{PromptTokens: 1e6}), OutputPrice: model.micros(abi.Usage{CompletionTokens: 1e6}),
		}
	}
	return out, nil
}

// micros is what a usage costs, in millionths of a USD.
func (m OpenModel) micros(u abi.Usage) int64 { return int64(m.cost(m.Cfg.Name, u) * 1e6) }
