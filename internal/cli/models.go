package cli

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
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/summarizers/role"
)

// ModelConfig is a model of a provider.
type ModelConfig struct {
	// Provider is anthropic, openai (the Responses API) or openai-chat (Chat Completions, which
	// most compatible servers have).
	Provider string `yaml:"provider" jsonschema:"required,enum=anthropic,enum=openai,enum=openai-chat"`
	// Name is the provider's name of the model.
	Name string `yaml:"name" jsonschema:"required"`
	// BaseURL is that of a compatible server; the vendor's own when empty.
	BaseURL string `yaml:"base_url"`
	// Key is ANTHROPIC_API_KEY or OPENAI_API_KEY of the environment when it names nothing.
	Key KeyConfig `yaml:"key"`
	// ClientKey asks with the API key of the client whose conversation a proxy compacts, as far as proxy.client_key_tokens permits.
	ClientKey    bool         `yaml:"client_key"`
	WindowTokens int64        `yaml:"window_tokens"`
	MaxTokens    int64        `yaml:"max_tokens"`
	Price        *PriceConfig `yaml:"price"`
	Retry        RetryConfig  `yaml:"retry"`
}

// KeyConfig names an environment variable or a file that only its owner can read.
type KeyConfig struct {
	Env  string `yaml:"env"`
	File string `yaml:"file"`
	// Value is refused: a key does not belong in the config.
	Value any `yaml:"value" jsonschema:"-"`
}

// PriceConfig is in USD per million tokens.
type PriceConfig struct {
	Input      float64 `yaml:"input"`
	Output     float64 `yaml:"output"`
	CacheRead  float64 `yaml:"cache_read"`
	CacheWrite float64 `yaml:"cache_write"`
}

// RetryConfig bounds repeated requests. Zeros are the defaults of [llm.Retry].
type RetryConfig struct {
	Max       int      `yaml:"max"`
	Fallbacks []string `yaml:"fallbacks"`
}

// Providers of models.
const (
	providerAnthropic  = "anthropic"
	providerOpenAI     = "openai"
	providerOpenAIChat = "openai-chat"
)

// defaultWindow is the context window of a model whose config names none, in tokens.
const defaultWindow = 128_000

func (c *Config) validateModels() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		for _, err := range each(c.Models[name].validate(c.links)) {
			errs = append(errs, fmt.Errorf("models.%.64s.%w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (m ModelConfig) validate(l Links) error {
	var errs []error
	if _, err := l.provider(m.Provider); err != nil {
		errs = append(errs, fmt.Errorf("provider: %w", err))
	}
	if m.Name == "" {
		errs = append(errs, errors.New("name: is missing; write the provider's name of the model"))
	}
	if m.Key.Value != nil {
		errs = append(errs, errors.New("key: value: a key does not stand in the config; name a variable with env, or a private file with file"))
	}
	if m.Key.Env != "" && m.Key.File != "" {
		errs = append(errs, errors.New("key: names both env and file; name one"))
	}
	if m.ClientKey && (m.Key != (KeyConfig{}) || m.BaseURL != "") {
		errs = append(errs, errors.New("client_key: the client's own provider is asked; leave out key and base_url"))
	}
	return errors.Join(append(errs, within("window_tokens", m.WindowTokens, 1<<31), within("max_tokens", m.MaxTokens, 1<<31), m.Price.validate())...)
}

func (p *PriceConfig) validate() error {
	if p != nil && min(p.Input, p.Output, p.CacheRead, p.CacheWrite) < 0 {
		return errors.New("price: is negative; write USD per million tokens")
	}
	return nil
}

// models are those of the config, opened.
type models map[string]openModel

// openModel is a model with what the config knows of it.
type openModel struct {
	llm.Model

	cfg  ModelConfig
	key  string
	cost func(model string, u abi.Usage) float64
	// observe receives what modules ask; may be nil.
	observe llm.Observe
}

// openModels makes the models of the config. It connects to nothing.
func openModels(cfg *Config) (models, error) {
	out := models{}
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
	for _, name := range slices.Sorted(maps.Keys(cfg.Models)) {
		key, err := cfg.Models[name].key(cfg)
		var m llm.Model
		if err == nil {
			m, err = cfg.links.open(cfg.Models[name], key)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("config: models.%.64s: %w", name, err))
			continue
		}
		out[name] = openModel{Model: m, cfg: cfg.Models[name], key: key, cost: cost, observe: billed(cfg.observe)}
	}
	return out, errors.Join(errs...)
}

func (l Links) open(m ModelConfig, key string) (llm.Model, error) {
	p, err := l.provider(m.Provider)
	if err != nil {
		return nil, fmt.Errorf("provider: %w", err)
	}
	c := Connection{BaseURL: m.BaseURL, Key: key, MaxTokens: m.MaxTokens}
	if m.ClientKey {
		c.HTTP = &http.Client{Transport: proxy.ClientKey{}}
	}
	return p.Open(c)
}

// key reads the API key. A compatible server, which BaseURL names, may need none.
func (m ModelConfig) key(cfg *Config) (string, error) {
	from := m.Key
	if m.ClientKey {
		return "client", nil // the proxy puts the client's in its place
	}
	if from.Env == "" && from.File == "" {
		if p, err := cfg.links.provider(m.Provider); err == nil {
			from.Env = p.KeyEnv
		}
		if from.Env == "" || m.BaseURL != "" {
			return os.Getenv(from.Env), nil
		}
	}
	key, err := from.read(cfg)
	if err != nil {
		return "", fmt.Errorf("key: %w; or name another variable with key: {env: NAME}, or a file with key: {file: PATH}", err)
	}
	return key, nil
}

// read returns the value that the environment or the file has.
func (k KeyConfig) read(c *Config) (string, error) {
	if k.File != "" {
		return privateFile(c.path(k.File))
	}
	if value := os.Getenv(k.Env); value != "" {
		return value, nil
	}
	return "", fmt.Errorf("the environment variable %.80q is not set", k.Env)
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
func (m models) cost(model string, u abi.Usage) float64 {
	for _, o := range m {
		return o.cost(model, u) // the same for all
	}
	return 0
}

// grant lets guests ask models by the names of roles.
func (m models) grant(roles map[string]string) (*modelcap.Grant, error) {
	out := &modelcap.Grant{Roles: map[string]modelcap.Role{}}
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		model, ok := m[roles[name]]
		if !ok {
			return nil, fmt.Errorf("grants.model.%.64s: there is no model %.64q; models has %.400q", name, roles[name], slices.Sorted(maps.Keys(m)))
		}
		out.Roles[name] = modelcap.Role{
			Answer: role.Answer(llm.Watched(model.Model, model.observe, model.cost), model.cfg.Name), WindowTokens: cmp.Or(model.cfg.WindowTokens, defaultWindow),
			InputPrice: model.micros(abi.Usage{PromptTokens: 1e6}), OutputPrice: model.micros(abi.Usage{CompletionTokens: 1e6}),
		}
	}
	return out, nil
}

// micros is what a usage costs, in millionths of a USD.
func (m openModel) micros(u abi.Usage) int64 { return int64(m.cost(m.cfg.Name, u) * 1e6) }
